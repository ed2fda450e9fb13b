//! Files of messages: which bytes are kept, who may be shown them, and when they go.
//!
//! The bytes lie in the blob store. A row of [`Table::Blobs`] for each message that carries them is the only way to
//! them: a read needs such a row and a [`ReadScope`] that allows its message. Bytes without a row are removed at once,
//! and what a crash leaves of them by the next [`Files::sweep_blobs`].

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::{MutexGuard, PoisonError};

use azera_types::{Author, BlobId, MessageId, Part, PersonaId, Scope, Timestamp};
use serde::{Deserialize, Serialize};

use crate::domains::Files;
use crate::image_metadata::without_metadata;
use crate::rows::MessageRow;
use crate::{
    Batch, BlobStore, Change, Durability, Error, ReadScope, RetentionPreference, Store, Table, blob_id, codec, keys,
};

/// Divisor of the bound: one part in this many is freed in addition, so that not every file has to make room.
const SLACK: u64 = 20;

/// Digits of an id that name a file.
const MIN_ID_DIGITS: usize = 8;

/// Bytes that belong to a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BlobRow {
    /// The bytes.
    pub(crate) blob: BlobId,
    /// How many they are.
    pub(crate) bytes: u64,
    /// The message.
    pub(crate) message: MessageId,
    /// The persona that may read the message.
    pub(crate) persona: PersonaId,
    /// The scope of the message.
    pub(crate) scope: Scope,
    /// The number of the message.
    pub(crate) seq: u64,
    /// True if it is a pinned picture: the others of its place go first.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_pinned: bool,
}

/// A kept file that may be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredFile {
    /// The file, with its id.
    pub part: Part,
    /// The id of its bytes.
    pub blob: BlobId,
    /// The message that it came with.
    pub message: MessageId,
    /// The person who sent it.
    pub author: Author,
    /// When it was sent.
    pub at: Timestamp,
}

/// Number and size of all kept files. Files with the same bytes count once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct FileTotals {
    /// Number of files.
    pub files: usize,
    /// Their size in bytes.
    pub bytes: u64,
}

pub(crate) fn blob_key(blob: &BlobId, message: &MessageId) -> Vec<u8> {
    let mut key = keys::prefix(&[blob.as_str()]);
    key.extend_from_slice(message.as_str().as_bytes());
    key
}

/// Returns the bytes that a key made by [`blob_key`] is about.
pub fn blob_of(key: &[u8]) -> Option<BlobId> {
    let digits = std::str::from_utf8(keys::parts(key).next()?).ok()?;
    BlobId::new(digits).ok()
}

/// Adds to the batch that the bytes of a message's parts no longer belong to it.
pub(crate) fn let_go_of_parts(batch: &mut Batch, message: &MessageRow) {
    for blob in message.parts.iter().filter_map(|part| part.blob.as_ref()) {
        batch.remove(Table::Blobs, blob_key(blob, &message.id));
    }
}

impl<'a> Files<'a> {
    /// Returns which parts of a message are to be fetched and kept, by their index. None if the message is unknown or
    /// forgotten, or was edited after `version`, the time of the edit that the parts came with. None of a person who
    /// wants only messages to the bot to be kept, while it is open whether this is one.
    pub fn wanted(self, id: &MessageId, version: Option<Timestamp>) -> Result<Vec<usize>, Error> {
        let Some(row) = self.0.messages().raw_message(id)?.filter(|row| takes_files(row, version)) else {
            return Ok(Vec::new());
        };
        let Some(person) = row.author.person() else { return Ok(Vec::new()) };
        // A full disk costs the file, not the turn.
        if self.largest() == 0 || self.0.store.room().is_err() {
            return Ok(Vec::new());
        }
        let undecided = self.0.consent().retention(person)? != RetentionPreference::Everything
            && self.0.store.get(Table::Inbox, &keys::message(id))?.is_some();
        let wanted = |part: &Part| part.blob.is_none() && part.bytes <= self.largest() && may_keep(part);
        let wanted = row.parts.iter().enumerate().filter(|(_, part)| !undecided && wanted(part));
        Ok(wanted.map(|(index, _)| index).collect())
    }

    /// Returns the size of the largest file that is kept.
    pub fn largest(self) -> u64 {
        self.0.config.blob_max_bytes.min(self.0.config.blobs_max_bytes)
    }

