//! The vault: secrets of the operator and of people, encrypted at rest. Begin with [`Vault`], which is one owner's secrets in
//! memory and as sealed bytes. [`KeyFile`] holds the master keys, [`VaultFile`] the operator's vault. The vaults of people are
//! rows of the record, which `azera-memory` stores without opening them.
//!
//! A master key seals the data key of each vault; the data key seals the index of names and each value (AES-256-GCM).
//! [`rotate`] replaces master and data keys.
//!
//! Invariants:
//! - A sealed vault opens for its owner alone, and only whole: every changed, cut or moved byte is an error.
//! - Names and values are sealed. `Debug` shows neither, and no error holds a value.
//! - A vault that does not open is never replaced, and no new master is made while sealed vaults exist.

mod atomic;
mod cipher;
mod error;
mod format;
mod key_file;
mod master;
mod name;
mod rotation;
mod secret;
mod vault;
mod vault_file;

pub use error::Error;
pub use key_file::{KeyFile, MasterKeys};
pub use master::{MasterId, Masters};
pub use name::{EntryName, MAX_NAME_CHARS};
pub use rotation::{Reseal, Rotation, RotationReport, SealedVaults, rotate};
pub use secret::{MAX_VALUE_BYTES, SecretText};
pub use vault::{EntryInfo, MAX_ENTRIES, MAX_VAULT_BYTES, Owner, Vault};
pub use vault_file::VaultFile;
