//! The indexes next to a record whose disk may be full.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use azera_memory::conformance::settings;
use azera_memory::{
    Batch, Durability, Entry, Error, Facet, FacetWeights, Forget, Found, IndexWork, Layers, LexicalHits, Memory,
    NewChat, NewFact, Order, Point, RamStore, RamWorking, ReadScope, Store, Stored, Table, TextDocument, TextIndex,
    TextIndexKind, VectorIndex,
};
use azera_types::{Author, ChatId, Inbound, MemoryId, MessageId, PersonId, PersonaId, PlatformId, Scope, Timestamp};

/// A store on a disk that may be full. Changes that were applied but not flushed can be read until the store recovers.
#[derive(Default)]
struct Disk {
    applied: Mutex<RamStore>,
    flushed: Mutex<RamStore>,
    full: AtomicBool,
    failed: AtomicBool,
}

impl Disk {
    fn applied(&self) -> RamStore {
        self.applied.lock().unwrap().clone()
    }

    fn set_full(&self, full: bool) {
        self.full.store(full, Ordering::Relaxed);
    }
}

fn copy(of: &RamStore) -> RamStore {
    let copy = RamStore::new();
    of.dump(&mut |batch| copy.commit(batch, Durability::Soon)).unwrap();
    copy
}

impl Store for Disk {
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        self.applied().get(table, key)
    }
    fn scan(
        &self,
        table: Table,
        prefix: &[u8],
        after: Option<&[u8]>,
        order: Order,
        limit: usize,
    ) -> Result<Vec<Entry>, Error> {
        self.applied().scan(table, prefix, after, order, limit)
    }
    fn ready(&self) -> Result<(), Error> {
        if self.failed.load(Ordering::Relaxed) {
            if self.full.load(Ordering::Relaxed) {
                return Err(Error::Full { what: "opening the store again" });
            }
            *self.applied.lock().unwrap() = copy(&self.flushed.lock().unwrap());
            self.failed.store(false, Ordering::Relaxed);
        }
        Ok(())
    }
    fn commit(&self, batch: Batch, durability: Durability) -> Result<(), Error> {
        if self.failed.load(Ordering::Relaxed) {
            return Err(Error::Full { what: "writing" });
        }
        self.applied().commit(batch, durability)?;
        if durability == Durability::Flushed { self.flush() } else { Ok(()) }
    }
    fn flush(&self) -> Result<(), Error> {
        if self.full.load(Ordering::Relaxed) || self.failed.load(Ordering::Relaxed) {
            self.failed.store(true, Ordering::Relaxed);
            return Err(Error::Full { what: "flushing" });
        }
        *self.flushed.lock().unwrap() = copy(&self.applied());
        Ok(())
    }
    fn rewrite(&self) -> Result<(), Error> {
        Ok(())
    }
    fn dump(&self, take: &mut dyn FnMut(Batch) -> Result<(), Error>) -> Result<u64, Error> {
        self.applied().dump(take)
    }
    fn revision(&self) -> u64 {
        self.applied().revision()
    }
    fn disk_bytes(&self) -> Result<u64, Error> {
        Ok(0)
    }
}

/// An index that holds ids only.
#[derive(Default)]
struct Ids(Mutex<BTreeSet<MemoryId>>);

impl Ids {
    fn change(&self, with: impl FnOnce(&mut BTreeSet<MemoryId>)) -> Result<(), Error> {
        with(&mut self.0.lock().unwrap());
        Ok(())
    }

    fn held(&self) -> Vec<MemoryId> {
        self.0.lock().unwrap().iter().copied().collect()
    }
}

impl VectorIndex for Ids {
    fn upsert(&self, points: Vec<Point>) -> Result<(), Error> {
        self.change(|ids| ids.extend(points.iter().map(|point| point.id)))
    }
    fn search(&self, _: &ReadScope, _: Facet, _: &[f32], _: Timestamp, _: usize) -> Result<Vec<Found>, Error> {
        Ok(Vec::new())
    }
    fn vectors(&self, _: &[MemoryId]) -> Result<Vec<Stored>, Error> {
        Ok(Vec::new())
    }
    fn remove(&self, gone: &[MemoryId]) -> Result<(), Error> {
        self.change(|ids| ids.retain(|id| !gone.contains(id)))
    }
    fn flush(&self) -> Result<(), Error> {
        Ok(())
    }
    fn optimize(&self) -> Result<(), Error> {
        Ok(())
    }
    fn clear(&self) -> Result<(), Error> {
        self.change(BTreeSet::clear)
    }
    fn rewrite(&self) -> Result<(), Error> {
        Ok(())
    }
    fn ids(&self) -> Result<Vec<MemoryId>, Error> {
        Ok(self.held())
    }
}

