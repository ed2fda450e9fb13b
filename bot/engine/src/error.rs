use thiserror::Error;
use tokio::task::JoinError;

/// How often a turn that panics is tried. After that its message is remembered unanswered.
pub const MAX_PANICS: u32 = 3;

/// Why a turn failed.
#[derive(Debug, Error)]
pub enum Error {
    /// The memory failed.
    #[error("memory: {0}")]
    Memory(#[from] azera_memory::Error),
    /// The model failed.
    #[error("model: {0}")]
    Model(#[from] azera_model_api::Error),
    /// The platform failed.
    #[error("platform: {0}")]
    Platform(#[from] azera_adapter::PlatformError),
    /// No prompt could be composed.
    #[error(transparent)]
    Prompt(#[from] azera_prompt::Error),
    /// As many messages as may wait in the chat are waiting already; this one was not accepted.
    #[error("too many messages are waiting")]
    QueueFull,
    /// The model returned only whitespace on every attempt.
    #[error("the model gave no answer")]
    NoAnswer,
    /// The chat's persona no longer exists.
    #[error("there is no persona {0}; choose one with /persona use")]
    NoPersona(String),
    /// Somebody asked for what was known at a time, and named none.
    #[error("{0:?} names no time; write a date such as 2026-06-30, or `June` or `last month`")]
    NoTime(String),
    /// An adapter named a platform that is not attached.
    #[error("no platform of that name is attached")]
    NoPlatform,
    /// A declared command has no arm in `Commands::run_command`, which is a defect.
    #[error("the command /{0} is declared and has no code")]
    NotDispatched(&'static str),
    /// A vault of a person, or its key, cannot be used.
    #[error(transparent)]
    Vault(#[from] azera_memory_vault::Error),
    /// Nobody gave the engine the keys of vaults.
    #[error("this Azera keeps no vaults")]
    NoVault,
    /// Recordings of voices cannot be kept or read.
    #[error("recordings of voices: {0}")]
    Voice(String),
    /// The recordings of calls cannot be read or removed.
    #[error("recordings of calls: {0}")]
    Recordings(#[from] std::io::Error),
    /// The person cannot read the chat.
    #[error("that person cannot write in that chat")]
    NotAllowed,
    /// The turn panicked.
    #[error("a defect ended this turn; it was tried {tries} times")]
    Panicked {
        /// How often the turn was tried.
        tries: u32,
    },
    /// A defect made a task or blocking work panic. In a turn it counts as a panic of the turn.
    #[error("a defect ended this work")]
    Defect,
    /// A task ended before its work was done.
    #[error("the work was interrupted")]
    Interrupted,
}

/// A panic is a defect, which no retry mends. A task that was cancelled did not fail.
impl From<JoinError> for Error {
    fn from(error: JoinError) -> Self {
        if error.is_panic() { Self::Defect } else { Self::Interrupted }
    }
}

impl Error {
    /// Returns true if the same turn may succeed later without any change.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Memory(error) => error.is_transient(),
            Self::Model(error) => error.is_transient() || matches!(error, azera_model_api::Error::Stopped),
            Self::Platform(error) => error.is_transient(),
            Self::Interrupted | Self::QueueFull => true,
            Self::Panicked { tries } => *tries < MAX_PANICS,
            Self::Prompt(_)
            | Self::NoAnswer
            | Self::Voice(_)
            | Self::NoPersona(_)
            | Self::NoTime(_)
            | Self::NoPlatform
            | Self::Defect
            | Self::NotDispatched(_)
            | Self::Vault(_)
            | Self::NoVault
            | Self::Recordings(_)
            | Self::NotAllowed => false,
        }
    }
}
