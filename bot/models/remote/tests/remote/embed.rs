//! Tests of embeddings: order, size, identity, long texts, and unreachable servers.

use std::sync::Arc;
use std::time::Duration;

use azera_model_api::{Embedder, Error, Priority, Purpose};
use azera_model_remote::{Api, BATCH_TEXTS, EMBED_QUEUE, RemoteEmbedder, RemoteEmbedderConfig};
use serde_json::{Value, json};

use crate::fake::{Answer, FakeServer, RecordedRequest};

const OPENAI: &str = "/v1/embeddings";
const OLLAMA: &str = "/api/embed";

fn config(fake: &FakeServer, api: Api) -> RemoteEmbedderConfig {
    RemoteEmbedderConfig {
        server: azera_model_remote::ServerConfig { section: "embedding_server".into(), ..fake.config(api) },
        similarity_floor: 0.25,
        query_prefix: "query: ".into(),
        document_prefix: String::new(),
        max_tokens: 512,
    }
}

fn inputs(requests: &RecordedRequest) -> Vec<String> {
    requests.body["input"].as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
}

/// Returns a vector that encodes a text's length and first character.
fn vector(text: &str) -> [f64; 3] {
    [text.len() as f64, f64::from(u32::from(text.chars().next().unwrap())), 1.0]
}

fn unit(text: &str) -> Vec<f32> {
    let vector = vector(text);
    let length = vector.iter().map(|x| x * x).sum::<f64>().sqrt();
    vector.iter().map(|x| (x / length) as f32).collect()
}

/// OpenAI's format, in reverse order, which its index allows.
fn openai() -> Answer {
    Answer::Made(Arc::new(|requests| {
        let data: Vec<Value> = inputs(requests)
            .iter()
            .enumerate()
            .rev()
            .map(|(index, text)| json!({"index": index, "embedding": vector(text)}))
            .collect();
        Answer::json(&json!({"data": data}))
    }))
}

fn ollama() -> Answer {
    Answer::Made(Arc::new(|requests| {
        Answer::json(&json!({"embeddings": inputs(requests).iter().map(|text| vector(text)).collect::<Vec<_>>()}))
    }))
}

async fn fake(api: Api) -> FakeServer {
    let fake = FakeServer::start().await;
    fake.on(OPENAI, [openai()]).on(OLLAMA, [ollama()]);
    if api == Api::Ollama {
        fake.on("/api/tags", [Answer::json(&json!({"models": [{"name": "tiny:latest", "digest": "d1"}]}))]);
        fake.on("/api/show", [Answer::json(&json!({}))]);
    }
    fake
}

#[tokio::test]
async fn vectors_have_the_order_of_the_texts() {
    for (api, path) in [(Api::OpenAi, OPENAI), (Api::LlamaCpp, OPENAI), (Api::Ollama, OLLAMA)] {
        let fake = fake(api).await;
        let embedder = RemoteEmbedder::connect(config(&fake, api)).await.unwrap();
        assert_eq!((embedder.info().dimension, embedder.info().similarity_floor), (3, 0.25));
        let texts: Vec<String> =
            (0..2 * BATCH_TEXTS + 2).map(|i| format!("{}\u{1f98a}\u{8a18}{i}", "x".repeat(i))).collect();
        let vectors = embedder.embed(texts.clone(), Purpose::Document, Priority::Background).await.unwrap();
        assert_eq!(vectors, texts.iter().map(|text| unit(text)).collect::<Vec<_>>());
        let requests = fake.requests(path);
        // One request to see the vectors' size, then the batches.
        assert_eq!(
            requests.iter().map(|requests| inputs(requests).len()).collect::<Vec<_>>(),
            [1, BATCH_TEXTS, BATCH_TEXTS, 2]
        );
        assert_eq!(requests[1].authorization.as_deref(), Some("Bearer sk-hush"));
        assert!(embedder.embed(Vec::new(), Purpose::Query, Priority::Foreground).await.unwrap().is_empty());
    }
}

#[tokio::test]
async fn texts_get_their_prefix_and_are_cut() {
    let fake = fake(Api::OpenAi).await;
    let embedder =
        RemoteEmbedder::connect(RemoteEmbedderConfig { max_tokens: 4, ..config(&fake, Api::OpenAi) }).await.unwrap();
    let texts = ["where?", "", " \n", "\u{1f98a}\u{1f98a}\u{1f98a}\u{1f98a}"].map(String::from).to_vec();
    embedder.embed(texts.clone(), Purpose::Query, Priority::Foreground).await.unwrap();
    embedder.embed(texts, Purpose::Document, Priority::Foreground).await.unwrap();
    let requests = fake.requests(OPENAI);
    assert_eq!(inputs(&requests[1]), ["query: where", "query: .", "query: .", "query: \u{1f98a}"]);
    assert_eq!(inputs(&requests[2]), ["where?", ".", ".", "\u{1f98a}\u{1f98a}\u{1f98a}"]);
}

