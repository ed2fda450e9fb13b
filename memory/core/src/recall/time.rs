//! The time that a question asks for: the one that it names, or that of the event that it names.

use azera_types::MemoryId;

use super::{Hit, Query, Question};
use crate::domains::Recall;
use crate::rows::{Kind, MemoryRow};
use crate::when::{self, Calendar, Era, Relation, TimeSpan};
use crate::{Error, ReadScope};

/// Least score of the memory of an event. Below it, nothing that was said is about the event.
const EVENT_FOUND: f32 = 0.9;

/// The time that a question asks for.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct AskedTime {
    span: TimeSpan,
    /// The memory of the event before or after which the question asks.
    event: Option<MemoryId>,
    by_event: bool,
    is_relative: bool,
}

impl AskedTime {
    /// Returns a time that a question names as a date.
    #[cfg(test)]
    pub(super) fn named(span: TimeSpan) -> Self {
        Self { span, event: None, by_event: false, is_relative: false }
    }

    /// Returns how close a memory is to the time, from 0 to 1, by the time that it speaks of and by when it was said.
    pub(super) fn closeness(&self, memory: &MemoryRow, calendar: &Calendar) -> f32 {
        self.span.closeness(memory.at, own_time(memory, calendar).as_ref())
    }

    /// Returns how close a memory is to the time by when it was said.
    pub(super) fn closeness_when_said(&self, memory: &MemoryRow) -> f32 {
        self.span.closeness(memory.at, None)
    }

    /// Returns true for the memory of the event itself.
    pub(super) fn is_event(&self, id: MemoryId) -> bool {
        self.event == Some(id)
    }

    /// Returns true if the question names an event in place of a date.
    pub(super) fn is_by_event(&self) -> bool {
        self.by_event
    }

    /// Returns true if the time counts from now or from an event. Then it only orders the best hits: people speak of last
    /// week in many weeks.
    pub(super) fn is_relative(&self) -> bool {
        self.is_relative
    }

    /// Returns the time itself.
    pub(super) fn span(&self) -> &TimeSpan {
        &self.span
    }
}

/// Returns the time that a person's statement speaks of, if it names one.
fn own_time(memory: &MemoryRow, calendar: &Calendar) -> Option<TimeSpan> {
    if !matches!(memory.kind, Kind::Message | Kind::Fact) {
        return None;
    }
    let found = when::find(&memory.text, &calendar.at(memory.at), &|_| true)?;
    (!found.is_vague && found.span.is_within()).then_some(found.span)
}

impl Recall<'_> {
    /// Returns the time that a question asks for. An event is looked up like a question of its own, under the same read
    /// scope.
    pub(super) fn time_asked(self, read_scope: &ReadScope, query: &Query) -> Result<Option<AskedTime>, Error> {
        let question = &query.question;
        if let Some(span) = &question.time {
            return Ok(Some(AskedTime {
                span: span.clone(),
                event: None,
                by_event: false,
                is_relative: question.is_relative,
            }));
        }
        let Some(event) = &question.event else { return Ok(None) };
        let lookup = Query {
            question: Question {
                embed: event.embed.clone(),
                words: event.words.clone(),
                speaker: None,
                time: None,
                is_relative: false,
                event: None,
                era: Era::Open,
                is_present: false,
                talk: None,
                known_by: question.known_by,
                calendar: question.calendar.clone(),
            },
            vector: query.event_vector.clone(),
            event_vector: None,
            results: 1,
            ..query.clone()
        };
        let found = self.find(read_scope, &lookup)?.hits.into_iter().next();
        Ok(found.filter(|hit| hit.score >= EVENT_FOUND).map(|hit| around(&hit, event.relation, &question.calendar)))
    }
}

/// Returns the time on one side of an event, by the time that its memory speaks of or else by when it was said.
fn around(hit: &Hit, relation: Relation, calendar: &Calendar) -> AskedTime {
    let span = own_time(&hit.memory, calendar).unwrap_or_else(|| TimeSpan::moment(hit.memory.at));
    let event = (relation != Relation::Within).then_some(hit.memory.id);
    AskedTime { span: span.beside(relation), event, by_event: true, is_relative: true }
}
