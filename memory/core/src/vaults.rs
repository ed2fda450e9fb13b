//! Sealed vaults of people: one value for each person, which only the host can open. They are part of backups. A forgotten
//! person's vault leaves the record and the backups, and so do the older vaults of somebody who deletes an entry.

use std::sync::PoisonError;

use azera_types::{Clock, PersonId, SystemClock};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use crate::domains::Vaults;
use crate::forget_log::Forgotten;
use crate::{Batch, Durability, Entry, Error, Order, Record, Store, Table, codec, keys};

/// A sealed vault, as it is stored.
#[derive(Serialize, Deserialize)]
pub(crate) struct VaultRow {
    pub(crate) person: PersonId,
    /// Its number in the order of numbers given out. A vault that was forgotten after this number does not return with a
    /// backup.
    pub(crate) seq: u64,
    /// The sealed bytes, in base64.
    sealed: String,
}

/// Returns the sealed vault of a person sealed anew, or `None` if it stays as it is.
pub type Reseal<'a, E> = dyn FnMut(&PersonId, Vec<u8>) -> Result<Option<Vec<u8>>, E> + 'a;

/// What becomes of a vault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VaultChange {
    /// It stays as it is.
    Nothing,
    /// It is replaced by these sealed bytes.
    Put(Vec<u8>),
    /// It is replaced, and something of it is gone for good: older vaults of the person leave the backups.
    PutWithout(Vec<u8>),
    /// It is removed for good, here and in backups.
    Remove,
}

fn vault_key(person: &PersonId) -> Vec<u8> {
    keys::prefix(&[person.as_str()])
}

/// Returns the first of all rows.
fn first(store: &dyn Store) -> Result<Option<Entry>, Error> {
    Ok(store.scan(Table::Vaults, b"", None, Order::Ascending, 1)?.pop())
}

impl VaultRow {
    fn bytes(&self) -> Result<Vec<u8>, Error> {
        let damaged = |_| Error::Damaged { table: Table::Vaults.name(), why: "the bytes are no base64".into() };
        STANDARD.decode(&self.sealed).map_err(damaged)
    }
}

impl Vaults<'_> {
    /// Returns the sealed vault of a person.
    pub fn sealed(self, person: &PersonId) -> Result<Option<Vec<u8>>, Error> {
        let row: Option<VaultRow> = codec::get(self.0.store.as_ref(), Table::Vaults, &vault_key(person))?;
        row.map(|row| row.bytes()).transpose()
    }

    /// Returns true if somebody has a vault.
    pub fn any(self) -> Result<bool, Error> {
        Ok(first(self.0.store.as_ref())?.is_some())
    }

    /// Changes the vault of a person, flushed. `change` gets the sealed vault, if there is one. Meanwhile nobody else changes
    /// or forgets it. Nothing changes if `change` fails.
    ///
    /// # Errors
    /// Those of `change` and of the store. [`Error::Full`] for a [`VaultChange::Put`] if the disk has too little room.
    pub fn change<T, E: From<Error>>(
        self,
        person: &PersonId,
        change: impl FnOnce(Option<Vec<u8>>) -> Result<(VaultChange, T), E>,
    ) -> Result<T, E> {
        let forgets = {
            let _changing = self.0.states.lock().unwrap_or_else(PoisonError::into_inner);
            self.0.store.ready()?;
            let (change, done) = change(self.sealed(person)?)?;
            match change {
                VaultChange::Nothing => return Ok(done),
                VaultChange::Put(sealed) => {
                    self.0.store.room()?;
                    let mut batch = Batch::new();
                    self.put(&mut batch, person, &sealed)?;
                    self.0.store.commit(batch, Durability::Flushed)?;
                    return Ok(done);
                }
                VaultChange::PutWithout(sealed) => {
                    self.forget_older(person, Some(&sealed))?;
                    done
                }
                VaultChange::Remove => {
                    self.forget_older(person, None)?;
                    done
                }
            }
        };
        // A scrub that ran meanwhile may have copied the row before it was replaced. So another one is requested.
        self.0.forgetting().ask_for_scrub()?;
        Ok(forgets)
    }

    fn put(self, batch: &mut Batch, person: &PersonId, sealed: &[u8]) -> Result<(), Error> {
        let row = VaultRow { person: person.clone(), seq: self.0.next_number()?, sealed: STANDARD.encode(sealed) };
        codec::put(batch, Table::Vaults, vault_key(person), &row)
    }

    /// Removes the vault of a person here and in backups, and stores another in its place. The caller holds the lock.
    fn forget_older(self, person: &PersonId, sealed: Option<&[u8]>) -> Result<(), Error> {
        self.0.forgetting().ask_for_scrub()?;
        let (mut batch, mut gone) = (Batch::new(), Forgotten::default());
        gone.vault(person.clone(), self.0.next_number()?);
        match sealed {
            Some(sealed) => self.put(&mut batch, person, sealed)?,
            None => {
                batch.remove(Table::Vaults, vault_key(person));
            }
        }
        self.0.forgetting().commit_forgetting(batch, gone)
    }

    /// Removes the vault of a person who is forgotten. Their person is in the log of what backups forget already.
    pub(crate) fn forget_person(self, person: &PersonId) -> Result<(), Error> {
        let _changing = self.0.states.lock().unwrap_or_else(PoisonError::into_inner);
        if self.0.store.get(Table::Vaults, &vault_key(person))?.is_none() {
            return Ok(());
        }
        self.forget_older(person, None)
    }
}

impl Record<'_> {
    /// Returns one of the sealed vaults, if there is any. Its head names the master key that it needs.
    pub fn any_vault(&self) -> Result<Option<Vec<u8>>, Error> {
        let Some((_, row)) = first(self.store)? else { return Ok(None) };
        codec::decode::<VaultRow>(Table::Vaults, &row)?.bytes().map(Some)
    }

    /// Replaces each sealed vault by what `reseal` makes of it, flushed, one after the other. `None` leaves it. Returns how many
    /// were replaced. The bytes before leave the disk with the next [`Forgetting::scrub`](crate::Forgetting::scrub).
    ///
    /// # Errors
    /// The first error of `reseal` or of the store.
    pub fn reseal_vaults<E: From<Error>>(&self, reseal: &mut Reseal<'_, E>) -> Result<usize, E> {
        let rows: Vec<VaultRow> = codec::rows(self.store, Table::Vaults, b"")?;
        let mut replaced = 0;
        for row in rows {
            let Some(sealed) = reseal(&row.person, row.bytes()?)? else { continue };
            let mut batch = Batch::new();
            let (key, now) = (vault_key(&row.person), SystemClock.now().as_millisecond());
            codec::put(&mut batch, Table::Vaults, key, &VaultRow { sealed: STANDARD.encode(sealed), ..row })?;
            codec::put(&mut batch, Table::Meta, b"scrub".to_vec(), &now)?;
            self.store.commit(batch, Durability::Flushed)?;
            replaced += 1;
        }
        Ok(replaced)
    }
}
