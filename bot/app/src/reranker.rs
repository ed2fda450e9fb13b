//! What reranks: the server that the configuration names, or else an installed model.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use azera_config::{Config, RerankApi as Configured};
use azera_engine::Engine;
use azera_model_api::Reranker;
use azera_model_llama::{LlamaReranker, LlamaRerankerConfig};
use azera_model_registry::{InstalledModel, Kind, Models};
use azera_model_remote::{ApiKey, Error, RemoteReranker, RemoteRerankerConfig, RerankApi, RetryPolicy};

use crate::bootstrap;
use crate::doctor::{Found, unencrypted};
use crate::set_aside::unless_wrong;

const SECTION: &str = "rerank_server";

/// How long `azera doctor` waits for the model on this machine, which may be slower than recall allows.
const DOCTOR_WAIT: Duration = Duration::from_secs(60);

/// What `azera doctor` asks, and the texts that it lets the model read: about as long as what people say.
const TEST_QUESTION: &str = "Where does the grey cat of the harbour master sleep?";
const TEST_TEXT: &str = "The grey cat of the harbour master sleeps on the sofa in his office, unless the old dog from next \
                         door was there before her; then she takes the window sill.";

/// Where llama-server is found if the configuration names no address.
const LLAMA_SERVER: &str = "http://127.0.0.1:8080";

/// Lets the engine rerank what recall finds: by a server, if one is configured in a way that can work, or else by `local`.
/// Sends nothing yet.
pub fn give_reranker(engine: &Engine, config: &Config, local: Option<Arc<LlamaReranker>>) {
    if let Some(server) = unless_wrong(SECTION, reranker(config)) {
        engine.give_reranker(server);
    } else if let Some(local) = local {
        engine.give_reranker(local);
    }
}

/// Returns true if no model on this machine reranks: the configuration says so, or names a server for it.
pub fn is_off(config: &Config) -> bool {
    !config.reranker.enabled || config.rerank_server.api != Configured::None
}

/// Loads the model on this machine that reranks; `None` if there is none. Recall works without it, so a model that cannot
/// be used is only logged.
pub fn load(config: &Config, models: &Models) -> Option<Arc<LlamaReranker>> {
    if is_off(config) {
        return None;
    }
    let wait = Duration::from_millis(config.reranker.timeout_ms);
    let loaded = installed(config, models).and_then(|found| match found {
        Some(found) => Ok(Some(LlamaReranker::load(local_config(config, &found, wait))?)),
        None => Ok(None),
    });
    loaded.unwrap_or_else(|error| {
        let error = format!("{error:#}");
        tracing::warn!(error, "recall keeps its own order: the reranking model cannot be used");
        None
    })
}

/// Returns the installed model that reranks; `None` if there is none.
///
/// # Errors
/// The configuration names a model that is unknown, not installed or of another kind.
fn installed(config: &Config, models: &Models) -> anyhow::Result<Option<InstalledModel>> {
    if config.reranker.model.is_none() && models.selected(Kind::Reranker)?.is_none() {
        return Ok(None);
    }
    let name = bootstrap::chosen(config, models, Kind::Reranker)?;
    match models.registry()?.get(&name).map(|entry| entry.kind) {
        Some(Kind::Reranker) => {}
        Some(kind) => bail!("{name} is no {} but of the kind {kind}", Kind::Reranker),
        None => bail!("there is no model {name:?}; `azera models list` shows those that there are"),
    }
    let found = models.find(&name)?;
    found
        .with_context(|| format!("{name} is not installed, or damaged; `azera models pull {name}` fetches it"))
        .map(Some)
}

fn local_config(config: &Config, installed: &InstalledModel, wait: Duration) -> LlamaRerankerConfig {
    let settings = &config.reranker;
    LlamaRerankerConfig {
        candidates: settings.candidates as usize,
        weight: settings.weight,
        wait,
        threads: (config.models.threads > 0).then_some(config.models.threads as usize),
        gpu_layers: config.models.gpu_layers,
        ..LlamaRerankerConfig::new(&installed.path, &installed.entry.name)
    }
}

/// Checks the model on this machine for `azera doctor`, and how long it takes.
pub async fn check_local(config: &Config) -> Found {
    if is_off(config) {
        let why = if config.reranker.enabled { "a server takes its place" } else { "reranker.enabled is false" };
        return Found::Good(format!("not used: {why}"));
    }
    match try_local(config).await {
        Ok(None) => Found::Good("none is installed: recall keeps its own order".into()),
        Ok(Some((name, took))) => {
            let (candidates, limit) = (config.reranker.candidates, config.reranker.timeout_ms);
            let text = format!("{name}, {} ms for {candidates} short texts", took.as_millis());
            if took < Duration::from_millis(limit) {
                return Found::Good(text);
            }
            Found::Note(format!(
                "{text}, which is later than the {limit} ms that recall waits: lower reranker.candidates or raise \
                 reranker.timeout_ms"
            ))
        }
        Err(error) => {
            Found::Bad(format!("{error:#}"), "see [reranker] in the configuration; recall keeps its own order".into())
        }
    }
}

/// Returns the name of the installed model, and how long it took for as many texts as recall would let it read.
async fn try_local(config: &Config) -> anyhow::Result<Option<(String, Duration)>> {
    let Some(found) = installed(config, &bootstrap::models(config)?)? else { return Ok(None) };
    let settings = local_config(config, &found, DOCTOR_WAIT);
    let model = tokio::task::spawn_blocking(move || LlamaReranker::load(settings)).await??;
    let texts = vec![TEST_TEXT.to_owned(); model.info().candidates];
    // The first answer also pays for reading the file.
    model.rerank(TEST_QUESTION, &texts).await?;
    let begun = Instant::now();
    model.rerank(TEST_QUESTION, &texts).await?;
    Ok(Some((found.entry.name, begun.elapsed())))
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
        Ok(None) => return Found::Good("no server".into()),
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
    let name = reranker.info().name.clone();
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
