//! Models on servers, behind the interfaces of `azera-model-api`: OpenAI-compatible servers, llama.cpp's
//! `llama-server`, and Ollama, for chat and for embeddings; and servers that rerank.
//!
//! Start with [`RemoteChat`], [`RemoteEmbedder`] and [`RemoteReranker`], which say what a remote model cannot guarantee. `server.rs` sends
//! every request; `openai.rs` and `ollama.rs` hold the formats.
//!
//! Invariants:
//! - Requests go to the configured address and nowhere else. Redirects are not followed, and proxies of the environment
//!   are not used.
//! - A request is repeated only while nothing of its reply was shown.
//! - A server that keeps failing gets no requests for a while (`azera-breaker`). Callers get an error at once
//!   meanwhile.
//! - Everything that arrives has a limit: lines, streams, responses, and the wait for each.
//! - No log, error or `Debug` contains a key or what people say.

mod about;
mod chat;
mod config;
mod embed;
mod error;
mod events;
mod halves;
mod lines;
mod ollama;
mod openai;
mod rerank;
mod server;
mod sse;
mod stream;
mod tokens;
mod wire;

pub use about::{About, about};
pub use chat::{BACKGROUND_SLOTS, LONGEST_TOKEN_BYTES, RemoteChat};
pub use config::{
    Api, ApiKey, CHAT_QUEUE, DEFAULT_BYTES_PER_TOKEN, RemoteChatConfig, RemoteEmbedderConfig, RetryPolicy, ServerConfig,
};
pub use embed::{BATCH_TEXTS, EMBED_QUEUE, EMBED_REQUESTS, RemoteEmbedder};
pub use error::Error;
pub use lines::{MAX_LINE_BYTES, MAX_STREAM_BYTES};
pub use rerank::{RemoteReranker, RemoteRerankerConfig, RerankApi};
pub use server::MAX_ANSWER_BYTES;
