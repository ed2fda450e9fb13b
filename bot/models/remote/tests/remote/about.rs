//! Tests of the facts that a server reports about itself.

use azera_model_api::ChatModel;
use azera_model_remote::{Api, about};
use serde_json::json;

use crate::chat::{OLLAMA, OLLAMA_REPLY, ask, connect, request};
use crate::fake::{Answer, FakeServer, NDJSON};

#[tokio::test]
async fn the_context_is_limited_to_what_the_server_supports() {
    let check = async |api: Api, path: &str, answer, model: &str, context: usize| {
        let fake = FakeServer::start().await;
        fake.on("/api/tags", [Answer::json(&json!({"models": [{"name": "tiny:latest", "digest": "d1"}]}))]);
        fake.on(path, [Answer::json(&answer)]);
        let mut config = fake.config(api);
        config.model = model.into();
        let said = about(config.clone()).await.unwrap();
        let found = connect(config, |config| config.family = "qwen3".into()).await.unwrap();
        let host = fake.url.trim_start_matches("http://");
        assert_eq!(found.info().name, format!("{model}@{host}"));
        assert_eq!((found.info().context_tokens, found.info().family.as_str()), (context, "qwen3"), "{path}");
        said
    };
    let listed = |more: serde_json::Value| json!({"data": [{"id": "other", "max_model_len": 9}, more]});
    let models = "/v1/models";
    let said = check(Api::OpenAi, models, listed(json!({"id": "tiny"})), "tiny", 4096).await;
    assert_eq!(said.models.as_deref(), Some(["other".to_owned(), "tiny".to_owned()].as_slice()));
    assert_eq!((said.names("tiny"), said.names("huge"), said.readable), (Some(true), Some(false), false));
    check(Api::OpenAi, models, listed(json!({"id": "tiny", "max_model_len": 2048})), "tiny", 2048).await;
    check(Api::OpenAi, models, listed(json!({"id": "tiny", "context_length": 131072})), "tiny", 4096).await;
    check(Api::LlamaCpp, models, listed(json!({"id": "tiny", "meta": {"n_ctx": 512}})), "tiny", 512).await;
    check(Api::LlamaCpp, "/props", json!({"default_generation_settings": {"n_ctx": 1024}}), "tiny", 4096).await;
    // A name that the server does not list may still work, and a server without a list says nothing.
    check(Api::OpenAi, models, listed(json!({"id": "tiny"})), "alias", 4096).await;
    assert_eq!(check(Api::OpenAi, "/nowhere", json!({}), "tiny", 4096).await.names("tiny"), None);
    let shown = json!({"model_info": {"general.architecture": "x", "x.context_length": 3000}, "capabilities": ["completion", "thinking"]});
    let said = check(Api::Ollama, "/api/show", shown, "tiny", 3000).await;
    assert_eq!((said.thinks, said.digest.as_deref(), said.names("tiny")), (Some(true), Some("d1"), Some(true)));
}

#[tokio::test]
async fn a_model_gets_the_family_and_the_size_that_the_server_reports() {
    let check = async |api: Api, path: &str, answer, name: &str, configured: &str, family: &str, size: Option<u64>| {
        let fake = FakeServer::start().await;
        fake.on("/api/tags", [Answer::json(&json!({"models": []}))]);
        fake.on(path, [Answer::json(&answer)]);
        let mut config = fake.config(api);
        config.model = name.into();
        let found = connect(config, |config| config.family = configured.into()).await.unwrap();
        assert_eq!((found.info().family.as_str(), found.info().parameters), (family, size), "{name}");
    };
    let shown = |architecture: &str, count: u64| json!({"model_info": {"general.architecture": architecture, "general.parameter_count": count}});
    let show = "/api/show";
    check(Api::Ollama, show, shown("llama", 1_235_814_432), "llama3.2:1b", "auto", "llama3", Some(1_235_814_432)).await;
    check(Api::Ollama, show, shown("qwen3", 751_632_384), "mine", "auto", "qwen3", Some(751_632_384)).await;
    check(Api::Ollama, show, shown("qwen3", 751_632_384), "mine", "qwen2", "qwen2", Some(751_632_384)).await;
    check(Api::Ollama, show, json!({}), "qwen3:8b", "auto", "qwen3", Some(8_000_000_000)).await;
    check(Api::Ollama, show, json!({}), "mine", "auto", "generic", None).await;
    check(Api::Ollama, show, shown("qwen3", 751_632_384), "qwen3:0.6b", "generic", "generic", Some(751_632_384)).await;
    let listed = json!({"data": [{"id": "mine", "meta": {"n_params": 494_032_768}}]});
    check(Api::LlamaCpp, "/v1/models", listed, "mine", "auto", "generic", Some(494_032_768)).await;
}

