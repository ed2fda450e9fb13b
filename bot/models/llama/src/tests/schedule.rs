use std::time::Duration;

use azera_model_api::{Error, Priority};

use super::*;

fn one_slot() -> LlamaChatConfig {
    LlamaChatConfig { slots: 1, queue: 1, ..config() }
}

#[tokio::test]
async fn dropping_a_reply_ends_it_at_once() {
    let engine = LlamaChat::load(one_slot()).unwrap();
    let mut dropped = engine.chat(endless(1_900)).await.unwrap();
    first_piece(&mut dropped).await;
    drop(dropped);
    let (_, usage) = ask(&engine, endless(20)).await;
    // If the first reply had continued, the second would have waited for the time of 1,900 tokens.
    let waited_tokens = usage.ttft_ms / 1_000.0 * usage.tokens_per_s;
    assert!(waited_tokens < 300.0, "waited for the time of {waited_tokens:.0} tokens: {usage:?}");
}

#[tokio::test]
async fn a_full_queue_rejects_requests() {
    let engine = LlamaChat::load(one_slot()).unwrap();
    let mut running = engine.chat(endless(1_900)).await.unwrap();
    first_piece(&mut running).await;
    let waiting = engine.chat(endless(5)).await.unwrap();
    let refused = engine.chat(endless(5)).await.unwrap_err();
    assert!(matches!(refused, Error::Busy { waiting: 1 }) && refused.is_transient(), "{refused:?}");
    drop(running);
    let (_, usage) = waiting.collect().await.unwrap();
    assert_eq!(usage.completion_tokens, 5);
    ask(&engine, endless(5)).await;
}

#[tokio::test]
async fn foreground_work_comes_first_and_background_work_continues() {
    let engine = LlamaChat::load(one_slot()).unwrap();
    let background = ChatRequest { priority: Priority::Background, ..endless(400) };
    let mut reply = engine.chat(background).await.unwrap();
    first_piece(&mut reply).await;
    let (_, foreground) = ask(&engine, endless(150)).await;
    assert_eq!(foreground.completion_tokens, 150);
    // If the foreground reply had waited for the background one, all of that would be in its channel now.
    while let Ok(event) = tokio::time::timeout(Duration::ZERO, reply.next()).await {
        let ended = matches!(event, None | Some(Ok(Event::Done(_)) | Err(_)));
        assert!(!ended, "live work waited for the end of background work");
    }
    let (_, usage) = reply.collect().await.unwrap();
    assert_eq!(usage.completion_tokens, 400);
}

#[tokio::test]
async fn preempted_work_resumes_where_it_stopped() {
    let engine = LlamaChat::load(LlamaChatConfig { queue: 4, ..one_slot() }).unwrap();
    let text = "one two three four five six seven eight nine ten ".repeat(6);
    let request = ChatRequest { priority: Priority::Background, ..fixed(&text) };
    let reply = engine.chat(request).await.unwrap();
    for _ in 0..4 {
        ask(&engine, endless(3)).await;
    }
    assert_eq!(reply.collect().await.unwrap().0, text);
}

#[tokio::test]
async fn one_session_runs_one_request_at_a_time() {
    let engine = LlamaChat::load(config()).unwrap();
    let request = || ChatRequest { session: session("ann"), ..endless(30) };
    let first = engine.chat(request()).await.unwrap();
    let second = engine.chat(request()).await.unwrap();
    let (second, first) = (second.collect().await.unwrap(), first.collect().await.unwrap());
    assert_eq!(second.1.cached_tokens, first.1.prompt_tokens - 1);
}

#[tokio::test]
async fn a_request_waits_for_a_prefix_that_is_being_evaluated() {
    let engine = LlamaChat::load(config()).unwrap();
    let request = |name: &str| ChatRequest {
        shared_messages: 1,
        session: session(name),
        ..greedy(vec![persona("Azera"), user(format!("I am {name}."))], 4)
    };
    let mut replies = Vec::new();
    for name in ["ann", "bob", "cem", "dan"] {
        replies.push(engine.chat(request(name)).await.unwrap());
    }
    let mut cold = 0;
    for reply in replies {
        let (_, usage) = reply.collect().await.unwrap();
        cold += usize::from(usage.cached_tokens == 0);
    }
    assert_eq!(cold, 1, "the persona was evaluated more than once");
}

#[tokio::test]
async fn a_slow_reader_gets_everything() {
    let engine = shared_engine();
    let text = "one two three four five six seven eight nine ten ".repeat(32);
    let reply = engine.chat(fixed(&text)).await.unwrap();
    // This takes more steps than the other, so the first reply is complete in its channel before its first event is
    // read.
    ask(engine, endless(500)).await;
    let (late, usage) = reply.collect().await.unwrap();
    assert!(usage.completion_tokens > azera_model_api::REPLY_QUEUE, "{usage:?}");
    assert_eq!(late, text);
}

#[tokio::test]
async fn stopping_the_engine_fails_waiting_requests() {
    let engine = LlamaChat::load(LlamaChatConfig { queue: 4, ..one_slot() }).unwrap();
    let mut running = engine.chat(endless(1_900)).await.unwrap();
    first_piece(&mut running).await;
    let waiting = engine.chat(endless(1_900)).await.unwrap();
    drop(engine);
    assert!(matches!(running.collect().await, Err(Error::Stopped)));
    assert!(matches!(waiting.collect().await, Err(Error::Stopped)));
}

#[test]
fn invalid_limits_are_rejected() {
    let check = |config: LlamaChatConfig| assert!(matches!(LlamaChat::load(config), Err(Error::Load(_))));
    check(LlamaChatConfig { slots: 0, ..config() });
    check(LlamaChatConfig { slots: crate::MAX_SLOTS + 1, ..config() });
    check(LlamaChatConfig { queue: 0, ..config() });
    check(LlamaChatConfig { cache_tokens: 100, ..config() });
    check(LlamaChatConfig { path: "/nowhere/model.gguf".into(), ..config() });
    check(LlamaChatConfig { path: model("minilm-l6-v2"), ..config() });
}
