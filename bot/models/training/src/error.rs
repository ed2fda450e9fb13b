//! Errors of the trainer.

use std::path::{Path, PathBuf};

use azera_model_gguf::GgufError;

/// The reasons why training fails.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file could not be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: std::io::Error,
    },
    /// A file is not a readable GGUF file.
    #[error("{} is not a usable GGUF file: {source}", path.display())]
    Gguf {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        source: GgufError,
    },
    /// The trainer does not support the model.
    #[error("the model cannot be trained: {0}")]
    Model(String),
    /// The recipe is invalid.
    #[error("the recipe cannot be followed: {0}")]
    Recipe(String),
    /// LoRAs cannot be added or compressed.
    #[error("the LoRAs cannot be merged: {0}")]
    Loras(String),
    /// The model cannot be trained on the examples.
    #[error("the examples cannot be learned: {0}")]
    Examples(String),
    /// A checkpoint or LoRA is damaged, or belongs to something else.
    #[error("{} cannot be taken up: {what}", path.display())]
    Saved {
        /// The file.
        path: PathBuf,
        /// The reason.
        what: String,
    },
    /// The loss is not a number any more.
    #[error("the loss of step {step} is not a number: lower the learning rate")]
    Diverged {
        /// The number of completed steps.
        step: usize,
    },
    /// The engine that multiplies matrices failed.
    #[error("computing failed: {0}")]
    Compute(#[from] candle_core::Error),
    /// Threads could not be started.
    #[error("starting threads failed: {0}")]
    Threads(#[from] rayon::ThreadPoolBuildError),
}

/// The result of functions in this crate.
pub type Result<T> = std::result::Result<T, Error>;

pub(crate) fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::Io { path, source }
}

pub(crate) fn gguf(path: &Path) -> impl FnOnce(GgufError) -> Error {
    let path = path.to_owned();
    move |source| Error::Gguf { path, source }
}
