use std::path::{Path, PathBuf};

use thiserror::Error as ThisError;

use crate::master::MasterId;
use crate::name::MAX_NAME_CHARS;
use crate::secret::MAX_VALUE_BYTES;
use crate::vault::{MAX_ENTRIES, MAX_VAULT_BYTES};

/// Why a vault or its key cannot be used. No variant holds a value.
#[derive(Debug, ThisError)]
pub enum Error {
    /// The text is no name of an entry.
    #[error(
        "a name in the vault has 1 to {MAX_NAME_CHARS} of the characters a-z, A-Z, 0-9, `.`, `_` and `-`, and begins with a letter \
         or a digit"
    )]
    Name,
    /// The value is empty, or longer than [`MAX_VALUE_BYTES`].
    #[error("a value in the vault is a text of 1 to {MAX_VALUE_BYTES} bytes")]
    Value,
    /// The vault has [`MAX_ENTRIES`] entries, or [`MAX_VAULT_BYTES`] bytes.
    #[error(
        "the vault is full: it has room for {MAX_ENTRIES} entries and {MAX_VAULT_BYTES} bytes; delete an entry first"
    )]
    Full,
    /// There is no key file, and there are vaults that need it.
    #[error(
        "the key of the vault is missing: put the file {} back, or name it in vault.key_file; nothing was changed", path.display()
    )]
    KeyMissing {
        /// Where the key file should be.
        path: PathBuf,
    },
    /// The key file lies where the data or the backups are.
    #[error(
        "vault.key_file must not be in {}: whoever has that folder could then read the secrets. Name a file elsewhere there, \
         and move {} to it, if it is there already", protected.display(), path.display()
    )]
    KeyPlace {
        /// The key file.
        path: PathBuf,
        /// The folder that it must not be in.
        protected: PathBuf,
    },
    /// Others may read the key file.
    #[error("others may read the key of the vault: `chmod 600 {}` (it has mode {mode:03o})", path.display())]
    KeyAccess {
        /// The key file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// The key file is damaged.
    #[error("the key of the vault, {}, is damaged: put a copy of it back; nothing was changed", path.display())]
    KeyDamaged {
        /// The key file.
        path: PathBuf,
    },
    /// A vault was sealed with a master that is not there.
    #[error(
        "the vault needs the master key {0}, which is not in the key file: put the right key file back; nothing was changed"
    )]
    WrongMaster(MasterId),
    /// A sealed vault is damaged, or belongs to another owner.
    #[error("the vault is damaged, or belongs to somebody else: {0}; nothing was changed")]
    Damaged(&'static str),
    /// A newer version of Azera wrote the vault or the key.
    #[error("a newer version of Azera wrote this vault or its key")]
    Newer,
    /// The operating system gave no random numbers.
    #[error("the operating system gives no random numbers: {0}")]
    Random(String),
    /// Reading or writing failed.
    #[error("{what} {}: {source}", path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The place that keeps a sealed vault failed.
    #[error("{0}")]
    Store(Box<dyn std::error::Error + Send + Sync>),
}

impl Error {
    pub(crate) fn io(what: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Io { what, path, source }
    }

    /// Returns true if the person who asked can change what is wrong: a name, a value or an entry.
    pub fn is_of_the_request(&self) -> bool {
        matches!(self, Self::Name | Self::Value | Self::Full)
    }
}
