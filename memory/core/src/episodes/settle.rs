//! Finds what people left open in their conversations, and what became of it later, in any of their conversations that
//! may be read.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use azera_types::{MessageId, PersonId, Scope, Text, Timestamp};

use super::marks::Marks;
use super::matters::{Raised, question, raised};
use super::phrases::ANYBODY;
use super::read::{Part, ReadParts, Unread, chat_of};
use super::reports::{Later, Says, says};
use super::sentences::{plain, words};
use super::topic::{Topic, shared, speaks_of, topic};
use super::{Matter, MatterState};
use crate::rows::MessageRow;
use crate::when::Calendar;
use crate::{Problem, ProblemKind, Resolution, shortened};

/// Most matters that are followed, the newest ones.
const MAX_MATTERS: usize = 200;

/// Most later messages of a person that are looked at for one matter.
const MAX_LATER: usize = 1_000;

/// Days after which a matter is no longer open. Nobody wants to be asked about it then.
pub(super) const OPEN_DAYS: i64 = 30;

/// Seconds in which an answer may still come.
const ANSWER_S: i64 = 600;

/// Messages before a report that may have asked for it.
const ASKED_BEFORE: usize = 2;

/// Days after which words that name nothing are no longer about a matter.
const MEANT_DAYS: i64 = 14;

const QUOTED_CHARS: usize = 200;

/// A message of a person, by its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Place {
    part: usize,
    message: usize,
}

/// Something that was left open, and where it was said.
struct Followed {
    place: Place,
    raised: Raised,
}

/// What people said, each one's in the order of time.
struct Said<'a> {
    parts: &'a [Part],
    unread: &'a [Unread],
    by_person: HashMap<&'a PersonId, Vec<(Place, Topic)>>,
    calendar: &'a Calendar,
}

/// Returns the matters of each part, in the order in which they were raised.
pub(super) fn matters(read: &ReadParts, marks: &Marks, calendar: &Calendar) -> Vec<Vec<Matter>> {
    let answered = answered(&read.parts);
    let mut followed = Vec::new();
    for (part, conversation) in read.parts.iter().enumerate().rev() {
        for (message, row) in conversation.messages.iter().enumerate().rev() {
            if followed.len() < MAX_MATTERS && row.author.person().is_some() {
                let raised = raised(&row.text, row.at, calendar, &|range| marks.has_plan(&row.id, range))
                    .or_else(|| asked(conversation, message, &answered, calendar.now));
                followed.extend(raised.map(|raised| Followed { place: Place { part, message }, raised }));
            }
        }
    }
    let said = Said::new(read, calendar);
    let mut matters: Vec<Vec<Matter>> = read.parts.iter().map(|_| Vec::new()).collect();
    for one in followed.iter().rev() {
        let matter = said.matter(one, &followed);
        if let (Some(matter), Some(of_part)) = (matter, matters.get_mut(one.place.part)) {
            of_part.push(matter);
        }
    }
    matters
}

/// Returns the messages that another one answers.
fn answered(parts: &[Part]) -> HashSet<&MessageId> {
    let rows = parts.iter().flat_map(|part| &part.messages);
    rows.flat_map(|row| row.answers.iter().chain(&row.reply_to)).collect()
}

/// Returns the question of a message that nobody answered. In a place with others, a question counts only if it is put to
/// anybody: the one who was asked may have answered elsewhere.
fn asked(part: &Part, number: usize, answered: &HashSet<&MessageId>, now: Timestamp) -> Option<Raised> {
    let row = part.messages.get(number)?;
    let (range, words_of_it) = question(&row.text)?;
    let lower = plain(row.text.get(range.clone())?);
    let is_to_all = words(&lower).any(|word| ANYBODY.contains(&word));
    let is_direct = matches!(row.scope, Scope::Dm(_));
    let others = |other: &&MessageRow| other.author.person() != row.author.person();
    let is_answered = answered.contains(&row.id) || part.messages.iter().skip(number + 1).any(|other| others(&other));
    let is_late = now.as_second().saturating_sub(row.at.as_second()) >= ANSWER_S;
    ((is_direct || is_to_all) && !is_answered && is_late).then_some(Raised {
        kind: ProblemKind::Unanswered,
        range,
        topic: words_of_it,
        planned: None,
    })
}

impl<'a> Said<'a> {
    fn new(read: &'a ReadParts, calendar: &'a Calendar) -> Self {
        let mut by_person: HashMap<&PersonId, Vec<(Place, Topic)>> = HashMap::new();
        for (part, conversation) in read.parts.iter().enumerate() {
            for (message, row) in conversation.messages.iter().enumerate() {
                if let Some(person) = row.author.person() {
                    by_person.entry(person).or_default().push((Place { part, message }, topic(&row.text)));
                }
            }
        }
        let mut said = Self { parts: &read.parts, unread: &read.unread, by_person, calendar };
        let order = |(place, _): &(Place, Topic)| row_at(&read.parts, *place).map(|row| (row.at, row.seq));
        said.by_person.values_mut().for_each(|own| own.sort_by_key(order));
        said
    }

