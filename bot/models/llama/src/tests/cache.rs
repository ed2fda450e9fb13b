use std::fs;
use std::path::Path;

use azera_model_api::ChatModel;

use super::*;

/// Returns the next request of a conversation that starts with a shared persona.
fn turn(session_name: &str, persona: ChatMessage, said: &[ChatMessage], max_tokens: usize) -> ChatRequest {
    let messages = std::iter::once(persona).chain(said.iter().cloned()).collect();
    ChatRequest { shared_messages: 1, session: session(session_name), ..greedy(messages, max_tokens) }
}

#[tokio::test]
async fn a_conversation_and_its_persona_are_evaluated_once() {
    let engine = LlamaChat::load(config()).unwrap();
    let mut said = vec![user("Good evening! My boat is called Merle.")];
    let (first, usage) = ask(&engine, turn("ann", persona("Azera"), &said, 24)).await;
    assert_eq!(usage.cached_tokens, 0);

    said.extend([assistant(first), user("Which colour would suit her?")]);
    let (_, usage) = ask(&engine, turn("ann", persona("Azera"), &said, 24)).await;
    let share = usage.cached_tokens as f64 / usage.prompt_tokens as f64;
    assert!(share > 0.9, "only {share:.3} of the second turn was cached: {usage:?}");
    assert_eq!(usage.cached_tokens + usage.evaluated_tokens, usage.prompt_tokens);

    let persona_tokens = engine.count_tokens(&persona("Azera").content);
    let (_, usage) = ask(&engine, turn("bob", persona("Azera"), &[user("Hello.")], 8)).await;
    assert!(usage.cached_tokens >= persona_tokens, "another chat shares the persona: {usage:?}");
    assert!(usage.cached_tokens < usage.prompt_tokens - 5, "but nothing said elsewhere: {usage:?}");

    let (_, usage) = ask(&engine, turn("cem", persona("Areza"), &[user("Hello.")], 8)).await;
    assert!(usage.cached_tokens < 20, "another persona is another prefix: {usage:?}");
}

#[tokio::test]
async fn only_tokens_after_the_first_change_are_evaluated_again() {
    let engine = LlamaChat::load(config()).unwrap();
    let said = |memory: &str| [user("Hi."), assistant("Hello."), user(format!("{memory}\nWhat is my boat called?"))];
    let (_, before) = ask(&engine, turn("ann", persona("Azera"), &said("Ann's boat is Merle."), 8)).await;
    let (_, after) = ask(&engine, turn("ann", persona("Azera"), &said("The cat of Ann is Otto."), 8)).await;
    let early = engine.count_tokens(&persona("Azera").content) + engine.count_tokens("Hi.Hello.");
    assert!(after.cached_tokens > early && after.cached_tokens < before.prompt_tokens - 8, "{after:?}");
}

#[tokio::test]
async fn forgetting_drops_a_conversation_and_nothing_else() {
    let engine = LlamaChat::load(config()).unwrap();
    let said = [user("The code is 4417. Keep it well and tell nobody, please.")];
    let (_, cold) = ask(&engine, turn("ann", persona("Azera"), &said, 4)).await;
    ask(&engine, turn("bob", persona("Azera"), &said, 4)).await;
    let (_, warm) = ask(&engine, turn("ann", persona("Azera"), &said, 4)).await;
    assert_eq!(warm.cached_tokens, cold.prompt_tokens - 1, "all but the token whose logits are needed");

    engine.forget_session(&SessionKey::new("ann")).await.unwrap();
    let persona_tokens = engine.count_tokens(&persona("Azera").content);
    let (_, ann) = ask(&engine, turn("ann", persona("Azera"), &said, 4)).await;
    assert!(ann.cached_tokens >= persona_tokens && ann.cached_tokens < persona_tokens + 8, "{ann:?}");
    let (_, bob) = ask(&engine, turn("bob", persona("Azera"), &said, 4)).await;
    assert_eq!(bob.cached_tokens, warm.cached_tokens);
}

