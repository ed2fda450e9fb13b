//! Tests of failing servers: which requests are retried, and when the breaker opens.

use std::time::{Duration, Instant};

use azera_model_api::{ChatModel, ChatRequest, Error, FinishReason};
use azera_model_remote::{Api, LONGEST_TOKEN_BYTES, MAX_LINE_BYTES, RetryPolicy};
use serde_json::json;

use crate::chat::{OLLAMA, OLLAMA_REPLY, OPENAI, OPENAI_REPLY, SAID, ask, connect, fake_and_model, model, request};
use crate::fake::{Answer, FakeServer, NDJSON, SSE, Then};

const BEGUN: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"Once\"}}]}\n\n";

#[track_caller]
fn unavailable(error: Error, words: &str) {
    assert!(error.is_transient(), "{error}");
    assert!(matches!(&error, Error::Unavailable(why) if why.contains(words)), "{error}");
}

#[tokio::test]
async fn temporary_failures_are_retried_before_the_first_piece() {
    let fine = || Answer::stream(SSE, OPENAI_REPLY);
    let died = || Answer::Stream(SSE, Vec::new(), Then::Die);
    let error_text = || Answer::stream(SSE, "data: {\"error\":{\"message\":\"out of memory\",\"code\":500}}\n\n");
    let early = || Answer::stream(SSE, ": nothing follows\n\n");
    for (answers, requests) in [
        (vec![Answer::status(500), fine()], 2),
        (vec![Answer::status(429), Answer::status(503), fine()], 3),
        (vec![died(), fine()], 2),
        (vec![error_text(), fine()], 2),
        (vec![early(), fine()], 2),
    ] {
        let (fake, model) = fake_and_model(Api::OpenAi).await;
        fake.on(OPENAI, answers);
        let (said, usage) = ask(&model, request("hello")).await;
        assert!(said == SAID && usage.is_ok());
        assert_eq!(fake.requests(OPENAI).len(), requests);
    }
    // Two retries, and no third.
    let (fake, model) = fake_and_model(Api::OpenAi).await;
    fake.on(OPENAI, [Answer::refusal(500, &json!({"error": {"message": "on fire"}}))]);
    let (said, usage) = ask(&model, request("hello")).await;
    assert_eq!((said.as_str(), fake.requests(OPENAI).len()), ("", 3));
    unavailable(usage.unwrap_err(), "status 500: on fire");
}

#[tokio::test]
async fn a_broken_reply_is_not_retried() {
    let (fake, model) = fake_and_model(Api::OpenAi).await;
    let fine = Answer::stream(SSE, OPENAI_REPLY);
    let error = format!("{BEGUN}data: {{\"error\":{{\"message\":\"out of memory\"}}}}\n\n");
    for (broken, words) in [
        (Answer::Stream(SSE, vec![BEGUN.into()], Then::Die), "broke off"),
        (Answer::stream(SSE, &error), "out of memory"),
    ] {
        let before = fake.requests(OPENAI).len();
        fake.on(OPENAI, [broken, fine.clone()]);
        let (said, usage) = ask(&model, request("hello")).await;
        assert_eq!(said, "Once");
        unavailable(usage.unwrap_err(), words);
        assert_eq!(fake.requests(OPENAI).len(), before + 1);
    }
    let (fake, model) = fake_and_model(Api::Ollama).await;
    let begun: String = OLLAMA_REPLY.split_inclusive('\n').take(2).collect();
    for end in ["", "{\"error\":\"runner gone\"}\n"] {
        fake.on(OLLAMA, [Answer::stream(NDJSON, &format!("{begun}{end}")), Answer::stream(NDJSON, OLLAMA_REPLY)]);
        let (said, usage) = ask(&model, request("hello")).await;
        assert_eq!(said, "[hm \u{1f914}]Gr\u{fc}\u{df}e \u{1f98a}");
        unavailable(usage.unwrap_err(), "broke off");
    }
    assert_eq!(fake.requests(OLLAMA).len(), 2);
}

#[tokio::test]
async fn retry_after_is_honoured_up_to_a_limit() {
    let patience = |seconds: &str| {
        let body = json!({"error": {"message": "slow down"}}).to_string().into_bytes();
        Answer::Whole(429, vec![("retry-after", seconds.to_owned())], body)
    };
    let (fake, model) = fake_and_model(Api::OpenAi).await;
    fake.on(OPENAI, [patience("1"), Answer::stream(SSE, OPENAI_REPLY)]);
    let started = Instant::now();
    assert!(ask(&model, request("hello")).await.1.is_ok());
    assert!(started.elapsed() >= Duration::from_secs(1), "its own millisecond would have been too soon");
    // Longer than anybody would wait.
    fake.on(OPENAI, [patience("3600"), Answer::stream(SSE, OPENAI_REPLY)]);
    unavailable(ask(&model, request("hello")).await.1.unwrap_err(), "slow down");
    assert_eq!(fake.requests(OPENAI).len(), 3);
}

/// Advances tokio's clock. Nothing may run meanwhile.
async fn later(by: Duration) {
    tokio::time::pause();
    tokio::time::advance(by).await;
    tokio::time::resume();
}

