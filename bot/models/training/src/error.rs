//! What can go wrong.

use std::path::{Path, PathBuf};

use azera_model_gguf::GgufError;

/// Why the Hearth cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file could not be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// Which file.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: std::io::Error,
    },
    /// A file is no readable GGUF file.
    #[error("{} is not a usable GGUF file: {source}", path.display())]
    Gguf {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        source: GgufError,
    },
    /// A model that this trainer does not know how to train.
    #[error("the model cannot be trained: {0}")]
    Model(String),
    /// A recipe that makes no sense.
    #[error("the recipe cannot be followed: {0}")]
    Recipe(String),
    /// Adapters that cannot be added or compressed.
    #[error("the adapters cannot be put together: {0}")]
    Loras(String),
    /// Examples that the model cannot learn from.
    #[error("the examples cannot be learnt: {0}")]
    Examples(String),
    /// A checkpoint or adapter that is damaged, or belongs to something else.
    #[error("{} cannot be taken up: {what}", path.display())]
    Saved {
        /// Which file.
        path: PathBuf,
        /// Why not.
        what: String,
    },
    /// The loss is no number any more.
    #[error("the loss of step {step} is not a number: lower the learning rate")]
    Diverged {
        /// Steps made before.
        step: usize,
    },
    /// The engine that multiplies matrices failed.
    #[error("computing failed: {0}")]
    Compute(#[from] candle_core::Error),
    /// Threads could not be started.
    #[error("starting threads failed: {0}")]
    Threads(#[from] rayon::ThreadPoolBuildError),
}

/// What functions of this crate return.
pub type Result<T> = std::result::Result<T, Error>;

pub(crate) fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::Io { path, source }
}

pub(crate) fn gguf(path: &Path) -> impl FnOnce(GgufError) -> Error {
    let path = path.to_owned();
    move |source| Error::Gguf { path, source }
}
