//! The operator's vault: a file in the data folder. Several processes may use it at once.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use crate::format::MAX_SEALED_BYTES;
use crate::rotation::{Reseal, SealedVaults};
use crate::{Error, MasterKeys, Owner, Vault, atomic};

/// The name of the file in its folder.
const FILE: &str = "operator.vault";

/// The file that is locked during a change.
const LOCK: &str = "lock";

/// The file with the operator's vault. A change is written as a whole, or not at all.
#[derive(Debug, Clone)]
pub struct VaultFile {
    folder: PathBuf,
}

impl VaultFile {
    /// Returns the vault in a folder, which need not exist.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    fn path(&self) -> PathBuf {
        self.folder.join(FILE)
    }

    fn bytes(&self) -> Result<Option<Vec<u8>>, Error> {
        let read = atomic::read(&self.path(), MAX_SEALED_BYTES)?;
        Ok(read.map(|content| content.bytes.to_vec()))
    }

    /// Opens the vault; `None` if there is none.
    ///
    /// # Errors
    /// The key or the vault cannot be read, or does not open.
    pub fn read(&self, keys: &dyn MasterKeys) -> Result<Option<Vault>, Error> {
        self.bytes()?.map(|bytes| Vault::open(&bytes, Owner::Operator, &keys.masters()?)).transpose()
    }

    /// Changes the vault and writes it, durably. Makes the vault and the key if neither exists. Nothing changes if anything
    /// fails. An empty vault is removed. `has_vaults` tells of sealed vaults elsewhere, for which there must be a key already.
    ///
    /// # Errors
    /// Those of [`VaultFile::read`] and of `change`, and what writing gives.
    pub fn change<T>(
        &self,
        keys: &dyn MasterKeys,
        has_vaults: bool,
        change: impl FnOnce(&mut Vault) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let _changing = self.lock()?;
        let sealed = self.bytes()?;
        let masters = keys.masters_for_writing(has_vaults || sealed.is_some())?;
        let mut vault = match &sealed {
            Some(bytes) => Vault::open(bytes, Owner::Operator, &masters)?,
            None => Vault::new(Owner::Operator)?,
        };
        let done = change(&mut vault)?;
        if vault.is_empty() {
            atomic::remove(&self.path())?;
        } else {
            atomic::replace(&self.path(), &vault.seal(&masters)?)?;
        }
        Ok(done)
    }

    /// Waits until no other process changes the vault, and keeps others from it until the result is dropped.
    fn lock(&self) -> Result<File, Error> {
        atomic::make_folder(&self.folder)?;
        let path = self.folder.join(LOCK);
        let open = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path);
        let file = open.map_err(Error::io("opening", &path))?;
        file.lock().map_err(Error::io("locking", &path))?;
        atomic::remove_partial(&self.folder)?;
        Ok(file)
    }
}

impl SealedVaults for VaultFile {
    fn reseal_all(&self, reseal: &Reseal<'_>) -> Result<usize, Error> {
        if self.bytes()?.is_none() {
            return Ok(0);
        }
        let _changing = self.lock()?;
        let Some(bytes) = self.bytes()? else { return Ok(0) };
        let Some(resealed) = reseal(&bytes, Owner::Operator)? else { return Ok(0) };
        atomic::replace(&self.path(), &resealed)?;
        Ok(1)
    }
}
