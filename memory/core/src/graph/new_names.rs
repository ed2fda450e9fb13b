//! Names that were mentioned for the first time.

use std::cmp::Reverse;
use std::collections::HashMap;

use azera_types::{MemoryId, Timestamp};

use super::extract::{Edge, extract};
use super::related::scan;
use super::relations::Label;
use crate::domains::Graph;
use crate::{Error, ReadScope};

/// A name that nobody mentioned before. `Debug` shows none.
#[derive(Clone, PartialEq)]
pub struct NewName {
    /// The name, as it was written.
    pub name: String,
    /// The memory that mentioned it first, and when.
    pub memory: MemoryId,
    /// See [`NewName::memory`].
    pub at: Timestamp,
    /// The first relation that this memory states of it, with its subject and object.
    pub relation: Option<(Label, String, String)>,
}

/// The names that nobody mentioned before.
#[derive(Debug, Clone, PartialEq)]
pub struct NewNames {
    /// The newest first.
    pub names: Vec<NewName>,
    /// True if a place has too many mentions to tell which names are new. Then there are no names.
    pub is_cut: bool,
}

impl std::fmt::Debug for NewName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "NewName[{}]", self.memory)
    }
}

impl Graph<'_> {
    /// Returns the names that were mentioned first at `since` or later, as far as `read_scope` allows, the newest first and
    /// at most `limit`. People who speak are no names.
    pub fn new_names(self, read_scope: &ReadScope, since: Timestamp, limit: usize) -> Result<NewNames, Error> {
        let mut first: HashMap<String, (Timestamp, MemoryId)> = HashMap::new();
        let mut speakers: Vec<String> = Vec::new();
        let is_cut = scan(self.0.store.as_ref(), read_scope, |row| {
            if row.node.person.is_some() {
                speakers.push(row.node.name.clone());
            }
            let said = (row.at, row.memory);
            first.entry(row.node.name).and_modify(|known| *known = (*known).min(said)).or_insert(said);
        })?;
        speakers.iter().for_each(|name| {
            first.remove(name);
        });
        let new = first.into_iter().filter(|(_, (at, _))| *at >= since && !is_cut);
        let mut new: Vec<(String, (Timestamp, MemoryId))> = new.collect();
        new.sort_by(|a, b| Reverse(a.1).cmp(&Reverse(b.1)).then_with(|| a.0.cmp(&b.0)));
        let mut names = Vec::new();
        for (name, (at, memory)) in new.into_iter().take(limit) {
            let Some(memory) = self.0.memories().get(read_scope, memory)? else { continue };
            let found = extract(&memory);
            let Some(own) = found.mentions.iter().position(|mention| mention.node.name == name) else { continue };
            let written = |index: usize| found.mentions.get(index).map(|mention| mention.written.as_str());
            let is_said = |edge: &&Edge| {
                matches!(edge.label, Label::Role(_) | Label::Verb(_)) && (edge.subject == own || edge.object == own)
            };
            let edge = found.edges.iter().find(is_said);
            let relation = edge.and_then(|edge| {
                Some((edge.label, written(edge.subject)?.to_owned(), written(edge.object)?.to_owned()))
            });
            let Some(name) = written(own).map(str::to_owned) else { continue };
            names.push(NewName { name, memory: memory.id, at, relation });
        }
        Ok(NewNames { names, is_cut })
    }
}
