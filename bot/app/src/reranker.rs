//! The server that reranks, as the configuration names it.

use std::sync::Arc;
use std::time::Duration;

use azera_config::{Config, RerankApi as Configured};
use azera_engine::Engine;
use azera_model_remote::{ApiKey, Error, RemoteReranker, RemoteRerankerConfig, RerankApi, RetryPolicy};

use crate::doctor::{Found, unencrypted};
use crate::set_aside::unless_wrong;

const SECTION: &str = "rerank_server";

/// Where llama-server is found if the configuration names no address.
const LLAMA_SERVER: &str = "http://127.0.0.1:8080";

/// Lets the engine rerank what recall finds, if a server is configured in a way that can work. Sends nothing yet.
pub fn give_reranker(engine: &Engine, config: &Config) {
    if let Some(reranker) = unless_wrong(SECTION, reranker(config)) {
        engine.give_reranker(reranker);
    }
}

/// Returns a client of the configured server, if there is one.
fn reranker(config: &Config) -> Result<Option<Arc<RemoteReranker>>, Error> {
    let settings = &config.rerank_server;
    let api = match settings.api {
        Configured::None => return Ok(None),
        Configured::LlamaCpp => RerankApi::LlamaCpp,
        Configured::Tei => RerankApi::Tei,
        Configured::Jina => RerankApi::Jina,
        Configured::Cohere => RerankApi::Cohere,
    };
    let server = RemoteRerankerConfig {
        api,
        url: settings.url.clone().unwrap_or_else(|| LLAMA_SERVER.to_owned()),
        model: settings.model.clone(),
        key: settings.key.as_ref().map(|key| ApiKey::new(key.expose())),
        section: SECTION.to_owned(),
        candidates: settings.candidates as usize,
        weight: settings.weight,
        wait: Duration::from_millis(settings.timeout_ms),
        patience: RetryPolicy::default(),
    };
    RemoteReranker::new(server).map(Some)
}

/// Checks the server for `azera doctor`.
pub async fn check(config: &Config) -> Found {
    let settings = &config.rerank_server;
    let mend = || format!("correct [{SECTION}] in the configuration, or set api = \"none\" there");
    let reranker = match reranker(config) {
        Ok(None) => return Found::Good("no server: recall keeps its own order".into()),
        Ok(Some(reranker)) => reranker,
        Err(error) => return Found::Bad(error.to_string(), mend()),
    };
    let took = match reranker.try_out().await {
        Ok(took) => took,
        Err(error) if error.is_transient() => {
            return Found::Note(format!("{error}; until it answers, recall keeps its own order"));
        }
        Err(error) => return Found::Bad(error.to_string(), mend()),
    };
    let name = azera_model_api::Reranker::info(reranker.as_ref()).name.clone();
    let text = format!("{name}, {} ms for {} short texts", took.as_millis(), settings.candidates);
    if took > Duration::from_millis(settings.timeout_ms) {
        let limit = settings.timeout_ms;
        return Found::Note(format!(
            "{text}, which is later than the {limit} ms that recall waits: lower {SECTION}.candidates or raise \
             {SECTION}.timeout_ms"
        ));
    }
    if reranker.is_readable() { unencrypted(&text, "what is said", "https") } else { Found::Good(text) }
}
