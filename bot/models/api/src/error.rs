use std::path::PathBuf;

use thiserror::Error;

/// Why a model could not do what it was asked.
#[derive(Debug, Error)]
pub enum Error {
    /// The prompt and the reserved reply do not fit the context window.
    #[error("the prompt has {prompt} tokens and {reply} are reserved for the reply, but the model holds {context}")]
    TooLong {
        /// Tokens of the prompt.
        prompt: usize,
        /// Tokens reserved for the reply.
        reply: usize,
        /// Tokens the context window holds.
        context: usize,
    },
    /// A field of the request is out of range or contradicts another.
    #[error("the request is invalid: {0}")]
    Invalid(String),
    /// The queue in front of the model is full.
    #[error("the model is busy: {waiting} requests are already waiting")]
    Busy {
        /// Requests waiting at the time.
        waiting: usize,
    },
    /// The model file could not be loaded.
    #[error("the model could not be loaded: {0}")]
    Load(String),
    /// An adapter of the request cannot be used: its file is missing or damaged, is not the one that was named, or was
    /// made for another model.
    #[error("the adapter {} cannot be used: {reason}", path.display())]
    Lora {
        /// Its file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The engine failed while working.
    #[error("the model failed: {0}")]
    Engine(String),
    /// The engine runs elsewhere and cannot be reached now, or has too much to do, or broke off.
    #[error("the model is out of reach: {0}")]
    Unavailable(String),
    /// The engine was shut down.
    #[error("the model was stopped")]
    Stopped,
}

impl Error {
    /// Whether the same request may succeed later without anyone changing anything.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Busy { .. } | Self::Unavailable(_))
    }
}
