//! The record as a whole: what a backup contains, and how a backup is restored.
//!
//! A backup contains the record only. The indexes are rebuilt from it, so rows about the indexes are left out.

use std::collections::{BTreeMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};

use crate::files::owned_blobs;
use crate::forget_log::PendingBackupForgets;
use crate::retractions;
use crate::settings::revoke_all_consent;
use azera_types::{BlobId, Clock, SystemClock};

use crate::{
    Batch, BlobStore, Change, Durability, Error, Memory, Order, Store, Table, codec, graph, kept, keys, migrate, themes,
};

/// Key in [`Table::Meta`]: the record was restored and not opened since.
const RESTORED: &[u8] = b"restored";

/// Key in [`Table::Meta`] of the record's name.
const IDENTITY: &[u8] = b"identity";

/// Key in [`Table::Meta`] of the known backup folders.
const FOLDERS: &[u8] = b"backup_folders";

/// Memories whose names one step of a restore reads.
const GRAPH_PAGE: usize = 1_024;

/// Rows of [`Table::Meta`] about the indexes and the backup folders.
const ABOUT_OTHERS: [&[u8]; 7] =
    [b"embedder", b"rebuild", b"scrub", FOLDERS, graph::PROGRESS, themes::PROGRESS, kept::MARK];

/// The whole record without a read scope. It is used for the operator's files only; nobody is shown any of it.
pub struct Record<'a> {
    pub(crate) store: &'a dyn Store,
    identity: String,
    blobs: Option<&'a dyn BlobStore>,
}

impl std::fmt::Debug for Record<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Record").field("identity", &self.identity).finish_non_exhaustive()
    }
}

impl<'a> Record<'a> {
    /// Returns the record in a store. If a [`Memory`] uses the store, call [`Memory::record`] instead.
    pub fn of(store: &'a dyn Store) -> Result<Self, Error> {
        Self::named(store, None)
    }

    /// Returns the record in a store, and names it `name` if it lost its name.
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
        Ok(Self { store, identity, blobs: None })
    }

    /// Adds the files of the record's messages, so that backups contain them.
    pub fn with_blobs(self, blobs: &'a dyn BlobStore) -> Self {
        Self { blobs: Some(blobs), ..self }
    }

    /// Returns the bytes of a file; `None` if they are missing, or if the record has no files.
    pub fn blob(&self, id: &BlobId) -> Result<Option<Vec<u8>>, Error> {
        self.blobs.map_or(Ok(None), |blobs| blobs.get(id))
    }

    /// Returns the ids of all files that belong to messages.
    pub fn owned_blobs(&self) -> Result<HashSet<BlobId>, Error> {
        owned_blobs(self.store)
    }

    /// Returns the record's name, which is chosen at random when the record is created. Backups carry it, so that one
    /// folder can hold backups of several records.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// Returns the number of changes so far. If two calls return the same number, nothing changed between them.
    pub fn revision(&self) -> u64 {
        self.store.revision()
    }

    /// Passes everything that a backup contains to `take`, as batches. [`restore`] applies them in order to an empty
    /// store, which then equals the record at one moment of this call. Returns the revision of that moment.
    pub fn dump(&self, take: &mut dyn FnMut(Batch) -> Result<(), Error>) -> Result<u64, Error> {
        self.store.dump(&mut |batch| take(without_indexes(batch)))
    }

    /// Returns the items that were forgotten since every backup was last cleaned.
    pub fn pending_backup_forgets(&self) -> Result<PendingBackupForgets, Error> {
        let mut found = PendingBackupForgets::default();
        codec::walk(self.store, Table::Forgotten, b"", |key, value| {
            found.add(key.to_vec(), codec::decode(Table::Forgotten, value)?);
            Ok(true)
        })?;
        Ok(found)
    }

    /// Returns the known backup folders: the name of each, and its last path.
    pub fn backup_folders(&self) -> Result<BTreeMap<String, PathBuf>, Error> {
        Ok(codec::get(self.store, Table::Meta, FOLDERS)?.unwrap_or_default())
    }

    /// Adds backup folders, or updates their paths.
    pub fn add_backup_folders(&self, more: BTreeMap<String, PathBuf>) -> Result<(), Error> {
        let known = self.backup_folders()?;
        let mut all = known.clone();
        all.extend(more);
        if all == known { Ok(()) } else { self.put_backup_folders(&all) }
    }

    /// Stops tracking the folders that were last at `path`, and returns how many. Backups in them are not cleaned any
    /// more.
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

    /// Repeats pending forgets on the record itself. Call it if rows came back by other ways than [`restore`].
    ///
    /// # Errors
    ///
    /// Fails if a row cannot be read; [`crate::relink`] removes unreadable rows.
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

    /// Takes over the pending forgets of another record of the same history, so that its backups are cleaned through
    /// this record.
    pub fn take_over(&self, unforgotten: &PendingBackupForgets) -> Result<(), Error> {
        let mut batch = Batch::new();
        for (key, what) in &unforgotten.rows {
            codec::put(&mut batch, Table::Forgotten, key.clone(), what)?;
        }
        self.store.commit(batch, Durability::Flushed)
    }

    /// Revokes everyone's consent to training and to being heard. Call it before this record replaces another one that people have used
    /// since.
    pub fn revoke_training_consent(&self) -> Result<(), Error> {
        let mut batch = Batch::new();
        revoke_all_consent(self.store, &mut batch)?;
        self.store.commit(batch, Durability::Flushed)
    }

    /// Removes pending forgets after every backup was cleaned of them. Newer ones stay.
    pub fn mark_backups_cleaned(&self, done: &PendingBackupForgets) -> Result<(), Error> {
        let mut batch = Batch::new();
        for key in done.rows.keys() {
            batch.remove(Table::Forgotten, key.clone());
        }
        self.store.commit(batch, Durability::Flushed)
    }
}

