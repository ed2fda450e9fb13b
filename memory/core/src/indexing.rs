//! Keeping the two indexes equal to the record. A memory written, changed or removed stands in the index queue until
//! both indexes have it, flushed; whatever a crash interrupts is done again, with the same result.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use azera_types::MemoryId;

use crate::rows::{Kind, MemoryRow};
use crate::{
    Batch, Durability, Error, IndexMetadata, Memory, Order, Point, Store, Stored, Table, TextDocument, TextIndexKind,
    codec, keys,
};

/// Turns before a memory that its window covers in the vector index.
pub const VECTOR_WINDOW: usize = 1;

/// Turns before a memory that its window covers in the text index. Windows look back only: a memory is indexed once,
/// whatever is said after it.
pub const TEXT_WINDOW: usize = 2;

/// Time before a memory that its windows reach back at most. Where somebody cannot scroll back beyond a horizon, the
/// windows of memories nearer to it than this count for nothing ([`Memory::recall`]). Two turns' worth of the usual
/// session gap: in one conversation nothing that [`TEXT_WINDOW`] covers lies farther back.
pub const WINDOW_REACH: Duration = Duration::from_secs(2 * 3_600);

/// Key in [`Table::Meta`] of the wish to have both indexes made anew.
const REBUILD: &[u8] = b"rebuild";

/// Key in [`Table::Meta`] of the doubt whether the indexes hold what the record holds.
const DOUBT: &[u8] = b"doubt";

/// Memories queued in one transaction.
const QUEUE_PAGE: usize = 4_096;

/// What is to be embedded for one memory.
#[derive(Clone, PartialEq, Eq)]
pub struct IndexWork {
    /// Which memory.
    pub id: MemoryId,
    /// The text of [`crate::Facet::Own`].
    pub own: String,
    /// The text of [`crate::Facet::Window`], if there are turns around it.
    pub window: Option<String>,
    /// The queue's entries this work was read from; what is queued later stays queued.
    tickets: Vec<Vec<u8>>,
}

impl std::fmt::Debug for IndexWork {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "IndexWork({})", self.id)
    }
}

/// The vectors of one memory.
#[derive(Clone, PartialEq)]
pub struct Embedded {
    /// The work they belong to.
    pub work: IndexWork,
    /// Vector of its own text.
    pub own: Vec<f32>,
    /// Vector of its window.
    pub window: Option<Vec<f32>>,
}

impl std::fmt::Debug for Embedded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Embedded({})", self.work.id)
    }
}

/// How the indexes differ from the record.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Audit {
    /// Memories in the record.
    pub memories: usize,
    /// Memories that still wait in the queue.
    pub queued: usize,
    /// In the record, not in the vector index.
    pub missing_vectors: Vec<MemoryId>,
    /// In the vector index, not in the record.
    pub stray_vectors: Vec<MemoryId>,
    /// In the record, not in the text index.
    pub missing_text: Vec<MemoryId>,
    /// In the text index, not in the record.
    pub stray_text: Vec<MemoryId>,
    /// Those of the four above that do not wait in the queue, so that nothing mends them but [`Memory::mend`].
    pub unaccounted: Vec<MemoryId>,
}

impl Memory {
    /// The next memories to embed, oldest first, at most `limit`. Memories that are gone are taken out of the indexes
    /// on the way.
    pub fn index_work(&self, limit: usize) -> Result<Vec<IndexWork>, Error> {
        self.store.ready()?;
        let mut queued: BTreeMap<MemoryId, Vec<Vec<u8>>> = BTreeMap::new();
        for (key, _) in self.store.scan(Table::IndexQueue, b"", None, Order::Ascending, limit)? {
            queued.entry(queued_id(&key)?).or_default().push(key);
        }
        if queued.is_empty() {
            return Ok(Vec::new());
        }
        let (mut absent, mut work) = (Vec::new(), Vec::new());
        for (id, tickets) in queued {
            match self.raw_memory(id)? {
                Some(memory) => work.push(IndexWork { tickets, ..self.texts(&memory)? }),
                None => absent.push((id, tickets)),
            }
        }
        // Otherwise the record might take back, with its ticket, what the indexes have by then.
        self.store.flush()?;
        let (mut gone, mut done) = (Vec::new(), Vec::new());
        for (id, tickets) in absent {
            if self.raw_memory(id)?.is_none() {
                gone.push(id);
                done.extend(tickets);
            }
        }
        if !gone.is_empty() {
            self.vectors.remove(&gone)?;
            self.text.remove(&gone)?;
            self.finish(done)?;
        }
        Ok(work)
    }

