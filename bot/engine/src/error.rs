use thiserror::Error;

/// Why a stage of the turn failed.
#[derive(Debug, Error)]
pub enum Error {
    /// Memory failed.
    #[error("memory: {0}")]
    Memory(#[from] azera_memory::Error),
    /// The model failed.
    #[error("model: {0}")]
    Model(#[from] azera_model_api::Error),
    /// The platform failed.
    #[error("platform: {0}")]
    Platform(#[from] azera_adapter::PlatformError),
    /// No prompt could be made.
    #[error(transparent)]
    Prompt(#[from] azera_prompt::Error),
    /// As many messages as may wait in a chat are waiting; this one was not taken in.
    #[error("too many messages are waiting")]
    QueueFull,
    /// The model gave nothing but blanks, each time it was asked.
    #[error("the model gave no answer")]
    NoAnswer,
    /// The chat's persona is not there any more.
    #[error("there is no persona {0}; choose one with /persona use")]
    NoPersona(String),
    /// An adapter named a platform that was never attached.
    #[error("no platform of that name is attached")]
    NoPlatform,
    /// The person cannot read the chat.
    #[error("that person cannot write in that chat")]
    NotAllowed,
    /// A task of ours ended before its work was done.
    #[error("the work was interrupted")]
    Interrupted,
}

impl Error {
    /// Whether the same turn may succeed later without anyone changing anything.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Memory(error) => error.is_transient(),
            Self::Model(error) => error.is_transient() || matches!(error, azera_model_api::Error::Stopped),
            Self::Platform(error) => error.is_transient(),
            Self::Interrupted | Self::QueueFull => true,
            Self::Prompt(_) | Self::NoAnswer | Self::NoPersona(_) | Self::NoPlatform | Self::NotAllowed => false,
        }
    }
}
