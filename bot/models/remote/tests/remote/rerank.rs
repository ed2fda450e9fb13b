//! Tests of servers that rerank: each form, odd answers, late ones, and the breaker.

use std::sync::Arc;
use std::time::Duration;

use azera_breaker::Limits;
use azera_model_api::{Error, Reranker};
use azera_model_remote::{ApiKey, RemoteReranker, RemoteRerankerConfig, RerankApi, RetryPolicy};
use serde_json::{Value, json};

use crate::fake::{Answer, FakeServer, RecordedRequest};

const FORMS: [(RerankApi, &str); 4] = [
    (RerankApi::LlamaCpp, "/v1/rerank"),
    (RerankApi::Tei, "/rerank"),
    (RerankApi::Jina, "/v1/rerank"),
    (RerankApi::Cohere, "/v2/rerank"),
];

const QUESTION: &str = "where does the grey cat sleep?";

fn config(fake: &FakeServer, api: RerankApi) -> RemoteRerankerConfig {
    RemoteRerankerConfig {
        api,
        url: fake.url.clone(),
        model: Some("tiny".into()),
        key: Some(ApiKey::new("sk-hush")),
        section: "rerank_server".into(),
        candidates: 4,
        weight: 0.5,
        wait: Duration::from_secs(20),
        patience: RetryPolicy { breaker: Limits { failures: 3, ..Limits::default() }, ..RetryPolicy::default() },
    }
}

fn texts() -> Vec<String> {
    ["the train leaves", "the grey cat", "the cat"].map(String::from).to_vec()
}

/// Returns the fields that a form may have, apart from question and texts.
fn fields(api: RerankApi) -> (&'static str, Value) {
    match api {
        RerankApi::Tei => ("texts", json!({"truncate": true, "raw_scores": false, "return_text": false})),
        RerankApi::Jina => ("documents", json!({"model": "tiny", "return_documents": false, "top_n": 3})),
        RerankApi::LlamaCpp | RerankApi::Cohere => ("documents", json!({"model": "tiny", "top_n": 3})),
    }
}

/// Answers in a server's own form, best first. Refuses a request with any other field or value than that form has.
fn strict(api: RerankApi) -> Answer {
    Answer::Made(Arc::new(move |request: &RecordedRequest| {
        let (name, mut form) = fields(api);
        let documents = request.body[name].as_array().cloned().unwrap_or_default();
        form["query"] = QUESTION.into();
        form[name] = documents.clone().into();
        if documents.len() != 3 || request.body != form {
            return Answer::refusal(422, &json!({"error": {"message": "another form is wanted"}}));
        }
        // A word of the question each.
        let score = |text: &Value| QUESTION.split(' ').filter(|word| text.as_str().unwrap().contains(word)).count();
        let mut scored: Vec<(usize, usize)> = documents.iter().map(score).enumerate().collect();
        scored.sort_by_key(|(_, score)| std::cmp::Reverse(*score));
        let named = |name: &str| -> Value {
            scored.iter().map(|(index, score)| json!({"index": index, name: score})).collect::<Vec<_>>().into()
        };
        Answer::json(&match api {
            RerankApi::Tei => named("score"),
            RerankApi::LlamaCpp => {
                json!({"model": "tiny", "object": "list", "usage": {"prompt_tokens": 9}, "results": named("relevance_score")})
            }
            RerankApi::Jina => {
                json!({"model": "tiny", "usage": {"total_tokens": 9}, "results": named("relevance_score")})
            }
            RerankApi::Cohere => json!({"id": "1", "meta": {}, "results": named("relevance_score")}),
        })
    }))
}

async fn rerank(reranker: &RemoteReranker) -> Result<Vec<f32>, Error> {
    reranker.rerank(QUESTION, &texts()).await
}

#[tokio::test]
async fn scores_have_the_order_of_the_texts_in_every_form() {
    for (api, path) in FORMS {
        let fake = FakeServer::start().await;
        fake.on(path, [strict(api)]);
        let reranker = RemoteReranker::new(config(&fake, api)).unwrap();
        assert_eq!(rerank(&reranker).await.unwrap(), [1.0, 3.0, 2.0], "{api:?}");
        let requests = fake.requests(path);
        assert_eq!(requests[0].authorization.as_deref(), Some("Bearer sk-hush"));
        assert!(!format!("{reranker:?}").contains("hush"));
        assert_eq!(reranker.rerank(QUESTION, &[]).await.unwrap(), [0.0; 0]);
        assert!(matches!(reranker.rerank(QUESTION, &vec![String::new(); 5]).await, Err(Error::Invalid(_))));
        assert_eq!(fake.requests(path).len(), 1, "neither was sent");
    }
}

#[tokio::test]
async fn a_long_text_is_cut_and_a_path_of_the_address_stays() {
    let fake = FakeServer::start().await;
    fake.on("/ranking/rerank", [Answer::json(&json!({"results": [{"index": 0, "relevance_score": 1}]}))]);
    let url = format!("{}/ranking/", fake.url);
    let reranker = RemoteReranker::new(RemoteRerankerConfig { url, ..config(&fake, RerankApi::Jina) }).unwrap();
    reranker.rerank(&"é".repeat(9_000), &["é".repeat(9_000)]).await.unwrap();
    let body = &fake.requests("/ranking/rerank")[0].body;
    assert_eq!(body["query"].as_str().unwrap().len(), 4_096);
    assert_eq!(body["documents"][0].as_str().unwrap().len(), 4_096);
}

