//! Model servers named in the configuration.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use azera_config::{Config, Secret, ServerApi};
use azera_model_api::{ChatModel, Embedder, EmbedderInfo};
use azera_model_registry::Kind;
use azera_model_remote::{
    Api, ApiKey, RemoteChat, RemoteChatConfig, RemoteEmbedder, RemoteEmbedderConfig, RetryPolicy, ServerConfig,
};
use serde::{Deserialize, Serialize};

/// Returns the server that replaces a local model of this kind, if one is configured.
pub fn configured(config: &Config, kind: Kind) -> Option<ServerConfig> {
    let (chat, embedding) = (&config.chat_server, &config.embedding_server);
    match kind {
        Kind::Chat => {
            let mut server = server("chat_server", chat.api, &chat.url, &chat.model, &chat.key)?;
            server.patience.first = Duration::from_secs(chat.first_word_timeout_s);
            Some(server)
        }
        Kind::Embedding => server("embedding_server", embedding.api, &embedding.url, &embedding.model, &embedding.key),
        Kind::Speech | Kind::Voice | Kind::Vad | Kind::Reranker => None,
    }
}

fn server(
    section: &str,
    api: ServerApi,
    url: &Option<String>,
    model: &Option<String>,
    key: &Option<Secret>,
) -> Option<ServerConfig> {
    let api = match api {
        ServerApi::None => return None,
        ServerApi::OpenAi => Api::OpenAi,
        ServerApi::LlamaCpp => Api::LlamaCpp,
        ServerApi::Ollama => Api::Ollama,
    };
    let default_url = || api.usual_url().unwrap_or_default().to_owned();
    Some(ServerConfig {
        api,
        url: url.clone().unwrap_or_else(default_url),
        model: model.clone().unwrap_or_default(),
        key: key.as_ref().map(|key| ApiKey::new(key.expose())),
        section: section.to_owned(),
        patience: RetryPolicy::default(),
    })
}

/// Returns true if `name` is the model on the chat server, with or without the server's host.
pub fn is_server_model(config: &Config, name: &str) -> bool {
    configured(config, Kind::Chat).is_some_and(|server| name == server.model || name == server.full_name())
}

/// Connects to the model on the chat server.
pub async fn chat(config: &Config, server: ServerConfig) -> anyhow::Result<Arc<dyn ChatModel>> {
    let remote = RemoteChatConfig {
        server,
        family: config.chat_server.family.clone(),
        context_tokens: config.models.context_tokens as usize,
        slots: config.models.slots as usize,
        bytes_per_token: config.chat_server.bytes_per_token,
    };
    Ok(RemoteChat::connect(remote).await?)
}

fn embedder_config(config: &Config, server: ServerConfig) -> RemoteEmbedderConfig {
    let settings = &config.embedding_server;
    RemoteEmbedderConfig {
        server,
        similarity_floor: config.memory.similarity_floor.unwrap_or(0.0),
        query_prefix: settings.query_prefix.clone(),
        document_prefix: settings.document_prefix.clone(),
        max_tokens: settings.max_tokens as usize,
    }
}

/// Connects to the model on the embedding server. If the server is unreachable, uses the answer saved last time.
/// Everything else then runs: recall uses words only, and indexing waits.
pub async fn embedder(config: &Config, server: ServerConfig, data: &Path) -> anyhow::Result<Arc<dyn Embedder>> {
    let remote = embedder_config(config, server);
    let query = ServerQuery::of(&remote);
    match RemoteEmbedder::connect(remote.clone()).await {
        Ok(embedder) => {
            query.remember(data, embedder.info())?;
            Ok(embedder)
        }
        Err(error) if error.is_transient() => match query.saved_answer(data, &remote)? {
            Some(info) => {
                tracing::warn!(%error, "the embedding server is unreachable: recall searches by words only until it is back");
                Ok(RemoteEmbedder::resume(remote, info)?)
            }
            None => Err(error.into()),
        },
        Err(error) => Err(error.into()),
    }
}

/// Connects to the embedding server now, or returns why it cannot be used.
pub async fn try_embedder(
    config: &Config,
    server: ServerConfig,
) -> Result<Arc<RemoteEmbedder>, azera_model_remote::Error> {
    RemoteEmbedder::connect(embedder_config(config, server)).await
}

/// Returns true if an earlier answer of the embedding server is saved. Azera can then start while the server is
/// unreachable.
pub fn has_saved_info(config: &Config, server: ServerConfig, data: &Path) -> anyhow::Result<bool> {
    let remote = embedder_config(config, server);
    Ok(ServerQuery::of(&remote).saved_answer(data, &remote)?.is_some())
}

/// Returns what the stores need to know about the embedding server: the saved answer, or else a fresh one.
pub async fn embedder_info(config: &Config, server: ServerConfig, data: &Path) -> anyhow::Result<EmbedderInfo> {
    let remote = embedder_config(config, server.clone());
    match ServerQuery::of(&remote).saved_answer(data, &remote)? {
        Some(info) => Ok(info),
        None => Ok(embedder(config, server, data).await?.info().clone()),
    }
}

/// The settings that a saved answer belongs to. Other settings need a new answer.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct ServerQuery {
    api: String,
    url: String,
    model: String,
    query_prefix: String,
    document_prefix: String,
}

/// The server's answer, as saved in the data folder.
#[derive(Debug, Serialize, Deserialize)]
struct SavedAnswer {
    #[serde(rename = "asked")]
    query: ServerQuery,
    id: String,
    dimension: usize,
}

fn file(data: &Path) -> PathBuf {
    data.join("embedding_server.json")
}

impl ServerQuery {
    fn of(remote: &RemoteEmbedderConfig) -> Self {
        Self {
            api: remote.server.api.as_str().to_owned(),
            url: remote.server.url.clone(),
            model: remote.server.model.clone(),
            query_prefix: remote.query_prefix.clone(),
            document_prefix: remote.document_prefix.clone(),
        }
    }

    fn remember(self, data: &Path, info: &EmbedderInfo) -> anyhow::Result<()> {
        let saved_answer = SavedAnswer { query: self, id: info.id.clone(), dimension: info.dimension };
        std::fs::create_dir_all(data).with_context(|| format!("making the folder {}", data.display()))?;
        let file = file(data);
        azera_files::write(&file, &serde_json::to_vec_pretty(&saved_answer)?)
            .with_context(|| format!("writing {}", file.display()))
    }

    fn saved_answer(&self, data: &Path, remote: &RemoteEmbedderConfig) -> anyhow::Result<Option<EmbedderInfo>> {
        let file = file(data);
        let bytes = match std::fs::read(&file) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error).with_context(|| format!("reading {}", file.display())),
        };
        // An unreadable file counts as missing: the server is asked again.
        let found = serde_json::from_slice::<SavedAnswer>(&bytes).ok().filter(|found| found.query == *self);
        Ok(found.map(|found| EmbedderInfo {
            id: found.id,
            dimension: found.dimension,
            similarity_floor: remote.similarity_floor,
            asks_otherwise: remote.query_prefix != remote.document_prefix,
        }))
    }
}
