//! The type [`Memory`], through which all stored data is read and written.

use std::collections::BTreeSet;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use azera_types::ChatId;
use serde::{Deserialize, Serialize};

use crate::comparable::MarkLists;
use crate::picture_order::PictureOrder;
use crate::recall::AuthorCache;
use crate::record::Record;
use crate::{
    Batch, BlobStore, Durability, Error, Store, Table, TextIndex, VectorIndex, Working, codec, graph, kept, migrate,
    themes,
};

/// Number of locks that chats share. Two turns of one chat never write at once, and those of different chats seldom
/// wait.
const STRIPES: usize = 64;

/// Numbers reserved on disk at a time. A crash leaves a gap of at most this many numbers; no number is given out twice.
const RESERVE: u64 = 1_024;

/// Version of the layout of rows. Opening a record with an older layout migrates it. Layout 3 has files, layout 4
/// pictures that people asked for, layout 5 the graph, layout 6 imported chats, layout 7 commands of coding sessions and
/// ratings, layout 8 themes, and layout 9 the index of kept facts: an older version would forget a message or a person and
/// leave those, so it must not open such a record.
const SCHEMA: u32 = 9;

/// The stores that a memory works on.
#[derive(Clone)]
pub struct Layers {
    /// The source of truth.
    pub store: Arc<dyn Store>,
    /// Semantic search.
    pub vectors: Arc<dyn VectorIndex>,
    /// Lexical search.
    pub text: Arc<dyn TextIndex>,
    /// Values that may be lost.
    pub working: Arc<dyn Working>,
    /// The bytes of files.
    pub blobs: Arc<dyn BlobStore>,
}

/// Limits and thresholds of memory.
#[derive(Debug, Clone, PartialEq)]
pub struct MemoryConfig {
    /// Pause after which the next message of a chat begins a new conversation.
    pub session_gap: Duration,
    /// Recall leaves out newer memories, because the prompt's conversation contains them anyway.
    pub min_age: Duration,
    /// Longest recalled snippet, in characters.
    pub snippet_chars: usize,
    /// Cosine similarity below which a semantic hit means nothing; from the embedding model's registry entry.
    pub similarity_floor: f32,
    /// Cosine similarity from which two memories of one scope and person may say the same.
    pub near_duplicate: f32,
    /// Name of the embedding model.
    pub embedder: String,
    /// The largest file of a message that is kept, in bytes.
    pub blob_max_bytes: u64,
    /// Most bytes of files in total; the oldest are removed first. 0 keeps none.
    pub blobs_max_bytes: u64,
}

#[derive(Serialize, Deserialize)]
struct Meta {
    schema: u32,
}

/// All stored data of one installation. Reads that show content take a [`crate::ReadScope`]. The other methods serve
/// the turn itself (receiving, delivering, indexing) and show nobody anything.
pub struct Memory {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) vectors: Arc<dyn VectorIndex>,
    pub(crate) text: Arc<dyn TextIndex>,
    pub(crate) working: Arc<dyn Working>,
    pub(crate) blobs: Arc<dyn BlobStore>,
    /// Size of all kept files in bytes. Locked while a file is written or removed, together with its row.
    pub(crate) blob_bytes: Mutex<u64>,
    pub(crate) config: MemoryConfig,
    pub(crate) identity: String,
    stripes: Vec<Mutex<()>>,
    hasher: RandomState,
    next: AtomicU64,
    reserved: Mutex<u64>,
    /// Held while a request for a scrub is written or withdrawn.
    pub(crate) scrubbing: Mutex<()>,
    /// Held while minds are changed outside a turn, or forgotten.
    pub(crate) states: Mutex<()>,
    /// Held while a picture is queued, because its limits are about all chats.
    pub(crate) asking_for_pictures: Mutex<()>,
    /// Which pictures there are.
    pub(crate) picture_order: Mutex<PictureOrder>,
    pub(crate) origins: AuthorCache,
    pub(crate) mark_lists: MarkLists,
    /// Counts how many times rows were removed whose bytes are to be overwritten.
    pub(crate) forgettings: AtomicU64,
    pub(crate) embedding_lookups: AtomicU64,
    pub(crate) embeddings_cached: AtomicU64,
}

impl std::fmt::Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Memory").field("config", &self.config).finish_non_exhaustive()
    }
}

