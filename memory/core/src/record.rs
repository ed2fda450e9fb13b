//! The record as a whole: what backups are made of, and how a record is made of one again.
//!
//! A backup holds the record and nothing else: the indexes are made anew from it, and so nothing that belongs to them
//! is taken along.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};

use crate::forget_log::PendingBackupForgets;
use crate::settings::revoke_all_training_consent;
use azera_types::{Clock, SystemClock};

use crate::{Batch, Change, Durability, Error, Memory, Order, Store, Table, codec, keys, migrate};

/// Key in [`Table::Meta`] of a record that was restored and not opened since.
const RESTORED: &[u8] = b"restored";

/// Key in [`Table::Meta`] of the record's own name.
const IDENTITY: &[u8] = b"identity";

/// Key in [`Table::Meta`] of the folders that backups were made into.
const FOLDERS: &[u8] = b"backup_folders";

/// Rows of [`Table::Meta`] that speak of the indexes and of where backups lie.
const ABOUT_OTHERS: [&[u8]; 4] = [b"embedder", b"rebuild", b"scrub", FOLDERS];

/// The record as a whole, without indexes and without a right: it goes to files of the operator's, and nobody is shown
/// any of it.
pub struct Record<'a> {
    store: &'a dyn Store,
    identity: String,
}

impl std::fmt::Debug for Record<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Record").field("identity", &self.identity).finish_non_exhaustive()
    }
}

impl<'a> Record<'a> {
    /// What a store holds. A store in use belongs to a [`Memory`], which gives its record by [`Memory::record`].
    pub fn of(store: &'a dyn Store) -> Result<Self, Error> {
        Self::named(store, None)
    }

    /// The same; a record that lost its name gets this one.
    pub fn named(store: &'a dyn Store, name: Option<&str>) -> Result<Self, Error> {
        let identity = match codec::get(store, Table::Meta, IDENTITY)? {
            Some(identity) => identity,
            None => {
                let identity = name.map_or_else(made_up_name, str::to_owned);
                let mut batch = Batch::new();
                codec::put(&mut batch, Table::Meta, IDENTITY.to_vec(), &identity)?;
                store.commit(batch, Durability::Flushed)?;
                identity
            }
        };
        Ok(Self { store, identity })
    }

    /// The record's own name, made up when it was begun. Backups carry it, so that those of several records can lie in
    /// one folder.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// How many changes it has seen; the same number twice means that nothing changed in between.
    pub fn revision(&self) -> u64 {
        self.store.revision()
    }

    /// Hands out everything a backup holds; applied in order to an empty store by [`restore`], the batches make it what
    /// the record was at one moment of this call. Gives the revision of that moment.
    pub fn dump(&self, take: &mut dyn FnMut(Batch) -> Result<(), Error>) -> Result<u64, Error> {
        self.store.dump(&mut |batch| take(without_indexes(batch)))
    }

    /// What was forgotten since every backup was last gone through.
    pub fn pending_backup_forgets(&self) -> Result<PendingBackupForgets, Error> {
        let mut found = PendingBackupForgets::default();
        codec::walk(self.store, Table::Forgotten, b"", |key, value| {
            found.add(key.to_vec(), codec::decode(Table::Forgotten, value)?);
            Ok(true)
        })?;
        Ok(found)
    }

    /// Folders that backups were made into, each by its own name with where it was last.
    pub fn backup_folders(&self) -> Result<BTreeMap<String, PathBuf>, Error> {
        Ok(codec::get(self.store, Table::Meta, FOLDERS)?.unwrap_or_default())
    }

    /// Adds to them, or says where they are now.
    pub fn add_backup_folders(&self, more: BTreeMap<String, PathBuf>) -> Result<(), Error> {
        let known = self.backup_folders()?;
        let mut all = known.clone();
        all.extend(more);
        if all == known { Ok(()) } else { self.put_backup_folders(&all) }
    }

    /// Gives up the folders that were last at `path`: what backups in them hold is not asked after any more. Gives how
    /// many that were.
    pub fn give_up_backup_folders(&self, path: &Path) -> Result<usize, Error> {
        let mut folders = self.backup_folders()?;
        let known = folders.len();
        folders.retain(|_, at| at != path);
        self.put_backup_folders(&folders)?;
        Ok(known - folders.len())
    }

    fn put_backup_folders(&self, folders: &BTreeMap<String, PathBuf>) -> Result<(), Error> {
        let mut batch = Batch::new();
        codec::put(&mut batch, Table::Meta, FOLDERS.to_vec(), folders)?;
        self.store.commit(batch, Durability::Flushed)
    }

    /// Takes what was forgotten, and backups did not yet forget, out of the record itself once more: where rows came back
    /// by other ways than [`restore`].
    ///
    /// # Errors
    ///
    /// If a row cannot be read; [`crate::relink`] takes those away.
    pub fn forget_again(&self) -> Result<(), Error> {
        let unforgotten = self.pending_backup_forgets()?;
        if unforgotten.what.is_empty() {
            return Ok(());
        }
        let mut cleaning = unforgotten.what.cleaning();
        let mut batch = Batch::new();
        for table in Table::ALL {
            codec::walk(self.store, table, b"", |key, value| {
                let retained = cleaning.row(table, key, value)?;
                match retained {
                    Some(retained) if retained == value => {}
                    Some(retained) => {
                        batch.put(table, key, retained);
                    }
                    None => {
                        batch.remove(table, key);
                    }
                }
                Ok(true)
            })?;
            self.store.commit(std::mem::take(&mut batch), Durability::Flushed)?;
        }
        Ok(())
    }

