use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use thiserror::Error;
use zip::result::ZipError;

/// An error of a backup or a backup folder.
#[derive(Debug, Error)]
pub enum Error {
    /// The file system failed.
    #[error("{what} {}: {source}", path.display())]
    Io {
        /// The operation that failed.
        what: &'static str,
        /// Its file or folder.
        path: PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// The file is not a backup, or it is incomplete.
    #[error("{} is no whole backup: {why}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The fault.
        why: String,
    },
    /// A newer version of Azera made the backup.
    #[error("{} was made by a newer version (format {format}, this one reads {})", path.display(), crate::manifest::FORMAT)]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its format.
        format: u32,
    },
    /// A folder with backups is missing from its last path.
    #[error("the folder of backups {} is not there, or another one is in its place", path.display())]
    FolderMissing {
        /// The last path.
        path: PathBuf,
    },
    /// Reading or writing the record failed.
    #[error("the record: {0}")]
    Record(#[from] azera_memory::Error),
}

impl Error {
    /// Returns true if the same call may succeed later without anyone changing anything.
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

    /// Converts an error of the archive: it comes from the file system or from the archive's content.
    pub(crate) fn archive(what: &'static str, path: &Path, error: ZipError) -> Self {
        match error {
            ZipError::Io(source) => Self::io(what, path)(source),
            other => Self::damaged(path, other.to_string()),
        }
    }

    /// Returns a closure that adds the name of the operation to an error of the file system. A wrong checksum or an
    /// unexpected end means damage.
    pub(crate) fn io(what: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        move |source| match source.kind() {
            ErrorKind::UnexpectedEof | ErrorKind::InvalidData | ErrorKind::InvalidInput => {
                Self::damaged(path, source.to_string())
            }
            // The archive reader reports a wrong checksum as an error of no specific kind.
            ErrorKind::Other if source.raw_os_error().is_none() => Self::damaged(path, source.to_string()),
            _ => Self::Io { what, path: path.to_owned(), source },
        }
    }
}