#[tokio::test]
async fn a_failing_server_is_left_alone_and_used_again_later() {
    let (fake, model) = fake_and_model(Api::OpenAi).await;
    fake.on(OPENAI, [Answer::status(500)]);
    // Three tries, then two: after the fifth failure the breaker is open.
    unavailable(ask(&model, request("hello")).await.1.unwrap_err(), "status 500");
    unavailable(ask(&model, request("hello")).await.1.unwrap_err(), "is asked again in");
    assert_eq!(fake.requests(OPENAI).len(), 5);
    for _ in 0..3 {
        unavailable(model.chat(request("hello")).await.unwrap_err(), "is asked again in");
    }
    assert_eq!(fake.requests(OPENAI).len(), 5, "nobody knocks meanwhile");
    // One trial after the pause. It fails, so the next pause is twice as long.
    later(Duration::from_secs(5)).await;
    unavailable(ask(&model, request("hello")).await.1.unwrap_err(), "is asked again in");
    assert_eq!(fake.requests(OPENAI).len(), 6);
    later(Duration::from_secs(6)).await;
    unavailable(model.chat(request("hello")).await.unwrap_err(), "is asked again in");
    // The server works again.
    later(Duration::from_secs(5)).await;
    fake.on(OPENAI, [Answer::stream(SSE, OPENAI_REPLY)]);
    for _ in 0..2 {
        assert_eq!(ask(&model, request("hello")).await.0, SAID);
    }
    assert_eq!(fake.requests(OPENAI).len(), 8);
}

#[tokio::test]
async fn rate_limits_and_rejections_do_not_open_the_breaker() {
    for refusal in [Answer::status(429), Answer::status(400), Answer::status(401)] {
        let (fake, model) = fake_and_model(Api::OpenAi).await;
        fake.on(OPENAI, [refusal]);
        for _ in 0..6 {
            assert!(ask(&model, request("hello")).await.1.is_err());
        }
        fake.on(OPENAI, [Answer::stream(SSE, OPENAI_REPLY)]);
        assert_eq!(ask(&model, request("hello")).await.0, SAID);
    }
}

#[tokio::test]
async fn a_silent_server_times_out() {
    let fake = FakeServer::start().await;
    let patient = |first: u64, idle: u64| {
        let mut config = fake.config(Api::OpenAi);
        let (first, idle) = (Duration::from_millis(first), Duration::from_millis(idle));
        config.patience = RetryPolicy { first, idle, retries: 1, ..config.patience };
        config
    };
    // No head; a head and no piece; a piece and no other.
    fake.on(OPENAI, [Answer::hanging(SSE, ""), Answer::hanging(SSE, ": waiting\n\n")]);
    let quick = model(patient(1_000, 60_000)).await;
    unavailable(ask(&quick, request("hello")).await.1.unwrap_err(), "said nothing for 1 s");
    assert_eq!(fake.requests(OPENAI).len(), 2);
    fake.on(OPENAI, [Answer::hanging(SSE, BEGUN)]);
    let (said, usage) = ask(&*model(patient(60_000, 1_000)).await, request("hello")).await;
    assert_eq!(said, "Once");
    unavailable(usage.unwrap_err(), "said nothing");
    assert_eq!(fake.requests(OPENAI).len(), 3, "a reply that has begun is not asked for again");
    fake.closed_times(3).await;
}

#[tokio::test]
async fn malformed_responses_are_rejected() {
    let endless = format!("{BEGUN}data: {}", "x".repeat(MAX_LINE_BYTES + 1));
    for (answer, said, words) in [
        (Answer::stream(SSE, &format!("{BEGUN}data: {{\"choices\":[}}\n\n")), "Once", "not valid JSON"),
        (Answer::stream(SSE, &format!("{BEGUN}data: {{\"choices\"\n\n")), "Once", "in the middle of its JSON"),
        (Answer::stream(SSE, &format!("{BEGUN}data: {{\"choices\":7}}\n\n")), "Once", "unexpected structure"),
        (Answer::Stream(SSE, vec![BEGUN.into(), b"data: \xff\n\n".to_vec()], Then::Hang), "Once", "not valid JSON"),
        (Answer::hanging(SSE, &endless), "Once", "more than 1048576 bytes as a line"),
        (Answer::stream("text/html", "<html>"), "", "the type text/html instead of text/event-stream"),
    ] {
        let (fake, model) = fake_and_model(Api::OpenAi).await;
        fake.on(OPENAI, [answer]);
        let (text, usage) = ask(&model, request("hello")).await;
        let error = usage.unwrap_err();
        assert!(text == said && !error.is_transient() && error.to_string().contains(words), "{text} {error}");
        assert_eq!(fake.requests(OPENAI).len(), 1);
    }
    let (fake, model) = fake_and_model(Api::Ollama).await;
    fake.on(OLLAMA, [Answer::stream(NDJSON, "<html>\n")]);
    assert!(ask(&model, request("hello")).await.1.unwrap_err().to_string().contains("not valid JSON"));
}

#[tokio::test]
async fn an_endless_reply_is_stopped() {
    let (fake, model) = fake_and_model(Api::OpenAi).await;
    fake.on(OPENAI, [Answer::hanging(SSE, &BEGUN.repeat(1_000))]);
    let (said, usage) = ask(&model, ChatRequest { max_tokens: 10, ..request("hello") }).await;
    assert_eq!(usage.unwrap().finish, FinishReason::Length);
    assert_eq!(said.len(), 10 * LONGEST_TOKEN_BYTES + 4, "up to the first piece beyond");
    fake.closed_times(1).await;
}

#[tokio::test]
async fn an_unreachable_server_may_become_reachable_later() {
    let fake = FakeServer::start().await;
    let mut config = fake.config(Api::OpenAi);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    config.url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let down = connect(config.clone(), |_| {}).await.unwrap();
    let error = ask(&down, request("hello")).await.1.unwrap_err().to_string();
    assert!(
        error.contains("cannot be reached") && error.contains("is it running, and is chat_server.url right?"),
        "{error}"
    );
}