    /// Puts embedded memories into both indexes, flushes them, and takes them off the queue. A memory that changed or
    /// went away since its texts were read stays queued.
    pub fn index(&self, embedded: Vec<Embedded>) -> Result<(), Error> {
        let mut points = Vec::with_capacity(embedded.len());
        let mut docs = Vec::with_capacity(embedded.len());
        let mut done = Vec::with_capacity(embedded.len());
        for Embedded { work, own, window } in embedded {
            let Some(memory) = self.raw_memory(work.id)? else { continue };
            let now = self.texts(&memory)?;
            if (&now.own, &now.window) != (&work.own, &work.window) {
                continue;
            }
            let label = label(&memory);
            points.push(Point { id: work.id, label, own, window });
            docs.push(self.doc(&memory)?);
            done.extend(work.tickets);
        }
        if done.is_empty() {
            return Ok(());
        }
        self.vectors.upsert(points)?;
        self.text.upsert(docs)?;
        self.finish(done)
    }

    /// Puts queued memories into the text index alone and leaves them queued, so that words find them while nothing can
    /// be embedded: at most `limit` behind the ticket `after`. Gives the last ticket, `None` behind the last one.
    pub fn index_words(&self, after: Option<&[u8]>, limit: usize) -> Result<Option<Vec<u8>>, Error> {
        self.store.ready()?;
        let tickets = self.store.scan(Table::IndexQueue, b"", after, Order::Ascending, limit)?;
        self.store.flush()?;
        let mut docs = Vec::with_capacity(tickets.len());
        for (ticket, _) in &tickets {
            if let Some(memory) = self.raw_memory(queued_id(ticket)?)? {
                docs.push(self.doc(&memory)?);
            }
        }
        if !docs.is_empty() {
            self.text.upsert(docs)?;
            self.text.commit()?;
        }
        Ok(tickets.into_iter().next_back().map(|(ticket, _)| ticket))
    }

    fn doc(&self, memory: &MemoryRow) -> Result<TextDocument, Error> {
        let own = memory.text.as_str().to_owned();
        Ok(TextDocument {
            id: memory.id,
            text_index: index_kind(memory.kind),
            label: label(memory),
            own,
            window: self.text_window(memory)?,
        })
    }

    fn finish(&self, done: Vec<Vec<u8>>) -> Result<(), Error> {
        self.vectors.flush()?;
        self.text.commit()?;
        self.store.ready()?;
        let mut batch = Batch::new();
        for ticket in done {
            batch.remove(Table::IndexQueue, ticket);
        }
        self.store.commit(batch, Durability::Soon)
    }

    /// Memories that wait in the queue.
    pub fn queued(&self) -> Result<usize, Error> {
        count(self, Table::IndexQueue)
    }

    /// Empties both indexes and queues every memory for indexing anew; gives how many. Where that fails the wish stays,
    /// for a start that removes their files ([`rebuild_wanted`]).
    pub fn rebuild(&self) -> Result<usize, Error> {
        self.store.ready()?;
        let mut batch = Batch::new();
        batch.put(Table::Meta, REBUILD, b"1");
        self.store.commit(batch, Durability::Flushed)?;
        let queued = self.index_anew(true)?;
        let mut batch = Batch::new();
        batch.remove(Table::Meta, REBUILD);
        batch.remove(Table::Meta, DOUBT);
        self.store.commit(batch, Durability::Flushed)?;
        Ok(queued)
    }

    fn index_anew(&self, words_too: bool) -> Result<usize, Error> {
        let mut queued = 0;
        let mut batch = Batch::new();
        let mut pages = Vec::new();
        codec::walk(self.store.as_ref(), Table::Memories, b"", |key, _| {
            batch.put(Table::IndexQueue, [key, &0_u64.to_be_bytes()].concat(), []);
            queued += 1;
            if batch.changes().len() == QUEUE_PAGE {
                pages.push(std::mem::take(&mut batch));
            }
            Ok(true)
        })?;
        pages.push(batch);
        for page in pages {
            self.store.commit(page, Durability::Flushed)?;
        }
        self.vectors.clear()?;
        if words_too {
            self.text.clear()?;
        }
        Ok(queued)
    }

    /// Queues everything anew if the indexes were built with another embedding model than the present one; gives how
    /// many memories that touches.
    pub fn follow_embedder(&self) -> Result<Option<usize>, Error> {
        let was: Option<String> = codec::get(self.store.as_ref(), Table::Meta, b"embedder")?;
        if was.as_deref() == Some(self.config.embedder.as_str()) {
            return Ok(None);
        }
        // The words stay searchable while the vectors are made anew.
        let queued = self.index_anew(false)?;
        let mut batch = Batch::new();
        codec::put(&mut batch, Table::Meta, b"embedder".to_vec(), &self.config.embedder)?;
        self.store.commit(batch, Durability::Flushed)?;
        Ok(was.map(|_| queued))
    }

