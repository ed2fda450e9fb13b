//! What people ask to keep.

use azera_types::{Author, ChatId, MemoryId, PersonaId, Scope, Text, Timestamp};

use crate::rows::{Kind, MemoryRow};
use crate::{Batch, Durability, Error, Memory, Table, codec};

impl Memory {
    /// [`Memory::store_fact`], unless just that is kept already: the same words of the same person, of the same time and place. Looks
    /// through all memories.
    pub fn store_fact_once(&self, fact: NewFact) -> Result<MemoryId, Error> {
        // Nobody keeps it meanwhile.
        let _writing = self.writing(&fact.chat)?;
        let mut retained = None;
        codec::walk(self.store.as_ref(), Table::Memories, b"", |_, value| {
            // A row that is damaged is none that anybody has kept.
            let memory = codec::decode::<MemoryRow>(Table::Memories, value);
            retained = memory.ok().filter(|memory| fact.is_stored_as(memory)).map(|memory| memory.id);
            Ok(retained.is_none())
        })?;
        retained.map_or_else(|| self.store_fact(fact), Ok)
    }

    /// Keeps something a person asked to keep, in the place it was said.
    pub fn store_fact(&self, fact: NewFact) -> Result<MemoryId, Error> {
        self.store.ready()?;
        let id = MemoryId(self.next_number()?);
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
        };
        let mut batch = Batch::new();
        self.put_memory(&mut batch, &memory)?;
        self.store.commit(batch, Durability::Flushed)?;
        Ok(id)
    }
}

/// Something to keep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewFact {
    /// For which persona.
    pub persona: PersonaId,
    /// The chat it was said in.
    pub chat: ChatId,
    /// The place it may be shown in.
    pub scope: Scope,
    /// Who said it.
    pub author: Author,
    /// What.
    pub text: Text,
    /// When.
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
