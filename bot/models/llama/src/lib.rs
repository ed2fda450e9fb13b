//! llama.cpp behind the interfaces of `azera-model-api`: chat, scores, embeddings and reranking from GGUF files.
//!
//! Each model runs on an OS thread of its own behind a bounded queue. Start with [`LlamaChat`],
//! [`LlamaEmbedder`] and [`LlamaReranker`]. `engine.rs` is the decode loop of a chat model, `cache.rs` decides what its
//! key-value cache holds, `encoder.rs` is the engine of embedding and reranking models, and `lora/` loads LoRAs.
//!
//! Invariants:
//! - The content of a message never becomes a control token. Only the model's own template can contain control tokens.
//! - Nothing of a conversation is written to disk. Only shared prefixes are (see
//!   [`azera_model_api::ChatRequest::shared_messages`]).
//! - A running sequence never lacks room: its cells are reserved before it starts.
//! - Foreground work is never in a batch with background work.
//! - Work with different LoRAs is never in one batch, and tokens evaluated under one set of LoRAs are never reused
//!   under another.
//! - Tokens evaluated under LoRAs that a request named are not written to disk.

mod attention;
mod backend;
mod cache;
mod chat;
mod config;
mod disk;
mod embed;
mod encoder;
mod engine;
mod events;
mod job;
mod kv;
mod length;
mod lora;
mod plan;
mod prompt;
mod queue;
mod rerank;
mod rotation;
mod sampler;
mod schema;
mod score;
mod swap;
mod template;
mod tokenizer;
mod vocabulary;
mod worker;

pub use cache::{RESTING_TOKENS, SHARED_PREFIXES};
pub use chat::{LlamaChat, MAX_STOP_BYTES, MAX_STOP_STRINGS};
pub use config::{
    DEFAULT_CONTEXT_TOKENS, DEFAULT_EMBED_QUEUE, DEFAULT_FULL_CONVERSATIONS, DEFAULT_LORA_BYTES,
    DEFAULT_PREFIX_DISK_BYTES, DEFAULT_QUEUE, DEFAULT_SLOTS, DEFAULT_SWAP_BYTES, Dates, LlamaChatConfig,
    LlamaEmbedderConfig, LlamaRerankerConfig, MAX_SLOTS, STEP_TOKENS,
};
pub use embed::LlamaEmbedder;
pub use encoder::{EMBED_STEP_TEXTS, EMBED_STEP_TOKENS};
pub use lora::{MAX_LORA_BYTES, RandomLora, check_lora};
pub use prompt::MIN_SHARED_TOKENS;
pub use rerank::LlamaReranker;
pub use sampler::MAX_GRAMMAR_BYTES;
pub use score::{MAX_CONTINUATIONS, SCORE_BRANCHES, SCORE_STEP_TOKENS};
pub use vocabulary::LlamaVocabulary;

#[cfg(test)]
mod tests;
