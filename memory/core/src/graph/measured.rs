//! What every mention means. Tests measure by it how well names are told apart; nobody is shown it.

use std::collections::BTreeSet;
use std::ops::Range;

use azera_types::{MemoryId, PersonId};

use super::extract::Extracted;
use super::related::scan;
use super::resolve::Resolved;
use crate::rows::MemoryRow;
use crate::{Error, Memory, ReadScope};

/// One mention and what it means.
#[derive(Clone, PartialEq)]
pub struct MentionOf {
    /// The memory.
    pub memory: MemoryId,
    /// Its place in the memory's text, in bytes.
    pub place: Range<usize>,
    /// A name and a person that stand for the entity.
    pub entity: (String, Option<PersonId>),
    /// How surely.
    pub confidence: f32,
}

impl std::fmt::Debug for MentionOf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "MentionOf({})", self.memory)
    }
}

/// Returns every mention that `read_scope` allows and what it means, in the order of the memories.
pub fn mentions(memory: &Memory, read_scope: &ReadScope) -> Result<Vec<MentionOf>, Error> {
    let mut ids = BTreeSet::new();
    scan(memory.store.as_ref(), read_scope, |row| {
        ids.insert(row.memory);
    })?;
    let (sources, _) = memory.graph().read(read_scope, &ids)?;
    let resolved = sources.resolved();
    let of = |((memory, found), resolved): (&(MemoryRow, Extracted), Vec<Resolved>)| {
        let id = memory.id;
        let named = found.mentions.iter().zip(resolved).filter_map(move |(mention, resolved)| {
            let (entity, confidence) = ((resolved.entity.name, resolved.entity.person), resolved.confidence);
            Some(MentionOf { memory: id, place: mention.place.clone()?, entity, confidence })
        });
        named.collect::<Vec<_>>()
    };
    Ok(sources.0.iter().zip(resolved).flat_map(of).collect())
}
