//! Tests of the errors that people see when a server rejects a request.

use std::io::Write;
use std::sync::{Arc, Mutex};

use azera_model_api::Error;
use azera_model_remote::{Api, ServerConfig};
use serde_json::{Value, json};

use crate::chat::{OLLAMA, OPENAI, OPENAI_REPLY, ask, connect, fake_and_model, request};
use crate::fake::{Answer, FakeServer, SSE};

/// Returns the error text of a rejected reply, without the server's address.
async fn error_text(api: Api, path: &str, status: u16, body: &Value) -> String {
    let (fake, model) = fake_and_model(api).await;
    fake.on("/v1/models", [Answer::json(&json!({"data": [{"id": "big"}, {"id": "small"}]}))]);
    fake.on(path, [Answer::refusal(status, body)]);
    let error = ask(&model, request("hush-hush")).await.1.unwrap_err();
    let text = error.to_string();
    assert!(!text.contains("sk-hush") && !format!("{error:?}").contains("sk-hush"), "{text}");
    assert!(!text.contains("hush-hush"), "{text}");
    assert!(!error.is_transient(), "{text}");
    text.replace(&fake.url, "URL")
}

#[tokio::test]
async fn error_texts_say_what_to_change() {
    let error = |message: &str, code: &str| json!({"error": {"message": message, "code": code}});
    let openai = async |status, body: Value| error_text(Api::OpenAi, OPENAI, status, &body).await;
    assert_eq!(
        openai(401, error("Incorrect API key: sk-hush.", "invalid_api_key")).await,
        "the model could not be loaded: the OpenAI-compatible server at URL/v1 refuses the key: set chat_server.key, or \
         AZERA__CHAT_SERVER__KEY in the environment (Incorrect API key: [key].)"
    );
    assert_eq!(
        openai(404, error("The model `tiny` does not exist", "model_not_found")).await,
        "the model could not be loaded: the OpenAI-compatible server at URL/v1 has no model tiny; it has big, small"
    );
    assert_eq!(
        openai(404, json!({"detail": "Not Found"})).await,
        "the model failed: the OpenAI-compatible server at URL/v1 sent an unexpected answer: there is nothing at \
         /v1/chat/completions (status 404); check chat_server.api and chat_server.url"
    );
    assert_eq!(
        openai(400, error("This model's maximum context length is 10 tokens.", "context_length_exceeded")).await,
        "the request is invalid: that is too long for the OpenAI-compatible server at URL/v1: This model's maximum \
         context length is 10 tokens."
    );
    assert_eq!(
        openai(429, error("You exceeded your current quota", "insufficient_quota")).await,
        "the model failed: the OpenAI-compatible server at URL/v1 refused the request (status 429: You exceeded your \
         current quota)"
    );
    assert_eq!(
        error_text(Api::Ollama, OLLAMA, 404, &json!({"error": "model 'tiny' not found"})).await,
        "the model could not be loaded: Ollama at URL has no model tiny; it has tiny:latest"
    );
    assert_eq!(
        error_text(Api::Ollama, OLLAMA, 400, &json!({"error": "\"tiny\" does not support chat"})).await,
        "the model failed: Ollama at URL refused the request (status 400: \"tiny\" does not support chat)"
    );
}

#[tokio::test]
async fn a_missing_key_is_reported() {
    let fake = FakeServer::start().await;
    fake.on("/v1/models", [Answer::status(401)]);
    let mut config = fake.config(Api::OpenAi);
    config.key = None;
    let error = connect(config, |_| {}).await.unwrap_err().to_string();
    assert!(error.contains("wants a key: set chat_server.key"), "{error}");
    assert_eq!(fake.requests("/v1/models")[0].authorization, None);
}

#[tokio::test]
async fn redirects_are_reported_and_not_followed() {
    let other_place = FakeServer::start().await;
    let (fake, model) = fake_and_model(Api::OpenAi).await;
    let target = format!("{}/v1/chat/completions", other_place.url);
    fake.on(OPENAI, [Answer::Whole(307, vec![("location", target.clone())], Vec::new())]);
    let error = ask(&model, request("hello")).await.1.unwrap_err();
    assert!(
        matches!(&error, Error::Engine(why) if why.contains(&target) && why.contains("chat_server.url")),
        "{error}"
    );
    assert!(other_place.requests(OPENAI).is_empty());
}

#[tokio::test]
async fn an_invalid_configuration_is_reported_before_anything_is_sent() {
    let check = async |change: fn(&mut ServerConfig), words: &str| {
        let fake = FakeServer::start().await;
        let mut config = fake.config(Api::OpenAi);
        change(&mut config);
        let debug = format!("{config:?}");
        assert!(debug.contains("[redacted]") && !debug.contains("hush"), "{debug}");
        let error = connect(config, |_| {}).await.unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
    };
    check(|config| config.url = "somewhere".into(), "chat_server.url is no address").await;
    check(|config| config.url = "ftp://host".into(), "chat_server.url must begin with http").await;
    check(|config| config.url = "http://me:pw@host/v1".into(), "must hold no password; set chat_server.key").await;
    check(|config| config.url = "http://host/v1?key=x".into(), "chat_server.url must end with the path").await;
    check(|config| config.model = " ".into(), "chat_server.model names no model").await;
    check(
        |config| config.key = Some(azera_model_remote::ApiKey::new("sk-hush\n")),
        "chat_server.key holds a character",
    )
    .await;
}

/// The log of a test.
#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn neither_keys_nor_messages_are_logged() {
    let written = Written::default();
    let log = written.clone();
    let subscriber =
        tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_writer(move || log.clone()).finish();
    let _here = tracing::subscriber::set_default(subscriber);
    let (fake, model) = fake_and_model(Api::OpenAi).await;
    let refused = json!({"error": {"message": "no", "code": "unsupported_value", "param": "seed"}});
    fake.on(
        OPENAI,
        [
            Answer::status(500),
            Answer::refusal(400, &refused),
            Answer::refusal(401, &json!({"error": {"message": "bad key sk-hush"}})),
            Answer::stream(SSE, OPENAI_REPLY),
        ],
    );
    assert!(ask(&model, request("hush-hush")).await.1.is_err());
    assert!(ask(&model, request("hush-hush")).await.1.is_ok());
    let log = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
    assert!(log.contains("retrying a request") && log.contains("omitting it from now on"), "{log}");
    for secret in ["hush", "Gr\u{fc}\u{df}e", "Bearer"] {
        assert!(!log.contains(secret), "{log}");
    }
}