    /// Reorganises the vector index for fast search, if enough has changed since the last time. Searches go on meanwhile;
    /// indexing waits.
    pub fn optimize(&self) -> Result<(), Error> {
        self.vectors.optimize()
    }

    /// Compares the indexes with the record.
    pub fn audit(&self) -> Result<Audit, Error> {
        let mut held = Vec::new();
        codec::walk(self.store.as_ref(), Table::Memories, b"", |key, _| {
            held.push(MemoryId(keys::number("memories", key)?));
            Ok(true)
        })?;
        let (missing_vectors, stray_vectors) = difference(&held, &self.vectors.ids()?);
        let (missing_text, stray_text) = difference(&held, &self.text.ids()?);
        let mut unaccounted: BTreeSet<MemoryId> =
            [&missing_vectors, &stray_vectors, &missing_text, &stray_text].into_iter().flatten().copied().collect();
        codec::walk(self.store.as_ref(), Table::IndexQueue, b"", |ticket, _| {
            unaccounted.remove(&queued_id(ticket)?);
            Ok(true)
        })?;
        Ok(Audit {
            memories: held.len(),
            queued: self.queued()?,
            missing_vectors,
            stray_vectors,
            missing_text,
            stray_text,
            unaccounted: unaccounted.into_iter().collect(),
        })
    }

    /// Notes that the indexes may differ from the record, until [`Memory::mend`] has compared them.
    pub fn mark_indexes_suspect(&self) -> Result<(), Error> {
        let mut batch = Batch::new();
        batch.put(Table::Meta, DOUBT, b"1");
        self.store.commit(batch, Durability::Flushed)
    }

    /// Whether the indexes may differ from the record.
    pub fn indexes_are_suspect(&self) -> Result<bool, Error> {
        Ok(self.store.get(Table::Meta, DOUBT)?.is_some())
    }

    /// Queues what an audit found to differ without being queued; gives how many memories those are. Indexing then makes
    /// the indexes equal to the record, without building all of them anew.
    pub fn mend(&self) -> Result<usize, Error> {
        let unaccounted = self.audit()?.unaccounted;
        self.index_again(&unaccounted)?;
        if self.indexes_are_suspect()? {
            let mut batch = Batch::new();
            batch.remove(Table::Meta, DOUBT);
            self.store.commit(batch, Durability::Flushed)?;
        }
        Ok(unaccounted.len())
    }

    /// Queues memories, there or not, for being indexed anew.
    pub fn index_again(&self, ids: &[MemoryId]) -> Result<(), Error> {
        self.store.ready()?;
        for page in ids.chunks(QUEUE_PAGE) {
            let mut batch = Batch::new();
            for id in page {
                batch.put(Table::IndexQueue, self.ticket(*id)?, []);
            }
            self.store.commit(batch, Durability::Flushed)?;
        }
        Ok(())
    }

    /// Memories behind `after` in the order of their ids, at most `limit`: what is embedded of each, and its vectors if
    /// it has any. For comparing the two; what stands in the queue may well differ.
    pub fn indexed(&self, after: Option<MemoryId>, limit: usize) -> Result<Vec<(IndexWork, Option<Stored>)>, Error> {
        let after = after.map(keys::memory);
        let page = self.store.scan(Table::Memories, b"", after.as_deref(), Order::Ascending, limit)?;
        let mut work = Vec::with_capacity(page.len());
        for (_, value) in page {
            work.push(self.texts(&codec::decode(Table::Memories, &value)?)?);
        }
        let ids: Vec<MemoryId> = work.iter().map(|work| work.id).collect();
        let mut stored: BTreeMap<MemoryId, Stored> =
            self.vectors.vectors(&ids)?.into_iter().map(|stored| (stored.id, stored)).collect();
        let with_stored = |work: IndexWork| {
            let stored = stored.remove(&work.id);
            (work, stored)
        };
        Ok(work.into_iter().map(with_stored).collect())
    }

    /// A new key of the queue about a memory.
    fn ticket(&self, id: MemoryId) -> Result<Vec<u8>, Error> {
        let mut ticket = keys::memory(id);
        ticket.extend_from_slice(&self.next_number()?.to_be_bytes());
        Ok(ticket)
    }

    /// Queues a memory and those whose windows cover it.
    pub(crate) fn queue_with_neighbours(&self, batch: &mut Batch, memory: &MemoryRow) -> Result<(), Error> {
        for id in self.neighbours(memory, 0, TEXT_WINDOW)?.into_iter().chain([memory.id]) {
            batch.put(Table::IndexQueue, self.ticket(id)?, []);
        }
        Ok(())
    }