impl TextIndex for Ids {
    fn upsert(&self, docs: Vec<TextDocument>) -> Result<(), Error> {
        self.change(|ids| ids.extend(docs.iter().map(|doc| doc.id)))
    }
    fn search(
        &self,
        _: &ReadScope,
        _: TextIndexKind,
        _: &str,
        _: FacetWeights,
        _: Timestamp,
        _: usize,
    ) -> Result<LexicalHits, Error> {
        Ok(LexicalHits::default())
    }
    fn containing(
        &self,
        _: &ReadScope,
        _: TextIndexKind,
        _: &str,
        _: Timestamp,
        _: usize,
    ) -> Result<Vec<MemoryId>, Error> {
        Ok(Vec::new())
    }
    fn remove(&self, gone: &[MemoryId]) -> Result<(), Error> {
        VectorIndex::remove(self, gone)
    }
    fn commit(&self) -> Result<(), Error> {
        Ok(())
    }
    fn clear(&self) -> Result<(), Error> {
        VectorIndex::clear(self)
    }
    fn rewrite(&self) -> Result<(), Error> {
        Ok(())
    }
    fn ids(&self) -> Result<Vec<MemoryId>, Error> {
        Ok(self.held())
    }
}

fn open(disk: &Arc<Disk>) -> Memory {
    open_with(disk, &Arc::default(), &Arc::default())
}

fn open_with(disk: &Arc<Disk>, vectors: &Arc<Ids>, text: &Arc<Ids>) -> Memory {
    let layers = Layers {
        blobs: Arc::new(azera_memory::RamBlobs::default()),
        store: Arc::clone(disk) as Arc<dyn Store>,
        vectors: Arc::clone(vectors) as Arc<dyn VectorIndex>,
        text: Arc::clone(text) as Arc<dyn TextIndex>,
        working: Arc::new(RamWorking::default()),
    };
    let memory = Memory::open(layers, settings()).unwrap();
    let platform = PlatformId::new("test").unwrap();
    let chat = NewChat { id: chat(), platform, title: None, persona: PersonaId::new("azera").unwrap() };
    memory.chats().open(chat, Timestamp::UNIX_EPOCH).unwrap();
    memory
}

fn chat() -> ChatId {
    ChatId::new("chat").unwrap()
}

/// Receives a message and leaves its turn open.
fn hear(memory: &Memory, id: &str) -> Result<MessageId, Error> {
    let inbound = Inbound {
        id: MessageId::new(id).unwrap(),
        chat: chat(),
        person: PersonId::new("ann").unwrap(),
        name: "Ann".into(),
        text: "the ferry leaves at seven".into(),
        at: Timestamp::UNIX_EPOCH,
        parts: Vec::new(),
        mentions_bot: false,
        mentions: Vec::new(),
        reply_to: None,
    };
    let platform = PlatformId::new("test").unwrap();
    memory.turns().receive(&platform, &inbound, Scope::Chat(chat()), Timestamp::UNIX_EPOCH)?;
    Ok(inbound.id)
}

fn say(memory: &Memory, id: &str) -> Result<(), Error> {
    memory.turns().leave(&hear(memory, id)?)
}

/// Indexes all queued memories.
fn index(memory: &Memory) -> Result<(), Error> {
    loop {
        let work = memory.indexing().work(64)?;
        if work.is_empty() {
            return Ok(());
        }
        memory.indexing().index_words(None, 64)?;
        let embedded = |work: IndexWork| work.with_vectors(&mut std::iter::repeat(vec![1.0]));
        memory.indexing().index(work.into_iter().filter_map(embedded).collect())?;
    }
}

