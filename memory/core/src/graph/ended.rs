//! Until when a relation held: until all who said it said something else instead.

use std::collections::HashMap;
use std::ops::Range;

use azera_types::{MemoryId, PersonId, Timestamp};

use super::read::Sources;
use crate::domains::Graph;
use crate::rows::MemoryRow;
use crate::when::Calendar;
use crate::{Error, Newer, ReadScope, Stretch};

/// How a statement ended.
pub(super) struct End {
    until: Stretch,
    by: NewerSaying,
    /// The part of the text that no longer holds.
    part: Range<usize>,
}

/// A newer statement that ended an older one.
#[derive(Debug, Clone, Copy)]
struct NewerSaying {
    /// When it was made.
    at: Timestamp,
    memory: Option<MemoryId>,
}

/// How the statements of some memories ended, as far as that may be told.
pub(super) struct Ends(HashMap<MemoryId, End>);

/// Somebody's words for a relation.
pub(super) struct Saying {
    memory: MemoryId,
    person: Option<PersonId>,
    at: Timestamp,
    /// Until when they held, and what ended them.
    end: Option<(Stretch, NewerSaying)>,
}

impl Graph<'_> {
    /// Returns which of these statements ended. A newer one that `read_scope` does not allow ends nothing.
    pub(super) fn ends(self, read_scope: &ReadScope, sources: &Sources, calendar: &Calendar) -> Result<Ends, Error> {
        let mut ends = HashMap::new();
        for (memory, _) in &sources.0 {
            let Some(by) = self.0.memories().replaced(read_scope, memory)? else { continue };
            let validity = self.0.memories().validity(read_scope, memory, calendar)?;
            let Some(until) = validity.until else { continue };
            let whole = 0..memory.text.as_str().len();
            let part = match (&by.by, &memory.salience) {
                // What was found to be replaced is the salient part alone.
                (Newer::Message(_), Some(salience)) => salience.from..salience.to,
                _ => whole,
            };
            ends.insert(memory.id, End { until, by: NewerSaying { at: by.at, memory: validity.replaced_by }, part });
        }
        Ok(Ends(ends))
    }
}

impl Ends {
    /// Returns what a memory says with these words.
    pub(super) fn saying(&self, memory: &MemoryRow, words: &Range<usize>) -> Saying {
        let end = self.0.get(&memory.id).filter(|end| end.part.start < words.end && words.start < end.part.end);
        let (id, person) = (memory.id, memory.author.person().cloned());
        Saying { memory: id, person, at: memory.at, end: end.map(|end| (end.until, end.by)) }
    }
}

/// Returns until when a relation held; `None` if somebody's words for it still hold. With a newer statement, a person
/// also ends what they said in the same way before, but nothing that this statement repeats.
pub(super) fn ended(sayings: &[Saying]) -> Option<Stretch> {
    let until = |saying: &Saying| {
        let is_over = |other: &&Saying| {
            let is_own = other.person.is_some() && other.person == saying.person;
            is_own && other.end.is_some_and(|(_, by)| by.at > saying.at && by.memory != Some(saying.memory))
        };
        saying.end.or_else(|| sayings.iter().find(is_over).and_then(|other| other.end)).map(|(until, _)| until)
    };
    let ends: Option<Vec<Stretch>> = sayings.iter().map(until).collect();
    ends?.into_iter().max()
}
