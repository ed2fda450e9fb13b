use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use thiserror::Error;
use zip::result::ZipError;

/// Why something about a backup failed.
#[derive(Debug, Error)]
pub enum Error {
    /// The file system refused.
    #[error("{what} {}: {source}", path.display())]
    Io {
        /// What was being done.
        what: &'static str,
        /// To which file or folder.
        path: PathBuf,
        /// Why it failed.
        #[source]
        source: std::io::Error,
    },
    /// The file is no backup, or not whole.
    #[error("{} is no whole backup: {why}", path.display())]
    Damaged {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A newer version made it.
    #[error("{} was made by a newer version (format {format}, this one reads {})", path.display(), crate::manifest::FORMAT)]
    Newer {
        /// Which file.
        path: PathBuf,
        /// Its format.
        format: u32,
    },
    /// A folder that backups were made into is not where it was.
    #[error("the folder of backups {} is not there, or another one is in its place", path.display())]
    FolderMissing {
        /// Where it was last.
        path: PathBuf,
    },
    /// The record could not be read or written.
    #[error("the record: {0}")]
    Record(#[from] azera_memory::Error),
}

impl Error {
    /// Whether the same call may succeed later without anyone changing anything.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Io { source, .. } => matches!(
                source.kind(),
                ErrorKind::Interrupted | ErrorKind::TimedOut | ErrorKind::StorageFull | ErrorKind::QuotaExceeded
            ),
            Self::Record(error) => error.is_transient(),
            Self::Damaged { .. } | Self::Newer { .. } | Self::FolderMissing { .. } => false,
        }
    }

    pub(crate) fn damaged(path: &Path, why: impl Into<String>) -> Self {
        Self::Damaged { path: path.to_owned(), why: why.into() }
    }

    /// What an archive says, which is either the file system's word or about its content.
    pub(crate) fn archive(what: &'static str, path: &Path, error: ZipError) -> Self {
        match error {
            ZipError::Io(source) => Self::io(what, path)(source),
            other => Self::damaged(path, other.to_string()),
        }
    }

    /// Names what was being done when the file system refused. What a checksum or an unexpected end tells is damage.
    pub(crate) fn io(what: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        move |source| match source.kind() {
            ErrorKind::UnexpectedEof | ErrorKind::InvalidData | ErrorKind::InvalidInput => {
                Self::damaged(path, source.to_string())
            }
            // The archive's own reader reports a checksum that does not match as an error of no kind.
            ErrorKind::Other if source.raw_os_error().is_none() => Self::damaged(path, source.to_string()),
            _ => Self::Io { what, path: path.to_owned(), source },
        }
    }
}
