//! The settings of the server that sees pictures.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Secret;

/// A server with a model that sees. Azera sends it the pictures that people show to a persona, whose
/// descriptions count as guesses, and drawn pictures before anybody sees them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct VisionServer {
    /// The server's address with its path, for OpenAI's interface for chat: llama-server with a projector, Ollama, vLLM
    /// and others. When unset: no server, and Azera says that it cannot see.
    #[schemars(url, length(min = 1, max = 2048), example = "http://127.0.0.1:8080/v1")]
    pub url: Option<String>,
    /// The model's name on the server. A server with one model needs none.
    #[schemars(length(min = 1, max = 200), example = &"qwen2.5vl:3b")]
    pub model: Option<String>,
    /// The server's key, if it requires one. Better set AZERA__VISION_SERVER__KEY than write it here.
    #[schemars(length(min = 1, max = 1024), example = "sk-...", extend("writeOnly" = true))]
    pub key: Option<Secret>,
    /// Seconds to wait for a description. A model without a GPU needs many.
    #[schemars(range(min = 1, max = 600))]
    pub timeout_s: u64,
}

impl Default for VisionServer {
    fn default() -> Self {
        Self { url: None, model: None, key: None, timeout_s: 60 }
    }
}