#[tokio::test]
async fn malformed_responses_are_rejected() {
    let fake = fake(Api::OpenAi).await;
    let embedder = RemoteEmbedder::connect(config(&fake, Api::OpenAi)).await.unwrap();
    let two = || ["a", "b"].map(String::from).to_vec();
    let check = async |answer: Answer, words: &str| {
        fake.on(OPENAI, [answer, openai()]);
        let error = embedder.embed(two(), Purpose::Document, Priority::Background).await.unwrap_err();
        assert!(!error.is_transient() && error.to_string().contains(words), "{words}: {error}");
        assert!(embedder.embed(two(), Purpose::Document, Priority::Background).await.is_ok());
    };
    let data = |vectors: Value| Answer::json(&json!({"data": vectors}));
    let of = |index: usize, vector: Value| json!({"index": index, "embedding": vector});
    check(data(json!([of(0, json!([1, 2])), of(1, json!([1, 2]))])), "instead of `3 numbers`").await;
    check(data(json!([of(0, json!([1, 2, 3]))])), "one vector for each of 2 texts").await;
    check(data(json!([of(0, json!([1, 2, 3])), of(0, json!([1, 2, 3]))])), "one vector for each of 2 texts").await;
    check(data(json!([of(0, json!([0, 0, 0])), of(1, json!([1, 2, 3]))])), "no direction").await;
    check(data(json!([of(0, json!([1, null, 3])), of(1, json!([1, 2, 3]))])), "unexpected structure").await;
    check(Answer::Whole(200, Vec::new(), b"{\"data\": [".to_vec()), "not valid JSON").await;
}

#[tokio::test]
async fn a_text_that_is_too_long_is_cut_and_delays_nobody() {
    let fake = fake(Api::OpenAi).await;
    let embedder = RemoteEmbedder::connect(config(&fake, Api::OpenAi)).await.unwrap();
    let picky = Answer::Made(Arc::new(|requests| {
        if inputs(requests).iter().any(|text| text.len() > 300) {
            return Answer::refusal(500, &json!({"error": {"code": 500, "message": "input is too large to process"}}));
        }
        openai()
    }));
    fake.on(OPENAI, [picky]);
    let texts = vec!["short".to_owned(), "7".repeat(1000), "also short".to_owned()];
    let vectors = embedder.embed(texts, Purpose::Document, Priority::Background).await.unwrap();
    assert_eq!(vectors, [unit("short"), unit(&"7".repeat(250)), unit("also short")]);
    // A server that rejects everything does not get many requests.
    fake.on(OPENAI, [Answer::refusal(400, &json!({"error": "no"}))]);
    let before = fake.requests(OPENAI).len();
    let refused = embedder.embed(vec!["x".repeat(1000)], Purpose::Document, Priority::Background).await;
    assert!(matches!(refused, Err(Error::Engine(_))));
    assert_eq!(fake.requests(OPENAI).len() - before, 1);
}

#[tokio::test]
async fn a_rejected_text_is_not_cut() {
    let fake = fake(Api::OpenAi).await;
    let embedder = RemoteEmbedder::connect(config(&fake, Api::OpenAi)).await.unwrap();
    let prudish = Answer::Made(Arc::new(|requests| {
        if inputs(requests).iter().any(|text| text.contains("rude")) {
            return Answer::refusal(400, &json!({"error": {"message": "no such words", "code": "content_filter"}}));
        }
        openai()
    }));
    fake.on(OPENAI, [prudish]);
    for priority in [Priority::Background, Priority::Foreground] {
        let texts = vec!["short".to_owned(), "rude".repeat(100), "also short".to_owned()];
        let before = fake.requests(OPENAI).len();
        let refused = embedder.embed(texts, Purpose::Document, priority).await;
        assert!(matches!(refused, Err(Error::Engine(_))), "which does not pass by itself");
        assert_eq!(fake.requests(OPENAI).len() - before, 1, "it is told at once");
    }
}

#[tokio::test]
async fn a_quota_or_rate_limit_is_no_reason_to_cut() {
    let check = async |status: u16, message: &str, code: &str, transient: bool| {
        let fake = fake(Api::OpenAi).await;
        let mut config = config(&fake, Api::OpenAi);
        config.server.patience.retries = 0;
        let embedder = RemoteEmbedder::connect(config).await.unwrap();
        fake.on(OPENAI, [Answer::refusal(status, &json!({"error": {"message": message, "code": code}}))]);
        let before = fake.requests(OPENAI).len();
        let texts = vec!["x".repeat(1000), "y".repeat(1000)];
        let error = embedder.embed(texts, Purpose::Document, Priority::Background).await.unwrap_err();
        assert_eq!((error.is_transient(), fake.requests(OPENAI).len() - before), (transient, 1), "{error}");
    };
    check(429, "Request too large for tiny: tokens per min (TPM)", "rate_limit_exceeded", true).await;
    check(429, "You exceeded your current quota", "insufficient_quota", false).await;
    check(402, "Insufficient balance, the context window is closed", "", false).await;
    check(401, "the key is too long", "", false).await;
}

