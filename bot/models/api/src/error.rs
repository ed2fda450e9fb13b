use std::path::PathBuf;

use thiserror::Error;

/// The reasons why a model cannot serve a request.
#[derive(Debug, Error)]
pub enum Error {
    /// The prompt and the reserved reply do not fit in the context window.
    #[error("the prompt has {prompt} tokens and {reply} are reserved for the reply, but the model holds {context}")]
    TooLong {
        /// Tokens of the prompt.
        prompt: usize,
        /// Tokens reserved for the reply.
        reply: usize,
        /// Tokens in the context window.
        context: usize,
    },
    /// A field of the request is out of range or contradicts another.
    #[error("the request is invalid: {0}")]
    Invalid(String),
    /// The queue of the model is full.
    #[error("the model is busy: {waiting} requests are already waiting")]
    Busy {
        /// Requests that were waiting at the time.
        waiting: usize,
    },
    /// The model file could not be loaded.
    #[error("the model could not be loaded: {0}")]
    Load(String),
    /// A LoRA of the request cannot be used: its file is missing or damaged, has another hash, or was made for another
    /// model.
    #[error("the LoRA {} cannot be used: {reason}", path.display())]
    Lora {
        /// The path of its file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The engine failed while it worked.
    #[error("the model failed: {0}")]
    Engine(String),
    /// The engine is a remote server that is unreachable, is overloaded, or broke off.
    #[error("the model is out of reach: {0}")]
    Unavailable(String),
    /// The engine did not answer in time, or is left alone for a while because it failed several times.
    #[error("the model is too slow: {0}")]
    TooSlow(String),
    /// The engine was shut down.
    #[error("the model was stopped")]
    Stopped,
}

impl Error {
    /// Returns true if the same request may succeed later with nothing changed.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Busy { .. } | Self::Unavailable(_) | Self::TooSlow(_))
    }
}