#[tokio::test]
async fn an_answer_that_does_not_fit_the_question_is_refused() {
    let fake = FakeServer::start().await;
    let scores = |scores: Value| Answer::json(&json!({"results": scores}));
    let of = |index: usize, score: Value| json!({"index": index, "relevance_score": score});
    for (answer, words) in [
        (scores(json!([of(0, json!(1)), of(1, json!(1))])), "2 scores for 3 texts"),
        (scores(json!([of(0, json!(1)), of(1, json!(1)), of(2, json!(1)), of(0, json!(1))])), "4 scores for 3 texts"),
        (scores(json!([of(0, json!(1)), of(1, json!(1)), of(3, json!(1))])), "text 3 of 3"),
        (scores(json!([of(0, json!(1)), of(1, json!(1)), of(1, json!(1))])), "two scores for text 1"),
        (scores(json!([of(0, json!(1)), of(1, json!(null)), of(2, json!(1))])), "unexpected structure"),
        (scores(json!([of(0, json!(1)), of(1, json!(1e39)), of(2, json!(1))])), "no number"),
        (scores(json!([{"relevance_score": 1}, of(1, json!(1)), of(2, json!(1))])), "unexpected structure"),
        (
            Answer::Whole(200, Vec::new(), b"{\"results\": [{\"index\": 0, \"relevance_score\": NaN}".to_vec()),
            "not valid JSON",
        ),
        (Answer::json(&json!({"error": "no such model"})), "unexpected structure"),
        (
            Answer::Whole(302, vec![("location", "http://elsewhere.test/".into())], Vec::new()),
            "points to http://elsewhere",
        ),
        (Answer::refusal(413, &json!({"error": "batch size 3 > maximum allowed batch size 2"})), "batch size 3"),
        (Answer::refusal(400, &json!({"error": format!("cannot rank {QUESTION:?}")})), "left out"),
        (Answer::refusal(401, &json!({"error": "bad key sk-hush"})), "set rerank_server.key"),
    ] {
        let reranker = RemoteReranker::new(config(&fake, RerankApi::Jina)).unwrap();
        fake.on("/v1/rerank", [answer]);
        let error = rerank(&reranker).await.unwrap_err();
        assert!(!error.is_transient() && error.to_string().contains(words), "{words}: {error}");
        assert!(!error.to_string().contains("hush") && !error.to_string().contains("grey cat"), "{error}");
    }
    let whole = RemoteReranker::new(config(&fake, RerankApi::Tei)).unwrap();
    fake.on("/rerank", [Answer::Whole(200, Vec::new(), vec![b' '; azera_model_remote::MAX_ANSWER_BYTES + 1])]);
    assert!(rerank(&whole).await.unwrap_err().to_string().contains("sent more than"));
}

#[tokio::test]
async fn a_late_answer_is_dropped_and_a_server_that_stays_late_is_left_alone() {
    let fake = FakeServer::start().await;
    fake.on("/v1/rerank", [Answer::hanging("application/json", "{\"results\": [")]);
    let wait = Duration::from_millis(30);
    let reranker = RemoteReranker::new(RemoteRerankerConfig { wait, ..config(&fake, RerankApi::Jina) }).unwrap();
    for _ in 0..3 {
        let error = rerank(&reranker).await.unwrap_err();
        assert!(error.is_transient() && error.to_string().contains("said nothing for 30 ms"), "{error}");
    }
    // It is not asked again for a while, so that no recall waits in vain.
    let error = rerank(&reranker).await.unwrap_err();
    assert!(error.is_transient() && error.to_string().contains("failed several times"), "{error}");
    assert!(fake.requests("/v1/rerank").len() <= 3);
}

#[tokio::test]
async fn a_failing_request_is_not_repeated() {
    let fake = FakeServer::start().await;
    fake.on("/v2/rerank", [Answer::status(503), strict(RerankApi::Cohere)]);
    let reranker = RemoteReranker::new(config(&fake, RerankApi::Cohere)).unwrap();
    assert!(rerank(&reranker).await.unwrap_err().is_transient());
    assert_eq!(fake.requests("/v2/rerank").len(), 1);
    assert!(rerank(&reranker).await.is_ok(), "the next recall asks again");
}

#[tokio::test]
async fn a_trial_sends_as_many_texts_as_recall_would() {
    let fake = FakeServer::start().await;
    let all_alike = Answer::Made(Arc::new(|request: &RecordedRequest| {
        let texts = request.body["texts"].as_array().unwrap().len();
        Answer::json(&(0..texts).map(|index| json!({"index": index, "score": 0.5})).collect::<Vec<_>>().into())
    }));
    fake.on("/rerank", [all_alike]);
    let reranker = RemoteReranker::new(config(&fake, RerankApi::Tei)).unwrap();
    reranker.try_out().await.unwrap();
    assert_eq!(fake.requests("/rerank")[1].body["texts"].as_array().unwrap().len(), 4);
    assert!(!reranker.is_readable(), "it is on this machine");
}
