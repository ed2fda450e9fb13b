use super::*;

/// The question of each chat, and the index of its set of LoRAs.
const CHATS: [(&str, usize); 8] = [
    ("What is the sea?", 0),
    ("Who lives in a lighthouse?", 1),
    ("Tell me about ships.", 2),
    ("What is the sea?", 3),
    ("Tell me about ships.", 0),
    ("Who lives in a lighthouse?", 2),
    ("What is the sea?", 1),
    ("Who lives in a lighthouse?", 0),
];

/// The most tokens of a reply.
const REPLY_TOKENS: usize = 40;

/// The least difference, in nats for each token, between the likelihood of a reply under its own LoRAs and under others.
/// For a reply of full length these are 4 nats. A short one, such as "Your text.", says less about what it was made under.
const MARGIN: f64 = 0.1;

fn loras(forge: &Forge) -> [Vec<Lora>; 4] {
    // With more noise at this rank, replies become bytes that are tokenized differently when they are read again, and
    // these are unlikely under any LoRAs.
    let [one, two] = [(8, NOISE, 1), (16, 0.4, 2)].map(|(rank, noise, seed)| forge.lora(rank, noise, seed));
    [vec![], vec![one.clone()], vec![two.clone()], vec![one, two]]
}

/// Returns a turn whose reply is sampled, because the greedy reply may repeat itself, which is equally likely under any
/// LoRAs.
fn turn(chat: usize, loras: &[Lora]) -> ChatRequest {
    let mut request = greedy(vec![user(CHATS[chat].0)], REPLY_TOKENS);
    request.sampling.temperature = 0.8;
    request.sampling.seed = u32::try_from(chat).ok();
    ChatRequest { session: session(&chat.to_string()), loras: loras.to_vec(), ..request }
}

/// Asserts that a reply was made under these LoRAs and not under others: a reply sampled under one set is far less
/// likely under another.
async fn check(engine: &LlamaChat, chat: usize, reply: (&str, &Usage), own: usize, sets: &[Vec<Lora>; 4]) {
    let (requested, (text, usage)) = (CHATS[chat].0, reply);
    let margin = MARGIN * usage.completion_tokens as f64;
    let with_own = likely(engine, requested, text, &sets[own]).await;
    for (other, set) in sets.iter().enumerate().filter(|(other, _)| *other != own) {
        let with_other = likely(engine, requested, text, set).await;
        assert!(with_own > with_other + margin, "{text}: {with_own} with set {own}, {with_other} with {other}");
    }
}

#[tokio::test]
async fn a_score_in_a_batch_is_that_of_its_own_loras() {
    let (engine, forge) = (adaptable_engine(), Forge::new());
    let loras = loras(&forge);
    let mut alone = Vec::new();
    for set in &loras {
        alone.push(likely(engine, PROMPT, SEA, set).await);
    }
    let [a, b, c, d] = &loras;
    let all = |set| likely(engine, PROMPT, SEA, set);
    let together = tokio::join!(all(a), all(b), all(c), all(d), all(d), all(c), all(b), all(a));
    let (a, b, c, d, e, f, g, h) = together;
    for (together, set) in [a, b, c, d, e, f, g, h].into_iter().zip([0, 1, 2, 3, 3, 2, 1, 0]) {
        // A batch of another shape rounds differently, and noise in the LoRAs makes more of that.
        let distance = |other: usize| (together - alone[other]).abs();
        let nearest = (0..alone.len()).min_by(|one, other| distance(*one).total_cmp(&distance(*other)));
        assert_eq!(nearest, Some(set), "{together} of {alone:?}");
    }
    for (at, one) in alone.iter().enumerate() {
        for other in &alone[at + 1..] {
            assert!((one - other).abs() > 0.04 * one.abs(), "{alone:?}");
        }
    }
}

#[tokio::test]
async fn eight_concurrent_chats_keep_their_loras() {
    let (engine, forge) = (LlamaChat::load(adaptable()).unwrap(), Forge::new());
    let loras = loras(&forge);
    let mut replies = Vec::new();
    for (chat, (_, set)) in CHATS.iter().enumerate() {
        replies.push(engine.chat(turn(chat, &loras[*set])).await.unwrap());
    }
    for (chat, reply) in replies.into_iter().enumerate() {
        let (text, usage) = reply.collect().await.unwrap();
        check(&engine, chat, (&text, &usage), CHATS[chat].1, &loras).await;
    }
}

#[tokio::test]
async fn changing_a_lora_does_not_affect_running_replies() {
    let (engine, forge) = (LlamaChat::load(adaptable()).unwrap(), Forge::new());
    let loras = loras(&forge);
    // All chats begin with one LoRA. The next turn of each has another, which is read from its file meanwhile.
    let mut running = Vec::new();
    for chat in 0..CHATS.len() {
        running.push(engine.chat(turn(chat, &loras[1])).await.unwrap());
    }
    let begun = first_piece(&mut running[0]).await;
    let mut next = Vec::new();
    for chat in 0..CHATS.len() {
        next.push(engine.chat(turn(chat, &loras[2])).await.unwrap());
    }
    engine.forget_lora(&loras[1][0].id).await.unwrap();
    let mut head = Some(begun);
    for (chat, reply) in running.into_iter().enumerate() {
        let (rest, usage) = reply.collect().await.unwrap();
        let text = head.take().unwrap_or_default() + &rest;
        check(&engine, chat, (&text, &usage), 1, &loras).await;
    }
    for (chat, reply) in next.into_iter().enumerate() {
        let (text, usage) = reply.collect().await.unwrap();
        assert_eq!(usage.cached_tokens, 0, "a turn was continued under other LoRAs");
        check(&engine, chat, (&text, &usage), 2, &loras).await;
    }
}