    /// Keeps the bytes of a part of a message; returns true if it did. Removes the metadata of pictures first. The row
    /// of the message and the one that the bytes belong to it are one flushed transaction. See
    /// [`Files::wanted`] for what is not kept.
    pub fn keep(self, id: &MessageId, version: Option<Timestamp>, index: usize, bytes: Vec<u8>) -> Result<bool, Error> {
        if !self.wanted(id, version)?.contains(&index) || bytes.len() as u64 > self.largest() {
            return Ok(false);
        }
        let Some(chat) = self.0.messages().raw_message(id)?.map(|message| message.chat) else { return Ok(false) };
        let _writing = self.0.writing(&chat)?;
        // The message may have been forgotten or edited until the lock was taken.
        let Some(mut row) = self.0.messages().raw_message(id)?.filter(|row| takes_files(row, version)) else {
            return Ok(false);
        };
        let (message, persona, scope, seq) = (row.id.clone(), row.persona.clone(), row.scope.clone(), row.seq);
        let Some(part) = row.parts.get_mut(index).filter(|part| part.blob.is_none()) else { return Ok(false) };
        let Some(bytes) = without_metadata(part, bytes) else { return Ok(false) };
        let (blob, size) = (blob_id(&bytes)?, bytes.len() as u64);
        // Nobody removes the bytes between the writing of the file and of its row.
        let mut held = self.blob_bytes();
        let is_new = !self.belongs_to_any(&blob)?;
        if is_new {
            self.make_room(&mut held, size, &scope)?;
        }
        self.0.blobs.put(&blob, &bytes)?;
        (part.bytes, part.blob) = (size, Some(blob.clone()));
        let mut batch = Batch::new();
        codec::put(&mut batch, Table::Messages, keys::message(id), &row)?;
        let key = blob_key(&blob, &message);
        let row = BlobRow { blob, bytes: size, message, persona, scope, seq, is_pinned: false };
        codec::put(&mut batch, Table::Blobs, key, &row)?;
        self.0.store.commit(batch, Durability::Flushed)?;
        if is_new {
            *held += size;
        }
        Ok(true)
    }

    /// Returns the kept files that `read_scope` allows, newest first.
    pub fn list(self, read_scope: &ReadScope) -> Result<Vec<StoredFile>, Error> {
        let mut rows: Vec<BlobRow> = codec::rows(self.0.store.as_ref(), Table::Blobs, b"")?;
        rows.sort_by_key(|row| std::cmp::Reverse(row.seq));
        let mut files = Vec::new();
        for row in rows {
            let Some(message) = self.0.messages().get(read_scope, &row.message)? else { continue };
            let parts = message.parts.into_iter().filter(|part| part.blob.as_ref() == Some(&row.blob));
            files.extend(parts.map(|part| StoredFile {
                part,
                blob: row.blob.clone(),
                message: message.id.clone(),
                author: message.author.clone(),
                at: message.at,
            }));
        }
        Ok(files)
    }

    /// Returns the newest kept file that `read_scope` allows and that is named `which`: by its name, or by the beginning
    /// of its id, and its bytes.
    pub fn get(self, read_scope: &ReadScope, which: &str) -> Result<Option<(StoredFile, Vec<u8>)>, Error> {
        let by_id = |file: &StoredFile| which.len() >= MIN_ID_DIGITS && file.blob.as_str().starts_with(which);
        let found = self.list(read_scope)?.into_iter().find(|file| file.part.name == which || by_id(file));
        let Some(file) = found else { return Ok(None) };
        Ok(self.0.blobs.get(&file.blob)?.map(|bytes| (file, bytes)))
    }

    /// Returns the bytes of a part of a message, if they still belong to it.
    pub(crate) fn bytes_of(self, message: &MessageId, part: &Part) -> Result<Option<Vec<u8>>, Error> {
        let Some(blob) = &part.blob else { return Ok(None) };
        match self.0.store.get(Table::Blobs, &blob_key(blob, message))? {
            Some(_) => self.0.blobs.get(blob),
            None => Ok(None),
        }
    }

    /// Returns number and size of all kept files.
    pub fn totals(self) -> Result<FileTotals, Error> {
        let mut totals = FileTotals::default();
        for (_, bytes) in self.0.blobs.list()? {
            totals.files += 1;
            totals.bytes += bytes;
        }
        Ok(totals)
    }

    /// Commits a batch, and removes the bytes that no longer belong to any message because of it.
    pub(crate) fn commit_letting_go(self, batch: Batch, durability: Durability) -> Result<(), Error> {
        let let_go: BTreeSet<BlobId> = batch.changes().iter().filter_map(let_go_by).collect();
        self.0.store.commit(batch, durability)?;
        if let_go.is_empty() {
            return Ok(());
        }
        let mut held = self.blob_bytes();
        for blob in let_go {
            // The rows are gone already. The next sweep tries again.
            if let Err(error) = self.remove_if_nobodys(&mut held, &blob) {
                tracing::warn!(%error, "cannot remove the bytes of a file yet");
            }
        }
        Ok(())
    }

