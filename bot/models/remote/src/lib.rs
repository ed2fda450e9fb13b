//! Models on servers behind the contracts of `azera-model-api`: OpenAI-compatible ones, llama.cpp's `llama-server`, Ollama; for
//! chat and for embeddings. What such a model cannot promise stands at [`RemoteChat`] and [`RemoteEmbedder`].
//!
//! Invariants:
//! - What is sent goes to the configured address and nowhere else: redirects are not followed, proxies of the
//!   environment not used.
//! - A request is repeated only while nothing of its answer was shown.
//! - A server that keeps failing is left alone for a while (`azera-breaker`); who asks meanwhile is told at once.
//! - Everything that arrives has a limit: lines, streams, answers, the waiting for each.
//! - A key is in no log, error or `Debug`; what people say is in none either.

mod about;
mod chat;
mod config;
mod embed;
mod error;
mod events;
mod lines;
mod ollama;
mod openai;
mod says;
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
pub use server::MAX_ANSWER_BYTES;
