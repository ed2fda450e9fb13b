use std::io::ErrorKind;

use thiserror::Error;

/// An error of a store or an index.
#[derive(Debug, Error)]
pub enum Error {
    /// The disk, the file system or a server failed.
    #[error("{what}: {source}")]
    Io {
        /// The operation that failed.
        what: &'static str,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// The disk is full. Flushed data is not lost, and the same call succeeds once there is space.
    #[error("{what}: there is no room left on the disk")]
    Full {
        /// The operation that failed.
        what: &'static str,
    },
    /// The store or index failed for a reason of its own.
    #[error("{what}: {why}")]
    Backend {
        /// The operation that failed.
        what: &'static str,
        /// The backend's message.
        why: String,
        /// Whether the same call may succeed later.
        transient: bool,
    },
    /// A stored row cannot be read.
    #[error("a row of {table} is damaged: {why}")]
    Damaged {
        /// The row's table.
        table: &'static str,
        /// The fault, without the row's content.
        why: String,
    },
    /// A request that can never succeed.
    #[error("{0}")]
    Invalid(String),
}

impl Error {
    /// Returns a closure that adds the name of the operation to an error of the file system.
    pub fn io(what: &'static str) -> impl FnOnce(std::io::Error) -> Self {
        move |source| match source.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => Self::Full { what },
            _ => Self::Io { what, source },
        }
    }

    /// Returns true if the same call may succeed later without anyone changing anything.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Io { source, .. } => matches!(source.kind(), ErrorKind::Interrupted | ErrorKind::TimedOut),
            Self::Full { .. } => true,
            Self::Backend { transient, .. } => *transient,
            Self::Damaged { .. } | Self::Invalid(_) => false,
        }
    }
}
