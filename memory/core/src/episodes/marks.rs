//! The marked parts of messages: what was found worth remembering in them.

use std::collections::HashMap;
use std::ops::Range;

use azera_types::{MessageId, PersonId};

use super::read::Part;
use crate::domains::Episodes;
use crate::{Error, ReadScope};

/// Most people whose marks are read, those who spoke last, and most marks of one of them.
const MAX_PEOPLE: usize = 64;
const MAX_MARKS: usize = 200;

/// The kind of marks of plans, in the host's words.
const PLAN: &str = "plan";

struct Mark {
    is_plan: bool,
    importance: f32,
    range: Range<usize>,
}

/// Marks by message.
#[derive(Default)]
pub(super) struct Marks(HashMap<MessageId, Vec<Mark>>);

impl Marks {
    /// Returns true if a part of a message was found to be a plan.
    pub(super) fn has_plan(&self, message: &MessageId, range: &Range<usize>) -> bool {
        let overlaps = |mark: &Mark| mark.is_plan && mark.range.start < range.end && range.start < mark.range.end;
        self.0.get(message).is_some_and(|marks| marks.iter().any(overlaps))
    }

    /// Returns the most important part of a message, and how important it is.
    pub(super) fn best(&self, message: &MessageId) -> Option<(f32, Range<usize>)> {
        let marks = self.0.get(message)?.iter();
        let best = marks.max_by(|one, other| one.importance.total_cmp(&other.importance))?;
        Some((best.importance, best.range.clone()))
    }
}

impl Episodes<'_> {
    /// Returns the marks of the people of some parts, as far as `read_scope` allows.
    pub(super) fn marks(self, read_scope: &ReadScope, parts: &[Part]) -> Result<Marks, Error> {
        let mut people: Vec<&PersonId> = Vec::new();
        for message in parts.iter().rev().flat_map(|part| part.messages.iter().rev()) {
            match message.author.person() {
                Some(person) if people.len() < MAX_PEOPLE && !people.contains(&person) => people.push(person),
                _ => {}
            }
        }
        let mut marks = Marks::default();
        for person in people {
            for memory in self.0.memories().salient(read_scope, person, MAX_MARKS)? {
                // A newer statement that may not be read here changes nothing here.
                let stands = self.0.memories().replaced(read_scope, &memory)?.is_none();
                let Some(mark) = memory.salience.filter(|mark| stands && mark.superseded.is_none()) else { continue };
                let range = mark.from..mark.to;
                let says = memory.text.get(range.clone()).is_some_and(|part| !part.trim().is_empty());
                if let Some(message) = memory.sources.into_iter().next().filter(|_| says) {
                    let mark = Mark { is_plan: mark.kind == PLAN, importance: mark.importance, range };
                    marks.0.entry(message).or_default().push(mark);
                }
            }
        }
        Ok(marks)
    }
}