    /// Takes over what another record of the same history forgot and its backups did not yet: they are to forget it by
    /// this one.
    pub fn take_over(&self, unforgotten: &PendingBackupForgets) -> Result<(), Error> {
        let mut batch = Batch::new();
        for (key, what) in &unforgotten.rows {
            codec::put(&mut batch, Table::Forgotten, key.clone(), what)?;
        }
        self.store.commit(batch, Durability::Flushed)
    }

    /// Takes back everybody's wish to be learnt from, before this record comes back in the place of another that people talked to
    /// since.
    pub fn revoke_training_consent(&self) -> Result<(), Error> {
        let mut batch = Batch::new();
        revoke_all_training_consent(self.store, &mut batch)?;
        self.store.commit(batch, Durability::Flushed)
    }

    /// Every backup was gone through with this. What was forgotten meanwhile is still to be.
    pub fn mark_backups_cleaned(&self, done: &PendingBackupForgets) -> Result<(), Error> {
        let mut batch = Batch::new();
        for key in done.rows.keys() {
            batch.remove(Table::Forgotten, key.clone());
        }
        self.store.commit(batch, Durability::Flushed)
    }
}

impl Memory {
    /// The record as a whole, for backups.
    pub fn record(&self) -> Record<'_> {
        Record { store: self.store.as_ref(), identity: self.identity.clone() }
    }

    /// Does what is left to do with a record that was restored: what was under way at the moment of the backup was
    /// answered and shown after it, so turns are closed and the outbox is emptied, lest somebody be told twice.
    pub(crate) fn finish_restore(&self) -> Result<(), Error> {
        if self.store.get(Table::Meta, RESTORED)?.is_none() {
            return Ok(());
        }
        self.raise_numbers(unused_numbers(self.store.as_ref())?)?;
        migrate::name_anew(self.store.as_ref())?;
        for (message, _) in self.open_turns()? {
            self.leave(&message.id)?;
        }
        let mut batch = Batch::new();
        codec::walk(self.store.as_ref(), Table::Outbox, b"", |key, _| {
            batch.remove(Table::Outbox, key);
            Ok(true)
        })?;
        // Who was asked how things are after the backup is not asked again before they answer.
        self.restart_check_ins(&mut batch, SystemClock.now())?;
        revoke_all_training_consent(self.store.as_ref(), &mut batch)?;
        batch.remove(Table::Meta, RESTORED);
        self.store.commit(batch, Durability::Flushed)
    }
}

/// Fills an empty store with what a backup holds: `rows` hands all of it to what it is given. If anything fails, what is
/// in the store is no record.
pub fn restore<E: From<Error>>(
    store: &dyn Store,
    rows: impl FnOnce(&mut dyn FnMut(Batch) -> Result<(), Error>) -> Result<(), E>,
) -> Result<(), E> {
    rows(&mut |batch| store.commit(batch, Durability::Soon))?;
    let mut batch = Batch::new();
    batch.put(Table::Meta, RESTORED, b"1");
    Ok(store.commit(batch, Durability::Flushed)?)
}

/// The first of numbers that no state of this record has given out, newer backups included: milliseconds since 1970 grow
/// faster than numbers do.
pub(crate) fn unused_numbers(store: &dyn Store) -> Result<u64, Error> {
    let now = u64::try_from(SystemClock.now().as_millisecond()).unwrap_or(0);
    match store.scan(Table::Forgotten, b"", None, Order::Descending, 1)?.first() {
        Some((key, _)) => Ok(now.max(keys::number(Table::Forgotten.name(), key)? + 1)),
        None => Ok(now),
    }
}

fn without_indexes(batch: Batch) -> Batch {
    let left_out = |table: Table, key: &[u8]| match table {
        // Who has spoken where is made anew from the memories.
        Table::IndexQueue | Table::Names => true,
        // What backups still have to forget is the record's to know: in a backup it would count again, for what came after.
        Table::Forgotten => true,
        Table::Meta => ABOUT_OTHERS.contains(&key),
        _ => false,
    };
    let mut retained = Batch::new();
    for change in batch.into_changes() {
        match change {
            Change::Put(table, key, _) | Change::Remove(table, key) if left_out(table, &key) => {}
            Change::Put(table, key, value) => {
                retained.put(table, key, value);
            }
            Change::Remove(table, key) => {
                retained.remove(table, key);
            }
        }
    }
    retained
}

/// A name that no other record or folder has: 128 bits of the system's random source, with which each `RandomState` is made.
pub fn made_up_name() -> String {
    let half = || RandomState::new().hash_one(0_u8);
    format!("{:016x}{:016x}", half(), half())
}
