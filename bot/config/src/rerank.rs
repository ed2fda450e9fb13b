//! The settings of the model that reranks, on this machine or on a server.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Secret;

/// The model on this machine that reads a question and a memory together (a cross-encoder) and orders what recall found.
/// Azera uses one that is installed, and fetches none by itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Reranker {
    /// Let an installed model order what recall found, unless a server does.
    pub enabled: bool,
    /// The model, by its name in the registry. When unset: the choice of `azera models use`, or the first that is
    /// installed.
    #[schemars(length(min = 1, max = 100), example = "ms-marco-minilm-l6-v2")]
    pub model: Option<String>,
    /// The most memories that the model reads for one question.
    #[schemars(range(min = 2, max = 100))]
    pub candidates: u32,
    /// The share of the model's opinion in the order, 0 to 1. The rest is recall's own score.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub weight: f32,
    /// Milliseconds that a recall waits for the model. A later answer is dropped.
    #[schemars(range(min = 10, max = 10_000))]
    pub timeout_ms: u64,
}

impl Default for Reranker {
    fn default() -> Self {
        Self { enabled: true, model: None, candidates: 10, weight: 0.5, timeout_ms: 100 }
    }
}

/// The interface of a server that reranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RerankApi {
    /// no server: an installed model orders, or nothing does
    None,
    /// llama.cpp's llama-server with a reranking model
    LlamaCpp,
    /// Text Embeddings Inference
    Tei,
    /// Jina's interface: Jina, vLLM, Infinity and others
    Jina,
    /// Cohere's second interface
    Cohere,
}

/// A server with a model that reads a question and a memory together (a cross-encoder) and orders what recall found. Azera
/// sends it questions and the best memories for them. While it does not answer, recall keeps its own order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RerankServer {
    /// The interface of the server.
    pub api: RerankApi,
    /// The server's address. When unset: the default address of llama-server on this machine.
    #[schemars(url, length(min = 1, max = 2048), example = "http://127.0.0.1:8080")]
    pub url: Option<String>,
    /// The model's name on the server. A server with one model needs none.
    #[schemars(length(min = 1, max = 200), example = "bge-reranker-v2-m3")]
    pub model: Option<String>,
    /// The server's key, if it requires one. Better set AZERA__RERANK_SERVER__KEY than write it here.
    #[schemars(length(min = 1, max = 1024), example = "sk-...", extend("writeOnly" = true))]
    pub key: Option<Secret>,
    /// The most memories that the server reads for one question.
    #[schemars(range(min = 2, max = 100))]
    pub candidates: u32,
    /// The share of the server's opinion in the order, 0 to 1. The rest is recall's own score.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub weight: f32,
    /// Milliseconds that a recall waits for the server, connection included. A later answer is dropped.
    #[schemars(range(min = 10, max = 10_000))]
    pub timeout_ms: u64,
}

impl Default for RerankServer {
    fn default() -> Self {
        Self { api: RerankApi::None, url: None, model: None, key: None, candidates: 30, weight: 0.5, timeout_ms: 150 }
    }
}

impl RerankServer {
    /// Returns the keys without which the chosen interface cannot work, and what is wrong with each.
    pub(crate) fn missing(&self) -> Vec<(&'static str, String)> {
        let hosted = matches!(self.api, RerankApi::Jina | RerankApi::Cohere);
        let mut missing = Vec::new();
        if (hosted || self.api == RerankApi::Tei) && self.url.is_none() {
            missing.push(("url", "`rerank_server.url` must be set: such a server can be anywhere".to_owned()));
        }
        if hosted && self.model.is_none() {
            missing.push(("model", "`rerank_server.model` must name a model of the server".to_owned()));
        }
        missing
    }
}
