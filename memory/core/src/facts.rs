//! Facts that people ask a persona to remember.

use azera_types::{Author, ChatId, MemoryId, PersonId, PersonaId, Scope, Text, Timestamp};

use crate::domains::Memories;
use crate::rows::{Kind, MemoryRow};
use crate::store::Order;
use crate::{Batch, Durability, Error, ReadScope, Table, codec, kept, keys};

/// Number of rows read at once.
const PAGE: usize = 256;

impl MemoryRow {
    /// Returns true if it is a fact that a person asked to remember.
    pub fn is_kept(&self) -> bool {
        self.kind == Kind::Fact && self.sources.is_empty()
    }
}

impl Memories<'_> {
    /// Stores a fact like [`Memories::store_fact`], unless the same fact is stored already: the same words of the same
    /// person, from the same time and place. Scans all memories.
    pub fn store_fact_once(self, fact: NewFact) -> Result<MemoryId, Error> {
        // The lock keeps others from storing the same fact meanwhile.
        let _writing = self.0.writing(&fact.chat)?;
        let mut retained = None;
        codec::walk(self.0.store.as_ref(), Table::Memories, b"", |_, value| {
            // A damaged row is no stored fact.
            let memory = codec::decode::<MemoryRow>(Table::Memories, value);
            retained = memory.ok().filter(|memory| fact.is_stored_as(memory)).map(|memory| memory.id);
            Ok(retained.is_none())
        })?;
        retained.map_or_else(|| self.store_fact(fact), Ok)
    }

    /// Stores a fact in the place where the person said it, and returns its id.
    pub fn store_fact(self, fact: NewFact) -> Result<MemoryId, Error> {
        let mut batch = Batch::new();
        let id = self.add_fact(&mut batch, fact)?;
        self.0.store.commit(batch, Durability::Flushed)?;
        Ok(id)
    }

    /// Adds a fact to the batch, and returns its id.
    pub(crate) fn add_fact(self, batch: &mut Batch, fact: NewFact) -> Result<MemoryId, Error> {
        self.0.store.room()?;
        self.0.store.ready()?;
        let id = MemoryId(self.0.next_number()?);
        let memory = MemoryRow {
            id,
            persona: fact.persona,
            kind: Kind::Fact,
            scope: fact.scope,
            source_scopes: Vec::new(),
            chat: Some(fact.chat),
            session: 0,
            author: fact.author,
            sources: Vec::new(),
            text: fact.text,
            at: fact.at,
            salience: None,
            surprise: None,
            apart: false,
            replaced: None,
        };
        self.0.turns().put_memory(batch, &memory)?;
        Ok(id)
    }

    /// Returns the facts that a person asked to keep and that `read_scope` allows, newest first, at most `limit`.
    pub fn kept_by(self, read_scope: &ReadScope, person: &PersonId, limit: usize) -> Result<Vec<MemoryRow>, Error> {
        Ok(self.kept_within(read_scope, person, None, None, (limit, usize::MAX))?.facts)
    }

    /// Returns the next facts that a person asked to keep and that `read_scope` allows, newest first: at most `limit`, among
    /// at most `rows` facts of the person that were stored before `before`, or the newest ones. With a label, returns only
    /// those that begin with this word and a name in quotation marks.
    pub fn kept_within(
        self,
        read_scope: &ReadScope,
        person: &PersonId,
        label: Option<&str>,
        before: Option<MemoryId>,
        (limit, rows): (usize, usize),
    ) -> Result<KeptPage, Error> {
        let prefix = kept::prefix(person, label);
        let mut page = KeptPage { facts: Vec::new(), looked: 0, rest: before };
        while page.facts.len() < limit && page.looked < rows {
            let after = page.rest.map(|id| kept::key(person, label, id));
            let size = PAGE.min(rows - page.looked);
            let entries = self.0.store.scan(Table::Kept, &prefix, after.as_deref(), Order::Descending, size)?;
            let is_last = entries.len() < size;
            for (key, _) in entries {
                let id = MemoryId(keys::number(Table::Kept.name(), &key)?);
                page.looked += 1;
                page.rest = Some(id);
                // The record decides what may be shown, and whose it is.
                let is_theirs = |fact: &MemoryRow| fact.is_kept() && fact.author.person() == Some(person);
                page.facts.extend(self.get(read_scope, id)?.filter(is_theirs));
                if page.facts.len() == limit {
                    return Ok(page);
                }
            }
            if is_last {
                page.rest = None;
                break;
            }
        }
        Ok(page)
    }
}

/// Facts that a person asked to keep.
#[derive(Debug, Clone, PartialEq)]
pub struct KeptPage {
    /// The facts, newest first.
    pub facts: Vec<MemoryRow>,
    /// How many facts of the person were looked at.
    pub looked: usize,
    /// The last one that was looked at, behind which the next page begins; `None` if none is left.
    pub rest: Option<MemoryId>,
}

/// A fact to store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewFact {
    /// The persona that remembers it.
    pub persona: PersonaId,
    /// The chat in which it was said.
    pub chat: ChatId,
    /// The place in which it may be shown.
    pub scope: Scope,
    /// The person who said it.
    pub author: Author,
    /// The text of the fact.
    pub text: Text,
    /// The time at which it was said.
    pub at: Timestamp,
}

impl NewFact {
    fn is_stored_as(&self, memory: &MemoryRow) -> bool {
        memory.kind == Kind::Fact
            && memory.sources.is_empty()
            && memory.at == self.at
            && memory.author.person() == self.author.person()
            && memory.persona == self.persona
            && memory.scope == self.scope
            && memory.chat.as_ref() == Some(&self.chat)
            && memory.text == self.text
    }
}