    fn row(&self, place: Place) -> Option<&'a MessageRow> {
        row_at(self.parts, place)
    }

    /// Returns what became of a matter; `None` if it is not known to be open, nor what became of it.
    fn matter(&self, one: &Followed, all: &[Followed]) -> Option<Matter> {
        let row = self.row(one.place)?;
        let person = row.author.person()?;
        let problem = Problem {
            kind: one.raised.kind,
            text: quoted(&row.text, &one.raised.range),
            message: row.id.clone(),
            at: row.at,
        };
        let own = self.by_person.get(person)?;
        let is_later = |place: Place| self.row(place).is_some_and(|other| (other.at, other.seq) > (row.at, row.seq));
        let later = own.iter().filter(|(place, _)| is_later(*place)).take(MAX_LATER);
        for (place, words) in later {
            let Some(said) = self.row(*place) else { continue };
            if let Some(again) = raised_again(one, *place, all) {
                // Saying it once more in the same breath begins nothing new.
                if place.part != one.place.part || again.raised.range != one.raised.range {
                    let state = MatterState::Continued(said.id.clone());
                    return Some(Matter { problem, author: row.author.clone(), state });
                }
            }
            let later = self.later(one, *place, said, words, all);
            match says(&later, &one.raised, self.calendar) {
                Some(Says::Report(range)) => {
                    let text = quoted(&said.text, &range);
                    let report = Resolution { chat: said.chat.clone(), text, message: said.id.clone(), at: said.at };
                    return Some(Matter { problem, author: row.author.clone(), state: MatterState::Resolved(report) });
                }
                Some(Says::Mentioned) => return None,
                None => {}
            }
        }
        let is_open = self.is_recent(one, row) && !self.may_be_reported_unread(row, person);
        is_open.then(|| Matter { problem, author: row.author.clone(), state: MatterState::Open })
    }

    fn later<'b>(
        &self,
        one: &Followed,
        place: Place,
        said: &'b MessageRow,
        topic_of_it: &'b Topic,
        all: &[Followed],
    ) -> Later<'b> {
        let before = self.parts.get(place.part).map_or(&[][..], |part| &part.messages);
        let before = before.get(place.message.saturating_sub(ASKED_BEFORE)..place.message).unwrap_or_default();
        let is_asked = before
            .iter()
            .filter(|other| other.author.person() != said.author.person())
            .any(|other| speaks_of(&topic(&other.text), &one.raised.topic));
        let same_person = |other: &&Followed| {
            let row = self.row(other.place);
            row.is_some_and(|row| {
                let days_before = said.at.as_second().saturating_sub(row.at.as_second()) / (24 * 3_600);
                (row.at, row.seq) < (said.at, said.seq)
                    && row.author.person() == said.author.person()
                    && row.chat == said.chat
                    && (0..MEANT_DAYS).contains(&days_before)
            })
        };
        let is_here = self.parts.get(one.place.part).and_then(chat_of) == Some(&said.chat);
        let candidates = all.iter().filter(same_person).filter(|other| other.raised.kind == one.raised.kind).count();
        // What names nothing is about something in the same chat.
        let candidates = if is_here { candidates } else { 0 };
        Later {
            text: &said.text,
            at: said.at,
            topic: topic_of_it,
            is_same_episode: place.part == one.place.part,
            is_asked,
            candidates,
        }
    }

    /// Returns true if it is not so long ago that nobody asks any more.
    fn is_recent(&self, one: &Followed, row: &MessageRow) -> bool {
        let due = one.raised.planned.map_or(row.at, |(_, end)| end.max(row.at));
        self.calendar.now.as_second().saturating_sub(due.as_second()) <= OPEN_DAYS * 24 * 3_600
    }

    /// Returns true if the person may have said how it went in a part of a chat that was not read.
    fn may_be_reported_unread(&self, row: &MessageRow, person: &PersonId) -> bool {
        let spoke = |unread: &Unread| unread.speakers.as_ref().is_none_or(|speakers| speakers.contains(person));
        self.unread.iter().any(|unread| unread.until > row.at && spoke(unread))
    }
}

fn row_at(parts: &[Part], place: Place) -> Option<&MessageRow> {
    parts.get(place.part)?.messages.get(place.message)
}

/// Returns the matter of a later message, if it is the same one said again.
fn raised_again<'a>(one: &Followed, place: Place, all: &'a [Followed]) -> Option<&'a Followed> {
    let same = |other: &&Followed| {
        other.place == place
            && other.raised.kind == one.raised.kind
            && speaks_of(&other.raised.topic, &one.raised.topic)
            && shared(&other.raised.topic, &one.raised.topic) > 0
    };
    all.iter().find(same)
}

/// Returns a part of a text in one line.
pub(super) fn quoted(text: &str, range: &Range<usize>) -> Text {
    let part = text.get(range.clone()).unwrap_or(text);
    let words: Vec<&str> = part.split_whitespace().collect();
    shortened(&words.join(" "), "", QUOTED_CHARS)
}

/// Returns the messages in which later parts say something about matters of earlier ones.
pub(super) fn continuations(matters: &[Vec<Matter>]) -> Vec<(usize, MessageId)> {
    let mut found = Vec::new();
    for (part, matters) in matters.iter().enumerate() {
        for matter in matters {
            match &matter.state {
                MatterState::Continued(message) => found.push((part, message.clone())),
                MatterState::Resolved(report) => found.push((part, report.message.clone())),
                MatterState::Open => {}
            }
        }
    }
    found
}
