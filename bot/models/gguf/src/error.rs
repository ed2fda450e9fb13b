//! Errors of reading a GGUF file.

use std::io;

/// The reasons why a file is not a readable GGUF file.
#[derive(Debug, thiserror::Error)]
pub enum GgufError {
    /// The file does not start with `GGUF`.
    #[error("it does not start with the letters GGUF")]
    Magic,
    /// The version is not supported.
    #[error("it is GGUF version {0}; versions 2 and 3 are read")]
    Version(u32),
    /// The file ends inside its header or before its last tensor.
    #[error("it ends too early: the file is incomplete")]
    Truncated,
    /// A count, length or offset exceeds its limit.
    #[error("its {what} is {value}, more than the limit of {limit}")]
    TooLarge {
        /// The name of the value.
        what: &'static str,
        /// The value in the file.
        value: u64,
        /// The limit.
        limit: u64,
    },
    /// The format does not allow a value.
    #[error("its {0} is not valid")]
    Invalid(&'static str),
    /// The file could not be read.
    #[error("it cannot be read: {0}")]
    Io(#[source] io::Error),
}

impl From<io::Error> for GgufError {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::UnexpectedEof { Self::Truncated } else { Self::Io(error) }
    }
}
