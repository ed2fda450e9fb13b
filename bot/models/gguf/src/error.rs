//! Why a file is no GGUF file.

use std::io;

/// Why a file is not a readable GGUF file.
#[derive(Debug, thiserror::Error)]
pub enum GgufError {
    /// The file does not start with `GGUF`.
    #[error("it does not start with the letters GGUF")]
    Magic,
    /// A version this program does not read.
    #[error("it is GGUF version {0}; versions 2 and 3 are read")]
    Version(u32),
    /// The file ends inside its header or before its last tensor.
    #[error("it ends too early: the file is incomplete")]
    Truncated,
    /// A count, length or offset past its limit.
    #[error("its {what} is {value}, more than the limit of {limit}")]
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// What the file says.
        value: u64,
        /// What is accepted.
        limit: u64,
    },
    /// A value that the format does not allow.
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
