//! The interfaces of models: chat ([`ChatModel`]), score ([`Scorer`]), embed ([`Embedder`]) and rerank ([`Reranker`]).
//!
//! This crate holds contracts only, and a [`ScriptedModel`] for tests. The engines are in `azera-model-llama` and
//! `azera-model-remote`. Nothing here knows memory, platforms or personas. Start with [`ChatModel`] and
//! [`ChatRequest`].
//!
//! Invariants:
//! - Dropping a [`Reply`] cancels the generation within one decode step.
//! - `Debug` of a type that holds a prompt or a reply shows sizes, never text.
//! - A [`ChatRequest`] contains everything that can change the reply. The same request with the same seed on the same
//!   engine gives the same reply. A remote server may not keep this; `azera-model-remote` says what it guarantees.

mod chat;
mod code_spans;
mod embed;
mod error;
mod lora;
mod marks;
mod rerank;
mod score;
mod scripted;
mod text;

pub use chat::{
    ChatMessage, ChatModel, ChatRequest, Event, FinishReason, Grammar, ModelInfo, Priority, REPLY_QUEUE, Reply, Role,
    Sampling, SessionKey, Usage,
};
pub use embed::{Embedder, EmbedderInfo, Purpose};
pub use error::Error;
pub use lora::{BadLoraId, Lora, LoraId, MAX_LORAS};
pub use rerank::{Reranker, RerankerInfo};
pub use score::{Score, ScoreRequest, Scorer};
pub use scripted::{Script, ScriptedModel};
pub use text::{Opening, ReplyText};