#[track_caller]
fn assert_equal_to_record(memory: &Memory, memories: usize) {
    let audit = memory.indexing().audit().unwrap();
    assert_eq!((audit.memories, audit.queued), (memories, 0), "{audit:?}");
    assert!(audit.missing_vectors.is_empty() && audit.missing_text.is_empty(), "{audit:?}");
    assert!(audit.stray_vectors.is_empty() && audit.stray_text.is_empty(), "{audit:?}");
}

/// The first caller that succeeds after the disk was full may be the indexer.
#[test]
fn rows_that_the_record_rolls_back_are_in_no_index() {
    let disk = Arc::new(Disk::default());
    let memory = open(&disk);
    say(&memory, "kept").unwrap();
    index(&memory).unwrap();
    disk.set_full(true);
    say(&memory, "taken back").unwrap_err();
    index(&memory).unwrap_err();
    disk.set_full(false);
    index(&memory).unwrap();
    assert_equal_to_record(&memory, 1);
    say(&memory, "said again").unwrap();
    index(&memory).unwrap();
    assert_equal_to_record(&memory, 2);
}

#[test]
fn a_failed_forgetting_leaves_the_indexes_alone() {
    let disk = Arc::new(Disk::default());
    let memory = open(&disk);
    say(&memory, "kept").unwrap();
    index(&memory).unwrap();
    disk.set_full(true);
    memory.forgetting().forget(&Forget::Message(MessageId::new("kept").unwrap()), false).unwrap_err();
    index(&memory).unwrap_err();
    disk.set_full(false);
    index(&memory).unwrap();
    assert_equal_to_record(&memory, 1);
}

#[test]
fn chunks_belong_to_their_message_and_are_stored_again_after_an_edit() {
    let memory = open(&Arc::default());
    let pieces = || vec!["log, 2: the harbour is full of tar".into(), "log, 3: and of ropes".into()];
    let said = hear(&memory, "kept").unwrap();
    assert_eq!(memory.memories().store_chunks(&said, None, pieces()).unwrap(), 2);
    memory.turns().leave(&said).unwrap();
    index(&memory).unwrap();
    assert_equal_to_record(&memory, 3);
    memory.turns().edit(&said, "the ferry leaves at eight".into(), Timestamp::UNIX_EPOCH).unwrap();
    index(&memory).unwrap();
    assert_equal_to_record(&memory, 1);
    // Chunks from before an edit are refused, whenever they arrive.
    assert_eq!(memory.memories().store_chunks(&said, None, pieces()).unwrap(), 0);
    let changed = Some(Timestamp::UNIX_EPOCH);
    assert_eq!(memory.memories().store_chunks(&said, changed, pieces()).unwrap(), 2);
    assert_eq!(memory.memories().store_chunks(&said, changed, pieces()).unwrap(), 0);
    index(&memory).unwrap();
    assert_equal_to_record(&memory, 3);
    memory.forgetting().forget(&Forget::Message(said), false).unwrap();
    index(&memory).unwrap();
    assert_equal_to_record(&memory, 0);
}

#[test]
fn pruning_removes_the_chunks_of_a_message_with_its_memory() {
    let memory = open(&Arc::default());
    let first = hear(&memory, "first").unwrap();
    memory.turns().leave(&first).unwrap();
    memory.memories().store_chunks(&first, None, vec!["log, 2: tar".into(), "log, 3: ropes".into()]).unwrap();
    let later = hear(&memory, "later").unwrap();
    memory.turns().leave(&later).unwrap();
    memory.memories().store_chunks(&later, None, vec!["list, 2: bread".into()]).unwrap();
    let pruned = memory.memories().prune(&PersonaId::new("azera").unwrap(), 1, Timestamp::UNIX_EPOCH).unwrap();
    assert_eq!((pruned.removed, pruned.left), (3, 1));
    index(&memory).unwrap();
    assert_equal_to_record(&memory, 2);
}

#[test]
fn the_same_fact_is_stored_once() {
    let memory = open(&Arc::default());
    let fact = |at| NewFact {
        persona: PersonaId::new("azera").unwrap(),
        chat: chat(),
        scope: Scope::Chat(chat()),
        author: Author::Person { id: PersonId::new("ann").unwrap(), name: "Ann".into() },
        text: "the ferry leaves at seven".into(),
        at: Timestamp::from_second(at).unwrap(),
    };
    let retained = memory.memories().store_fact_once(fact(1)).unwrap();
    assert_eq!(memory.memories().store_fact_once(fact(1)).unwrap(), retained);
    assert_ne!(memory.memories().store_fact_once(fact(2)).unwrap(), retained);
    index(&memory).unwrap();
    assert_equal_to_record(&memory, 2);
}

