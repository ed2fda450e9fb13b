use async_trait::async_trait;

use crate::{ChatMessage, Error, Lora, Priority, SessionKey};

/// Asks how likely a model finds given continuations of a prompt.
#[derive(Debug, Clone)]
pub struct ScoreRequest {
    /// The prompt. The continuations answer or continue its last message.
    pub messages: Vec<ChatMessage>,
    /// Texts that the assistant might say next, or that might continue the last message.
    pub continuations: Vec<String>,
    /// True if the continuations belong to the last message, false if they answer it.
    pub within: bool,
    /// The conversation of the prompt. The engine reuses evaluated tokens from it and stores new ones there.
    pub session: Option<SessionKey>,
    /// Whether a person waits for the result.
    pub priority: Priority,
    /// LoRAs for this request, in addition to those that the model was loaded with.
    pub loras: Vec<Lora>,
}

/// The score of one continuation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Score {
    /// The sum of the natural logarithms of the probabilities of the continuation's tokens.
    pub log_prob: f64,
    /// Tokens in the continuation; `-log_prob / tokens` is its cross-entropy in nats per token.
    pub tokens: usize,
}

/// A model that can rate how likely a text is, for classification and surprise.
#[async_trait]
pub trait Scorer: Send + Sync {
    /// Returns one score for each continuation, in order.
    async fn score(&self, request: ScoreRequest) -> Result<Vec<Score>, Error>;
}
