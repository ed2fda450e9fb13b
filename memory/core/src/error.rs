use std::io::ErrorKind;

use thiserror::Error;

/// What went wrong in a store or an index.
#[derive(Debug, Error)]
pub enum Error {
    /// The disk, the file system or a server refused.
    #[error("{what}: {source}")]
    Io {
        /// What was being done.
        what: &'static str,
        /// Why it failed.
        #[source]
        source: std::io::Error,
    },
    /// There is no room left on the disk. Nothing that was flushed is lost, and the same call succeeds when there is room.
    #[error("{what}: there is no room left on the disk")]
    Full {
        /// What was being done.
        what: &'static str,
    },
    /// The store or index works no more for a reason of its own.
    #[error("{what}: {why}")]
    Backend {
        /// What was being done.
        what: &'static str,
        /// What the backend said.
        why: String,
        /// Whether the same call may succeed later.
        transient: bool,
    },
    /// A stored row cannot be read.
    #[error("a row of {table} is damaged: {why}")]
    Damaged {
        /// The table it stands in.
        table: &'static str,
        /// What is wrong with it, without its content.
        why: String,
    },
    /// A request that can never succeed.
    #[error("{0}")]
    Invalid(String),
}

impl Error {
    /// Names what was being done when the file system refused.
    pub fn io(what: &'static str) -> impl FnOnce(std::io::Error) -> Self {
        move |source| match source.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => Self::Full { what },
            _ => Self::Io { what, source },
        }
    }

    /// Whether the same call may succeed later without anyone changing anything.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Io { source, .. } => matches!(source.kind(), ErrorKind::Interrupted | ErrorKind::TimedOut),
            Self::Full { .. } => true,
            Self::Backend { transient, .. } => *transient,
            Self::Damaged { .. } | Self::Invalid(_) => false,
        }
    }
}
