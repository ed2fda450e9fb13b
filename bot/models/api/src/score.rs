use async_trait::async_trait;

use crate::{ChatMessage, Error, Lora, Priority, SessionKey};

/// How likely a model finds given continuations of a prompt.
#[derive(Debug, Clone)]
pub struct ScoreRequest {
    /// The prompt; its last message is the one the continuations answer or go on from.
    pub messages: Vec<ChatMessage>,
    /// Texts the assistant might say next, or that the last message might go on with.
    pub continuations: Vec<String>,
    /// Whether the continuations belong to the last message, instead of answering it.
    pub within: bool,
    /// The conversation it belongs to: what is evaluated of the prompt is taken from there and left there.
    pub session: Option<SessionKey>,
    /// Who waits.
    pub priority: Priority,
    /// Adapters to score with, on top of those the model itself was loaded with.
    pub loras: Vec<Lora>,
}

/// The score of one continuation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Score {
    /// Sum over the continuation's tokens of the natural logarithm of their probability.
    pub log_prob: f64,
    /// Tokens of the continuation; `-log_prob / tokens` is its cross-entropy in nats a token.
    pub tokens: usize,
}

/// A model that can say how likely a text is, for classification and surprise.
#[async_trait]
pub trait Scorer: Send + Sync {
    /// One score for each continuation, in order.
    async fn score(&self, request: ScoreRequest) -> Result<Vec<Score>, Error>;
}