    /// Ids of up to `before` memories before and `after` behind one, of the same persona, chat and conversation, in
    /// order, itself left out.
    pub(crate) fn neighbours(&self, memory: &MemoryRow, before: usize, after: usize) -> Result<Vec<MemoryId>, Error> {
        // What was written or kept stands in no conversation: nothing is around it, and it is not queued when something is forgotten
        // that was said before it.
        let Some(chat) = memory.conversation() else { return Ok(Vec::new()) };
        let prefix = keys::prefix(&[memory.persona.as_str(), chat.as_str()]);
        let here = keys::memory_by_chat(&memory.persona, chat, memory.id);
        let mut ids = Vec::with_capacity(before + after);
        for (order, limit) in [(Order::Descending, before), (Order::Ascending, after)] {
            let mut side = Vec::with_capacity(limit);
            for (key, _) in self.store.scan(Table::MemoryByChat, &prefix, Some(&here), order, limit)? {
                side.push(MemoryId(keys::number("memory_by_chat", &key)?));
            }
            if order == Order::Descending {
                side.reverse();
            }
            ids.extend(side);
        }
        Ok(ids)
    }

    /// What is embedded of a memory: its own text under its speaker's name, and the same behind the turn before it.
    pub(crate) fn texts(&self, memory: &MemoryRow) -> Result<IndexWork, Error> {
        let own = line(memory);
        let before = self.turns_before(memory, VECTOR_WINDOW)?;
        let window =
            (!before.is_empty()).then(|| before.iter().map(line).chain([own.clone()]).collect::<Vec<_>>().join("\n"));
        Ok(IndexWork { id: memory.id, own, window, tickets: Vec::new() })
    }

    /// What is looked up by words besides a memory's own text: the turns before it, then itself. Names stay out: who
    /// spoke is a signal of its own.
    fn text_window(&self, memory: &MemoryRow) -> Result<String, Error> {
        let before = self.turns_before(memory, TEXT_WINDOW)?;
        let texts: Vec<&str> = before.iter().chain([memory]).map(|turn| turn.text.as_str()).collect();
        Ok(texts.join("\n"))
    }

    /// Up to `turns` memories before one in its conversation. A memory is found by its window, so only turns belong in
    /// it that may be shown wherever the memory may: of the same place, built on nothing that the memory was not built
    /// on too, and not farther back than [`WINDOW_REACH`].
    fn turns_before(&self, memory: &MemoryRow, turns: usize) -> Result<Vec<MemoryRow>, Error> {
        let mut before = Vec::with_capacity(turns);
        for id in self.neighbours(memory, turns, 0)? {
            before.extend(self.raw_memory(id)?.filter(|other| {
                other.session == memory.session
                    && other.scope == memory.scope
                    && memory.at.duration_since(other.at).unsigned_abs() <= WINDOW_REACH
                    && other
                        .source_scopes
                        .iter()
                        .all(|source_scope| memory.source_scopes.iter().any(|own| own.implies(source_scope)))
            }));
        }
        Ok(before)
    }
}

/// Whether the indexes were to be emptied and could not be. Whoever opens them removes their files first then, and calls
/// [`Memory::rebuild`].
pub fn rebuild_wanted(store: &dyn Store) -> Result<bool, Error> {
    Ok(store.get(Table::Meta, REBUILD)?.is_some())
}

fn label(memory: &MemoryRow) -> IndexMetadata {
    IndexMetadata { persona: memory.persona.clone(), scope: memory.scope.clone(), at: memory.at }
}

/// The memory a ticket of the queue is about.
pub(crate) fn queued_id(ticket: &[u8]) -> Result<MemoryId, Error> {
    let id = ticket.first_chunk::<8>();
    let id = id.ok_or_else(|| Error::Damaged { table: "index_queue", why: "a key is too short".into() })?;
    Ok(MemoryId(u64::from_be_bytes(*id)))
}

fn line(memory: &MemoryRow) -> String {
    format!("{}: {}", memory.author.name(), memory.text.as_str())
}

fn index_kind(kind: Kind) -> TextIndexKind {
    match kind {
        Kind::Message | Kind::Reply => TextIndexKind::Chats,
        Kind::Fact | Kind::Diary | Kind::Reflection | Kind::Dream | Kind::Note | Kind::Piece | Kind::CheckIn => {
            TextIndexKind::Memories
        }
    }
}

fn count(memory: &Memory, table: Table) -> Result<usize, Error> {
    let mut count = 0;
    codec::walk(memory.store.as_ref(), table, b"", |_, _| {
        count += 1;
        Ok(true)
    })?;
    Ok(count)
}

/// What is only in `left`, and only in `read_scope`; both ascending.
fn difference(left: &[MemoryId], read_scope: &[MemoryId]) -> (Vec<MemoryId>, Vec<MemoryId>) {
    let only = |a: &[MemoryId], b: &[MemoryId]| {
        a.iter().filter(|id| b.binary_search(id).is_err()).copied().collect::<Vec<_>>()
    };
    (only(left, read_scope), only(read_scope, left))
}