#[tokio::test]
async fn a_server_that_was_away_at_the_start_is_asked_again() {
    let fake = FakeServer::start().await;
    fake.on("/api/tags", [Answer::status(503)]);
    let mut config = fake.config(Api::Ollama);
    config.model = "mine".into();
    let model = connect(config, |config| config.family = "auto".into()).await.unwrap();
    assert_eq!((model.info().family.as_str(), model.info().parameters), ("generic", None), "nothing is known yet");
    fake.on("/api/tags", [Answer::json(&json!({"models": []}))]);
    let shown = json!({"model_info": {
        "general.architecture": "qwen3", "general.parameter_count": 751_632_384_u64, "qwen3.context_length": 2_048,
    }});
    fake.on("/api/show", [Answer::json(&shown)]);
    fake.on(OLLAMA, [Answer::stream(NDJSON, OLLAMA_REPLY)]);
    for _ in 0..2 {
        ask(&model, request("hello")).await.1.unwrap();
    }
    assert_eq!((model.info().family.as_str(), model.info().parameters), ("qwen3", Some(751_632_384)));
    assert_eq!(fake.requests(OLLAMA)[0].body["options"]["num_ctx"], json!(2_048));
    assert_eq!(fake.requests("/api/show").len(), 1, "and not again after that");
}

#[tokio::test]
async fn only_openais_interface_has_no_switch_for_thinking() {
    for (api, has_switch) in [(Api::OpenAi, false), (Api::LlamaCpp, true), (Api::Ollama, true)] {
        let fake = FakeServer::start().await;
        fake.on("/api/tags", [Answer::json(&json!({"models": []}))]);
        fake.on("/api/show", [Answer::json(&json!({}))]);
        let model = connect(fake.config(api), |_| {}).await.unwrap();
        assert_eq!(model.has_thinking_switch(), has_switch, "{api:?}");
    }
}

#[tokio::test]
async fn a_model_is_told_to_think_only_if_it_can() {
    for (capabilities, requests, think) in [
        (json!(["completion", "thinking"]), true, json!(true)),
        (json!(["completion", "thinking"]), false, json!(false)),
        (json!(["completion"]), true, json!(null)),
    ] {
        let fake = FakeServer::start().await;
        fake.on("/api/tags", [Answer::json(&json!({"models": []}))]);
        fake.on("/api/show", [Answer::json(&json!({"capabilities": capabilities}))]);
        fake.on(OLLAMA, [Answer::stream(NDJSON, OLLAMA_REPLY)]);
        let model = connect(fake.config(Api::Ollama), |_| {}).await.unwrap();
        let request = azera_model_api::ChatRequest { thinking: requests, ..request("hello") };
        ask(&model, request).await.1.unwrap();
        assert_eq!(fake.requests(OLLAMA)[0].body["think"], think);
    }
}

#[tokio::test]
async fn errors_that_a_person_must_fix_are_reported_at_once() {
    let fake = FakeServer::start().await;
    fake.on("/api/tags", [Answer::json(&json!({"models": [{"name": "llama3:8b"}, {"name": "qwen3:4b"}]}))]);
    fake.on("/api/show", [Answer::refusal(404, &json!({"error": "model 'tiny' not found"}))]);
    let error = connect(fake.config(Api::Ollama), |_| {}).await.unwrap_err().to_string();
    assert!(error.contains("has no model tiny; it has llama3:8b, qwen3:4b"), "{error}");
    // Another kind of server answers at that address.
    let error = connect(FakeServer::start().await.config(Api::Ollama), |_| {}).await.unwrap_err().to_string();
    assert!(
        error.contains("there is nothing at /api/tags (status 404); check chat_server.api and chat_server.url"),
        "{error}"
    );
}