    /// Removes bytes that belong to no message: a crash, or a failing disk, may have left some. Returns how many files
    /// that were.
    pub(crate) fn sweep_blobs(self) -> Result<usize, Error> {
        let mut held = self.blob_bytes();
        let owned = owned_blobs(self.0.store.as_ref())?;
        let (mut removed, mut bytes) = (0, 0);
        for (blob, size) in self.0.blobs.list()? {
            if owned.contains(&blob) {
                bytes += size;
            } else {
                self.0.blobs.remove(&blob)?;
                removed += 1;
            }
        }
        *held = bytes;
        Ok(removed)
    }

    /// Removes files until `size` more bytes fit: those of the place first, then those of others; of each, the oldest
    /// first and pinned pictures last. The caller holds the lock.
    pub(crate) fn make_room(self, held: &mut u64, size: u64, place: &Scope) -> Result<(), Error> {
        let most = self.0.config.blobs_max_bytes;
        if held.saturating_add(size) <= most {
            return Ok(());
        }
        let fits = most.saturating_sub(size).saturating_sub(most / SLACK);
        let mut rows: Vec<BlobRow> = codec::rows(self.0.store.as_ref(), Table::Blobs, b"")?;
        // A place makes room at its own expense first, also at that of its pins: else a place that pins everything would
        // empty the places of others.
        rows.sort_by_key(|row| (row.scope != *place, row.is_pinned, row.seq));
        let mut owners: BTreeMap<BlobId, usize> = BTreeMap::new();
        for row in &rows {
            *owners.entry(row.blob.clone()).or_default() += 1;
        }
        let (mut batch, mut left, mut gone) = (Batch::new(), *held, Vec::new());
        for row in rows {
            if left <= fits {
                break;
            }
            batch.remove(Table::Blobs, blob_key(&row.blob, &row.message));
            let Some(count) = owners.get_mut(&row.blob) else { continue };
            *count -= 1;
            if *count == 0 {
                left = left.saturating_sub(row.bytes);
                gone.push(row.blob);
            }
        }
        self.0.store.commit(batch, Durability::Flushed)?;
        for blob in gone {
            self.remove_if_nobodys(held, &blob)?;
        }
        Ok(())
    }

    pub(crate) fn remove_if_nobodys(self, held: &mut u64, blob: &BlobId) -> Result<(), Error> {
        if !self.belongs_to_any(blob)? {
            *held = held.saturating_sub(self.0.blobs.remove(blob)?);
        }
        Ok(())
    }

    pub(crate) fn belongs_to_any(self, blob: &BlobId) -> Result<bool, Error> {
        let prefix = keys::prefix(&[blob.as_str()]);
        Ok(!self.0.store.scan(Table::Blobs, &prefix, None, crate::Order::Ascending, 1)?.is_empty())
    }

    /// Locks the blob store against other writers, and returns the size of everything in it.
    pub(crate) fn blob_bytes(self) -> MutexGuard<'a, u64> {
        self.0.blob_bytes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns true if parts that came with the edit at `version` still are the parts of the message.
fn takes_files(row: &MessageRow, version: Option<Timestamp>) -> bool {
    row.author != Author::Forgotten && row.edited_at <= version
}

/// Returns true if bytes of this kind may be kept. Films are not: they say where they were made, and nothing here
/// removes that.
fn may_keep(part: &Part) -> bool {
    !part.mime.starts_with("video/")
}

fn let_go_by(change: &Change) -> Option<BlobId> {
    match change {
        Change::Remove(Table::Blobs, key) => blob_of(key),
        _ => None,
    }
}

/// Returns all bytes that belong to a message.
pub(crate) fn owned_blobs(store: &dyn Store) -> Result<HashSet<BlobId>, Error> {
    let mut owned = HashSet::new();
    codec::walk(store, Table::Blobs, b"", |key, _| {
        owned.extend(blob_of(key));
        Ok(true)
    })?;
    Ok(owned)
}

/// Returns the faults of the blob store: files that are missing, files with other bytes, and files of no message.
pub(crate) fn blob_faults(store: &dyn Store, blobs: &dyn BlobStore) -> Result<[usize; 3], Error> {
    let owned = owned_blobs(store)?;
    let [mut missing, mut damaged] = [0, 0];
    for blob in &owned {
        match blobs.get(blob) {
            Ok(Some(_)) => {}
            Ok(None) => missing += 1,
            Err(Error::Damaged { .. }) => damaged += 1,
            Err(error) => return Err(error),
        }
    }
    let stray = blobs.list()?.iter().filter(|(blob, _)| !owned.contains(blob)).count();
    Ok([missing, damaged, stray])
}
