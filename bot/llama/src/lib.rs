//! llama.cpp behind the contracts of `azera-model`: chat, scores and embeddings from GGUF files, each model on an OS
//! thread of its own behind a bounded queue.
//!
//! Invariants:
//! - Contents of messages never become control tokens; only the model's own template does.
//! - Nothing of a conversation is written to disk. Shared prefixes (see [`azera_model::ChatRequest::shared_messages`])
//!   are.
//! - A running sequence never lacks room: its cells are reserved before it starts.
//! - Live work is never in a batch with background work.
//! - Work with different adapters is never in one batch, and what was evaluated with some is never continued with others.
//! - What was evaluated with adapters that a request named is not written to disk.

mod adapter;
mod backend;
mod cache;
mod chat;
mod config;
mod disk;
mod embed;
mod engine;
mod events;
mod job;
mod kv;
mod parked;
mod plan;
mod prompt;
mod queue;
mod reading;
mod rota;
mod sampler;
mod schema;
mod score;
mod template;
mod tokenizer;
mod worker;

pub use adapter::{MAX_ADAPTER_BYTES, MadeUp, check_adapter};
pub use cache::{RESTING_TOKENS, SHARED_PREFIXES};
pub use chat::{LlamaChat, MAX_STOP_BYTES, MAX_STOP_STRINGS};
pub use config::{
    DEFAULT_ADAPTER_BYTES, DEFAULT_CONTEXT_TOKENS, DEFAULT_EMBED_QUEUE, DEFAULT_FULL_CONVERSATIONS,
    DEFAULT_PARKED_BYTES, DEFAULT_PREFIX_DISK_BYTES, DEFAULT_QUEUE, DEFAULT_SLOTS, LlamaChatConfig,
    LlamaEmbedderConfig, MAX_SLOTS, STEP_TOKENS,
};
pub use embed::{EMBED_STEP_TEXTS, EMBED_STEP_TOKENS, LlamaEmbedder};
pub use prompt::MIN_SHARED_TOKENS;
pub use reading::LlamaReader;
pub use sampler::MAX_GRAMMAR_BYTES;
pub use score::{MAX_CONTINUATIONS, SCORE_BRANCHES, SCORE_STEP_TOKENS};

#[cfg(test)]
mod tests;
