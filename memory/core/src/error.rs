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
    /// Whether the same call may succeed later without anyone changing anything.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Io { source, .. } => {
                matches!(source.kind(), std::io::ErrorKind::Interrupted | std::io::ErrorKind::TimedOut)
            }
            Self::Backend { transient, .. } => *transient,
            Self::Damaged { .. } | Self::Invalid(_) => false,
        }
    }
}