#[tokio::test]
async fn forgetting_affects_a_running_reply() {
    let engine = LlamaChat::load(config()).unwrap();
    let request = ChatRequest { session: session("ann"), ..endless(40) };
    let mut reply = engine.chat(request.clone()).await.unwrap();
    first_piece(&mut reply).await;
    engine.forget_session(&SessionKey::new("ann")).await.unwrap();
    reply.collect().await.unwrap();
    let (_, usage) = ask(&engine, request).await;
    assert_eq!(usage.cached_tokens, 0);
}

#[tokio::test]
async fn requests_without_a_session_leave_nothing_behind() {
    let engine = LlamaChat::load(config()).unwrap();
    for _ in 0..2 {
        let (_, usage) = ask(&engine, greedy(vec![user("Hello there, how are you today?")], 4)).await;
        assert_eq!(usage.cached_tokens, 0);
    }
}

/// There are more conversations than the key-value cache holds. They are swapped out and come back unchanged.
#[tokio::test]
async fn swapped_out_conversations_come_back_complete() {
    let small = LlamaChatConfig { context_tokens: 450, cache_tokens: 470, slots: 2, ..config() };
    let engine = LlamaChat::load(small.clone()).unwrap();
    let words = ["basalt", "cinnamon", "dolphin", "giraffe", "igloo"];
    let again = |word: &str| {
        let mut said = code_word_talk(word);
        said.extend([assistant(format!("The code word is: {word}")), user("Repeat the code word.")]);
        said
    };
    let request = |word: &str, said: &[ChatMessage]| ChatRequest {
        grammar: one_of(&words),
        ..turn(word, persona("Azera"), said, 30)
    };
    for word in words {
        ask(&engine, request(word, &code_word_talk(word))).await;
    }
    for word in words {
        let (text, usage) = ask(&engine, request(word, &again(word))).await;
        let share = usage.cached_tokens as f64 / usage.prompt_tokens as f64;
        assert!(share > 0.9, "{word}: {usage:?}");
        assert_eq!(text, format!("The code word is: {word}"));
    }
    // Without memory for swapping, conversations are simply evaluated again.
    let none = LlamaChat::load(LlamaChatConfig { parked_bytes: 0, ..small }).unwrap();
    for word in ["basalt", "cinnamon", "dolphin", "basalt"] {
        let (text, usage) = ask(&none, request(word, &again(word))).await;
        assert!(usage.cached_tokens < usage.prompt_tokens - 20, "{usage:?}");
        assert_eq!(text, format!("The code word is: {word}"));
    }
}

#[tokio::test]
async fn a_persona_prefix_survives_a_restart_and_a_damaged_file() {
    let dir = tempfile::tempdir().unwrap();
    let keeper = || system(format!("{}\nThe code word is: fjord.", persona("Azera").content));
    let persona_tokens = shared_engine().count_tokens(&keeper().content);
    let start = |identity: &str| {
        let config = LlamaChatConfig { prefix_dir: Some(dir.path().to_owned()), identity: identity.into(), ..config() };
        let request = ChatRequest {
            grammar: one_of(&["basalt", "fjord", "igloo"]),
            ..turn("ann", keeper(), &[user("Repeat the code word.")], 30)
        };
        async move {
            let (text, usage) = ask(&LlamaChat::load(config).unwrap(), request).await;
            assert_eq!(text, "The code word is: fjord", "{usage:?}");
            usage.cached_tokens
        }
    };
    assert_eq!(start("one").await, 0);
    let file = only_file(dir.path());

    let warm = start("one").await;
    assert!(warm >= persona_tokens && warm < persona_tokens + 8, "{warm} of {persona_tokens} were kept");

    let mut bytes = fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0xff;
    fs::write(&file, bytes).unwrap();
    assert_eq!(start("one").await, 0);
    assert_eq!(start("one").await, warm, "the damaged file was made again");
    assert_eq!(only_file(dir.path()), file);

    assert_eq!(start("two").await, 0, "another model has prefixes of its own");
}

/// Returns the only file in a directory.
fn only_file(dir: &Path) -> std::path::PathBuf {
    let mut files: Vec<_> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    files.remove(0)
}