fn long_text() -> String {
    "the ferry leaves at seven and returns at nine. ".repeat(40)
}

/// Indexes that were built before long messages had passages.
#[test]
fn indexes_of_before_get_the_passages_of_long_messages() {
    let (disk, vectors, text) = <(Arc<Disk>, Arc<Ids>, Arc<Ids>)>::default();
    let memory = open_with(&disk, &vectors, &text);
    say(&memory, "short").unwrap();
    let long = hear(&memory, "long").unwrap();
    memory.turns().leave(&long).unwrap();
    memory.turns().edit(&long, long_text().into(), Timestamp::UNIX_EPOCH).unwrap();
    index(&memory).unwrap();
    let whole = vectors.held();
    let memories: Vec<MemoryId> = whole.iter().copied().filter(|id| id.0 < 1 << 40).collect();
    assert!(memories.len() == 2 && whole.len() > 6, "{whole:?}");
    drop(memory);
    for ids in [&vectors, &text] {
        ids.change(|ids| *ids = memories.iter().copied().collect()).unwrap();
    }
    let mut batch = Batch::new();
    batch.remove(Table::Meta, "index_version");
    for (key, _) in disk.scan(Table::Passages, b"", None, Order::Ascending, 10).unwrap() {
        batch.remove(Table::Passages, key);
    }
    disk.commit(batch, Durability::Flushed).unwrap();
    let memory = open_with(&disk, &vectors, &text);
    assert_eq!(memory.indexing().queued().unwrap(), 1, "the short one is not embedded again");
    index(&memory).unwrap();
    assert_equal_to_record(&memory, 2);
    assert_eq!((vectors.held(), text.held()), (whole.clone(), whole));
    drop(memory);
    assert_eq!(open_with(&disk, &vectors, &text).indexing().queued().unwrap(), 0);
}

#[test]
fn passages_leave_the_indexes_with_their_text() {
    let (disk, vectors, text) = <(Arc<Disk>, Arc<Ids>, Arc<Ids>)>::default();
    let memory = open_with(&disk, &vectors, &text);
    let said = hear(&memory, "long").unwrap();
    memory.turns().leave(&said).unwrap();
    let held = |text_of: &str| {
        memory.turns().edit(&said, text_of.into(), Timestamp::UNIX_EPOCH).unwrap();
        index(&memory).unwrap();
        assert_equal_to_record(&memory, 1);
        assert_eq!(vectors.held(), text.held());
        vectors.held().len()
    };
    let long = held(&long_text());
    assert!(long > 6);
    assert!((2..long).contains(&held(&long_text().chars().take(900).collect::<String>())));
    assert_eq!(held("the ferry leaves at eight"), 1);
    assert_eq!(held(&long_text()), long);
    memory.forgetting().forget(&Forget::Message(said), false).unwrap();
    index(&memory).unwrap();
    assert_equal_to_record(&memory, 0);
    assert_eq!((vectors.held(), text.held()), (vec![], vec![]));
}

/// A passage that only an index knows, as after a disk lost the record's last change.
#[test]
fn mending_removes_passages_that_the_record_does_not_know() {
    let (disk, vectors, text) = <(Arc<Disk>, Arc<Ids>, Arc<Ids>)>::default();
    let memory = open_with(&disk, &vectors, &text);
    say(&memory, "short").unwrap();
    index(&memory).unwrap();
    let stray = MemoryId(vectors.held()[0].0 | 3 << 48);
    for ids in [&vectors, &text] {
        ids.change(|ids| ids.extend([stray, MemoryId(77 | 2 << 48)])).unwrap();
    }
    assert_eq!(memory.indexing().audit().unwrap().stray_vectors.len(), 2);
    assert_eq!(memory.indexing().mend().unwrap(), 2);
    index(&memory).unwrap();
    assert_equal_to_record(&memory, 1);
}
