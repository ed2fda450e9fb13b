//! `azera vault rotate`.

use std::path::Path;

use azera_config::Config;
use azera_memory::Record;
use azera_memory_sled::SledStore;
use azera_memory_vault::{Error, Owner, Reseal, Rotation, SealedVaults, rotate};

use super::{keys, note_key, vault_file};
use crate::cli::RotateWhat;
use crate::data::DataFolder;

impl From<RotateWhat> for Rotation {
    fn from(what: RotateWhat) -> Self {
        match what {
            RotateWhat::Master => Self::Master,
            RotateWhat::DataKeys => Self::DataKeys,
            RotateWhat::All => Self::All,
        }
    }
}

/// The vaults of people, in a record that nobody else uses.
struct InRecord {
    store: SledStore,
}

/// An error of the record or of the vault.
enum Failed {
    Record(azera_memory::Error),
    Vault(Error),
}

impl From<azera_memory::Error> for Failed {
    fn from(error: azera_memory::Error) -> Self {
        Self::Record(error)
    }
}

impl From<Failed> for Error {
    fn from(failed: Failed) -> Self {
        match failed {
            Failed::Record(error) => Self::Store(Box::new(error)),
            Failed::Vault(error) => error,
        }
    }
}

impl SealedVaults for InRecord {
    fn reseal_all(&self, reseal: &Reseal<'_>) -> Result<usize, Error> {
        let record = Record::of(&self.store).map_err(Failed::Record)?;
        let replaced = record
            .reseal_vaults(&mut |person, sealed| reseal(&sealed, Owner::Person(person.clone())).map_err(Failed::Vault));
        Ok(replaced?)
    }
}

pub fn run(config: &Config, what: RotateWhat) -> anyhow::Result<()> {
    let (keys, operator, data) = (keys(config)?, vault_file(config)?, config.data_dir()?);
    // Nobody may store a secret of a person meanwhile.
    let folder = DataFolder::take(Path::new(&data))?;
    let people = match folder.has_record() {
        true => Some(InRecord { store: SledStore::open(folder.record())? }),
        false => None,
    };
    if let Some(people) = &people {
        note_key(&keys, &Record::of(&people.store)?)?;
    }
    let mut places: Vec<&dyn SealedVaults> = vec![&operator];
    places.extend(people.as_ref().map(|people| people as &dyn SealedVaults));
    let Some(report) = rotate(&keys, &places, what.into())? else {
        eprintln!("There is no vault and no key yet, so there is nothing to rotate.");
        return Ok(());
    };
    let replaced = match what {
        RotateWhat::Master => "a new master key",
        RotateWhat::DataKeys => "new data keys",
        RotateWhat::All => "a new master key and new data keys",
    };
    eprintln!("{} vaults have {replaced}.", report.vaults);
    if what != RotateWhat::DataKeys {
        eprintln!("Copy the key file again: {}.", keys.path().display());
    }
    Ok(())
}