impl Memory {
    /// Returns the whole record, for backups.
    pub fn record(&self) -> Record<'_> {
        Record { store: self.store.as_ref(), identity: self.identity.clone(), blobs: Some(self.blobs.as_ref()) }
    }

    /// Finishes a restore. Turns that were open at the time of the backup were answered after it. So this closes turns
    /// and empties the outbox; otherwise people would get a reply twice.
    pub(crate) fn finish_restore(&self) -> Result<(), Error> {
        if self.store.get(Table::Meta, RESTORED)?.is_none() {
            return Ok(());
        }
        self.raise_numbers(unused_numbers(self.store.as_ref())?)?;
        migrate::name_anew(self.store.as_ref())?;
        graph::begin_anew(self.store.as_ref())?;
        themes::begin_anew(self.store.as_ref())?;
        while self.graph().build(GRAPH_PAGE)? {}
        for (message, _) in self.turns().all_open()? {
            self.turns().leave(&message.id)?;
        }
        let mut batch = Batch::new();
        codec::walk(self.store.as_ref(), Table::Outbox, b"", |key, _| {
            batch.remove(Table::Outbox, key);
            Ok(true)
        })?;
        // People who were sent a check-in after the backup get no second one before they answer.
        self.places().restart_check_ins(&mut batch, SystemClock.now())?;
        revoke_all_consent(self.store.as_ref(), &mut batch)?;
        batch.remove(Table::Meta, RESTORED);
        self.store.commit(batch, Durability::Flushed)
    }
}

/// Fills an empty store with the contents of a backup, which `rows` passes to the closure it gets. If anything fails,
/// the store holds no usable record.
pub fn restore<E: From<Error>>(
    store: &dyn Store,
    rows: impl FnOnce(&mut dyn FnMut(Batch) -> Result<(), Error>) -> Result<(), E>,
) -> Result<(), E> {
    rows(&mut |batch| store.commit(batch, Durability::Soon))?;
    let mut batch = Batch::new();
    batch.put(Table::Meta, RESTORED, b"1");
    Ok(store.commit(batch, Durability::Flushed)?)
}

/// Returns a number larger than any that a state of this record, or a newer backup, has given out. Milliseconds since
/// 1970 grow faster than the numbers do.
pub(crate) fn unused_numbers(store: &dyn Store) -> Result<u64, Error> {
    let now = u64::try_from(SystemClock.now().as_millisecond()).unwrap_or(0);
    match store.scan(Table::Forgotten, b"", None, Order::Descending, 1)?.first() {
        Some((key, _)) => Ok(now.max(keys::number(Table::Forgotten.name(), key)? + 1)),
        None => Ok(now),
    }
}

fn without_indexes(batch: Batch) -> Batch {
    let left_out = |table: Table, key: &[u8]| match table {
        // The index of speakers, the graph, the themes and the index of kept facts are rebuilt from the memories, and the
        // passages with the indexes.
        Table::IndexQueue | Table::Names | Table::Passages | Table::Graph | Table::Themes | Table::Kept => true,
        // Pending forgets belong to the record. In a backup they would apply again, to newer rows too.
        Table::Forgotten => true,
        Table::Meta => {
            // What platforms still show belongs to the record alone, too.
            ABOUT_OTHERS.contains(&key) || themes::is_mark(key) || retractions::is_retraction(key)
        }
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

/// Returns a random name for a record or a folder: 128 bits from the system's random source, which seeds each
/// `RandomState`.
pub fn made_up_name() -> String {
    let half = || RandomState::new().hash_one(0_u8);
    format!("{:016x}{:016x}", half(), half())
}