impl Memory {
    /// Opens the stores in `layers`, and migrates an older layout.
    pub fn open(layers: Layers, config: MemoryConfig) -> Result<Self, Error> {
        let store = layers.store;
        let layout = codec::get::<Meta>(store.as_ref(), Table::Meta, b"schema")?.map(|meta| meta.schema);
        match layout {
            Some(newer) if newer > SCHEMA => {
                return Err(Error::Invalid(format!(
                    "the record was written by a newer version (layout {newer}, this one knows {SCHEMA})"
                )));
            }
            Some(SCHEMA) => {}
            older => {
                if older.is_some_and(|older| older < 2) {
                    migrate::upgrade(store.as_ref())?;
                }
                let mut batch = Batch::new();
                codec::put(&mut batch, Table::Meta, b"schema".to_vec(), &Meta { schema: SCHEMA })?;
                store.commit(batch, Durability::Flushed)?;
            }
        }
        let identity = Record::of(store.as_ref())?.identity().to_owned();
        let reserved = codec::get::<u64>(store.as_ref(), Table::Meta, b"reserved")?.unwrap_or(1);
        let memory = Self {
            store,
            vectors: layers.vectors,
            text: layers.text,
            working: layers.working,
            blobs: layers.blobs,
            blob_bytes: Mutex::new(0),
            config,
            identity,
            stripes: (0..STRIPES).map(|_| Mutex::new(())).collect(),
            hasher: RandomState::new(),
            next: AtomicU64::new(reserved),
            reserved: Mutex::new(reserved),
            scrubbing: Mutex::new(()),
            asking_for_pictures: Mutex::new(()),
            states: Mutex::new(()),
            picture_order: Mutex::default(),
            origins: AuthorCache::default(),
            mark_lists: MarkLists::default(),
            forgettings: AtomicU64::new(0),
            embedding_lookups: AtomicU64::new(0),
            embeddings_cached: AtomicU64::new(0),
        };
        memory.finish_restore()?;
        memory.indexing().follow_index_version()?;
        graph::begin_anew(memory.store.as_ref())?;
        themes::begin_anew(memory.store.as_ref())?;
        kept::complete(memory.store.as_ref())?;
        memory.files().sweep_blobs()?;
        Ok(memory)
    }

    /// Returns the limits and thresholds in force.
    pub fn config(&self) -> &MemoryConfig {
        &self.config
    }

    /// Returns a number that was never given out before, larger than all before it. Messages use it as their order of
    /// arrival, memories as their id.
    pub(crate) fn next_number(&self) -> Result<u64, Error> {
        let mut reserved = self.reserved.lock().unwrap_or_else(PoisonError::into_inner);
        let number = self.next.load(Ordering::Relaxed);
        if number >= *reserved {
            self.store.ready()?;
            let until = number + RESERVE;
            let mut batch = Batch::new();
            codec::put(&mut batch, Table::Meta, b"reserved".to_vec(), &until)?;
            self.store.commit(batch, Durability::Flushed)?;
            *reserved = until;
        }
        self.next.store(number + 1, Ordering::Relaxed);
        Ok(number)
    }

    /// Makes numbers continue at `floor` or higher.
    pub(crate) fn raise_numbers(&self, floor: u64) -> Result<(), Error> {
        let mut reserved = self.reserved.lock().unwrap_or_else(PoisonError::into_inner);
        let raised = floor.max(*reserved);
        let mut batch = Batch::new();
        codec::put(&mut batch, Table::Meta, b"reserved".to_vec(), &raised)?;
        self.store.commit(batch, Durability::Flushed)?;
        *reserved = raised;
        self.next.store(raised, Ordering::Relaxed);
        Ok(())
    }

    /// Locks out other writers of `chat`, and makes sure that rows read from here on are not rolled back.
    pub(crate) fn writing(&self, chat: &ChatId) -> Result<MutexGuard<'_, ()>, Error> {
        // A panic leaves no half-written batch, so a poisoned lock guards nothing broken.
        let writing = self.stripes[self.stripe(chat)].lock().unwrap_or_else(PoisonError::into_inner);
        self.store.ready()?;
        Ok(writing)
    }

    /// Locks several chats like [`Self::writing`].
    pub(crate) fn writing_in(&self, chats: &BTreeSet<ChatId>) -> Result<Vec<MutexGuard<'_, ()>>, Error> {
        // Each stripe is locked once, in ascending order, so that two callers cannot deadlock.
        let stripes: BTreeSet<usize> = chats.iter().map(|chat| self.stripe(chat)).collect();
        let lock = |stripe: usize| self.stripes[stripe].lock().unwrap_or_else(PoisonError::into_inner);
        let writing = stripes.into_iter().map(lock).collect();
        self.store.ready()?;
        Ok(writing)
    }

    fn stripe(&self, chat: &ChatId) -> usize {
        self.hasher.hash_one(chat) as usize % STRIPES
    }

    /// Returns the size of the record on disk in bytes.
    pub fn disk_bytes(&self) -> Result<u64, Error> {
        self.store.disk_bytes()
    }
}
