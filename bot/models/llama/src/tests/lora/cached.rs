use super::*;

/// Returns a turn of a conversation with a shared persona.
fn turn(name: &str, loras: &[Lora]) -> ChatRequest {
    ChatRequest {
        shared_messages: 1,
        session: session(name),
        loras: loras.to_vec(),
        ..greedy(vec![persona("Azera"), user("Good evening! My boat is called Merle.")], 4)
    }
}

async fn cached(engine: &LlamaChat, request: ChatRequest) -> usize {
    ask(engine, request).await.1.cached_tokens
}

#[tokio::test]
async fn cached_tokens_are_never_reused_under_other_loras() {
    let (engine, forge) = (LlamaChat::load(adaptable()).unwrap(), Forge::new());
    let [one, two] = [1, 2].map(|seed| vec![forge.lora(4, NOISE, seed)]);
    let persona_tokens = engine.count_tokens(&persona("Azera").content);
    let check = async |name: &str, loras: &[Lora], expected: std::ops::Range<usize>| {
        let cached = cached(&engine, turn(name, loras)).await;
        assert!(expected.contains(&cached), "{name} found {cached} of a persona of {persona_tokens}");
    };
    let (nothing, persona, everything) = (0..1, persona_tokens..persona_tokens + 8, persona_tokens + 8..usize::MAX);
    check("ann", &[], nothing.clone()).await;
    check("ann", &[], everything.clone()).await;
    check("ann", &one, nothing.clone()).await;
    check("bob", &one, persona.clone()).await;
    check("bob", &one, everything.clone()).await;
    check("ann", &two, nothing.clone()).await;
    // The persona is kept for each set, a conversation only for the last one.
    check("ann", &[], persona.clone()).await;
    check("ann", &one, persona.clone()).await;
    let half = vec![Lora { scale: 0.5, ..one[0].clone() }];
    check("bob", &half, nothing.clone()).await;

    engine.forget_lora(&one[0].id).await.unwrap();
    check("bob", &one, nothing.clone()).await;
    check("cem", &two, persona.clone()).await;
    check("cem", &[], persona).await;
}

#[tokio::test]
async fn forgetting_a_lora_drops_swapped_out_tokens() {
    let small = LlamaChatConfig { context_tokens: 450, cache_tokens: 470, slots: 2, ..adaptable() };
    let (engine, forge) = (LlamaChat::load(small).unwrap(), Forge::new());
    let one = vec![forge.lora(4, NOISE, 1)];
    ask(&engine, turn("ann", &one)).await;
    // A conversation with another persona, which needs the room.
    let other = greedy(vec![persona("Areza"), user("Hello.")], 4);
    ask(&engine, ChatRequest { shared_messages: 1, session: session("bob"), ..other }).await;
    assert!(cached(&engine, turn("ann", &one)).await > 200, "it was parked");
    engine.forget_lora(&one[0].id).await.unwrap();
    assert_eq!(cached(&engine, turn("ann", &one)).await, 0);
}

#[tokio::test]
async fn a_running_reply_survives_its_forgotten_lora_and_leaves_nothing() {
    let (engine, forge) = (LlamaChat::load(adaptable()).unwrap(), Forge::new());
    let one = vec![forge.lora(4, NOISE, 1)];
    let request = ChatRequest { loras: one.clone(), ..endless(60) };
    let expected = ask(&engine, request.clone()).await.0;
    let mut reply = engine.chat(ChatRequest { session: session("ann"), ..request.clone() }).await.unwrap();
    let begun = first_piece(&mut reply).await;
    engine.forget_lora(&one[0].id).await.unwrap();
    assert_eq!(begun + &reply.collect().await.unwrap().0, expected);
    assert_eq!(cached(&engine, ChatRequest { session: session("ann"), ..request }).await, 0);
}

#[tokio::test]
async fn prefixes_under_request_loras_are_not_written_to_disk() {
    let (dir, forge) = (tempfile::tempdir().unwrap(), Forge::new());
    let [own, named] = [1, 2].map(|seed| vec![forge.lora(4, NOISE, seed)]);
    let start = |loras: &[Lora]| {
        let prefix_dir = Some(dir.path().to_owned());
        LlamaChat::load(LlamaChatConfig { prefix_dir, loras: loras.to_vec(), ..adaptable() }).unwrap()
    };
    let files = || fs::read_dir(dir.path()).unwrap().count();
    assert_eq!(cached(&start(&[]), turn("ann", &named)).await, 0);
    assert_eq!(files(), 0);
    assert_eq!(cached(&start(&own), turn("ann", &named)).await, 0);
    assert_eq!(files(), 0);
    // Under the model's own LoRAs the prefix is written, and used only with those.
    assert_eq!(cached(&start(&own), turn("ann", &[])).await, 0);
    assert_eq!(files(), 1);
    assert!(cached(&start(&own), turn("ann", &[])).await > 200);
    assert_eq!(cached(&start(&[]), turn("ann", &[])).await, 0);
    assert_eq!(files(), 2);
}

#[tokio::test]
async fn unused_loras_leave_memory() {
    let forge = Forge::new();
    let [one, two, three] = [1, 2, 3].map(|seed| forge.lora(4, NOISE, seed));
    let size = fs::metadata(&one.path).unwrap().len();
    let engine = LlamaChat::load(LlamaChatConfig { lora_bytes: 5 * size / 2, ..adaptable() }).unwrap();
    let held = async |lora: &Lora| {
        let request = ChatRequest { loras: vec![lora.clone()], ..digits("a number", 4, &[]) };
        ask(&engine, request).await;
        Arc::downgrade(&engine.pool.set(std::slice::from_ref(lora)).await.unwrap().unwrap())
    };
    let (first, second) = (held(&one).await, held(&two).await);
    assert!(first.upgrade().is_some() && second.upgrade().is_some());
    // There is room for two, so the third replaces the first.
    let third = held(&three).await;
    assert!(first.upgrade().is_none() && second.upgrade().is_some() && third.upgrade().is_some());
    for lora in [&two, &three] {
        engine.forget_lora(&lora.id).await.unwrap();
    }
    // The engine releases the last one when it is idle, which it is after it has answered this.
    while third.upgrade().is_some() {
        engine.forget_lora(&three.id).await.unwrap();
    }
    assert!(second.upgrade().is_none());
}