#[tokio::test]
async fn a_change_of_the_model_changes_its_identity() {
    let fake_server = fake(Api::Ollama).await;
    let id = async |change: &dyn Fn(&mut RemoteEmbedderConfig)| {
        let mut config = config(&fake_server, Api::Ollama);
        change(&mut config);
        RemoteEmbedder::connect(config).await.unwrap().info().id.clone()
    };
    let first = id(&|_| {}).await;
    assert!(first.starts_with("ollama:tiny@"), "{first}");
    assert_eq!(first, id(&|config| config.similarity_floor = 0.5).await);
    assert_ne!(first, id(&|config| config.document_prefix = "passage: ".into()).await);
    fake_server.on("/api/tags", [Answer::json(&json!({"models": [{"name": "tiny:latest", "digest": "d2"}]}))]);
    assert_ne!(first, id(&|_| {}).await, "the same name, another content");
    // A server without digests is identified by its address.
    let (here, there) = (fake(Api::OpenAi).await, fake(Api::OpenAi).await);
    let of = async |fake| RemoteEmbedder::connect(config(fake, Api::OpenAi)).await.unwrap().info().id.clone();
    assert_eq!(of(&here).await, of(&here).await);
    assert_ne!(of(&here).await, of(&there).await);
}

#[tokio::test]
async fn an_unreachable_server_must_later_return_the_same_kind_of_vectors() {
    let fake = fake(Api::Ollama).await;
    let info = RemoteEmbedder::connect(config(&fake, Api::Ollama)).await.unwrap().info().clone();
    let texts = || vec!["hello".to_owned()];
    let down = || Answer::status(503);
    let tags = |digest: &str| Answer::json(&json!({"models": [{"name": "tiny:latest", "digest": digest}]}));
    fake.on("/api/tags", [down(), tags("d1")]);
    let resumed = RemoteEmbedder::resume(config(&fake, Api::Ollama), info.clone()).unwrap();
    assert!(resumed.embed(texts(), Purpose::Query, Priority::Foreground).await.unwrap_err().is_transient());
    assert_eq!(resumed.embed(texts(), Purpose::Document, Priority::Foreground).await.unwrap(), [unit("hello")]);
    // It came back with another model.
    fake.on("/api/tags", [tags("d2")]);
    let resumed = RemoteEmbedder::resume(config(&fake, Api::Ollama), info).unwrap();
    let error = resumed.embed(texts(), Purpose::Document, Priority::Foreground).await.unwrap_err();
    assert!(
        !error.is_transient() && error.to_string().contains("after a restart everything is embedded anew"),
        "{error}"
    );
}

#[tokio::test]
async fn foreground_embeddings_fail_fast() {
    let fake = fake(Api::OpenAi).await;
    let mut config = config(&fake, Api::OpenAi);
    config.server.patience.foreground_embedding = Duration::from_secs(5);
    let embedder = RemoteEmbedder::connect(config).await.unwrap();
    let embed = async |priority| embedder.embed(vec!["hello".into()], Purpose::Query, priority).await;
    let hanging = || Answer::hanging("application/json", "");
    fake.on(OPENAI, [hanging(), Answer::status(503), openai()]);
    let silent = embed(Priority::Foreground).await.unwrap_err().to_string();
    assert!(silent.contains("said nothing for 5 "), "it waited as long as a query may: {silent}");
    assert!(embed(Priority::Foreground).await.unwrap_err().to_string().contains("status 503"), "not asked again");
    assert!(embed(Priority::Foreground).await.is_ok());
    assert_eq!(fake.requests(OPENAI).len(), 1 + 3);
    fake.on(OPENAI, [Answer::status(503), Answer::status(503), openai()]);
    assert!(embed(Priority::Background).await.is_ok(), "the index can wait");
    // After five failures the breaker is open, so that a turn is not delayed at all.
    fake.on(OPENAI, [Answer::status(503)]);
    for _ in 0..8 {
        assert!(embed(Priority::Foreground).await.unwrap_err().is_transient());
    }
    assert_eq!(fake.requests(OPENAI).len(), 1 + 3 + 3 + 5);
    // Indexing does not delay a query.
    let fake = self::fake(Api::OpenAi).await;
    let embedder = RemoteEmbedder::connect(self::config(&fake, Api::OpenAi)).await.unwrap();
    fake.on(OPENAI, [Answer::hanging("application/json", ""), openai()]);
    let indexing = embedder.clone();
    let indexing =
        tokio::spawn(async move { indexing.embed(vec!["a".into()], Purpose::Document, Priority::Background).await });
    fake.wait_for_requests(OPENAI, 2).await;
    assert!(embedder.embed(vec!["hello".into()], Purpose::Query, Priority::Foreground).await.is_ok());
    indexing.abort();
    let many = vec![String::new(); EMBED_QUEUE + 1];
    let busy = RemoteEmbedder::connect(self::config(&self::fake(Api::OpenAi).await, Api::OpenAi)).await.unwrap();
    assert!(matches!(busy.embed(many, Purpose::Document, Priority::Background).await, Err(Error::Busy { .. })));
}
