//! Finds what people left open in their conversations, and what became of it later, in any of their conversations that
//! may be read.

use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

use azera_types::{ChatId, MessageId, PersonId, Scope, Text, Timestamp};

use super::marks::Marks;
use super::matters::{FAR_S, Raised, question, raised};
use super::phrases::ANYBODY;
use super::read::{Part, ReadParts, Unread, chat_of};
use super::reports::{Later, Says, Told, says};
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

/// Days after which nothing is open: a plan stays open after its time, which may be a year that begins soon.
pub(super) const OPEN_AT_MOST_DAYS: i64 = OPEN_DAYS + FAR_S / (24 * 3_600) + 366;

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

/// Which matters are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    /// All, with what became of them.
    All,
    /// Those of which nothing more is known. What nobody asks about any more is left out at once.
    Open,
}

/// The order in which messages were said.
type Moment = (Timestamp, u64);

/// What is read from a message, once for all matters.
#[derive(Default)]
struct ReadOnce<'a> {
    topic: OnceCell<Topic>,
    told: OnceCell<Told<'a>>,
}

/// What people said, each one's in the order of time.
struct Said<'a> {
    parts: &'a [Part],
    unread: &'a [Unread],
    read: Vec<Vec<ReadOnce<'a>>>,
    by_person: HashMap<&'a PersonId, Vec<(Moment, Place)>>,
    followed: &'a [Followed],
    by_place: HashMap<Place, usize>,
    /// When each person raised matters of a kind in a chat, in order.
    raised: HashMap<(&'a PersonId, &'a ChatId, ProblemKind), Vec<Moment>>,
    calendar: &'a Calendar,
}

/// Returns the matters of each part, in the order in which they were raised.
pub(super) fn matters(read: &ReadParts, marks: &Marks, calendar: &Calendar, wanted: Wanted) -> Vec<Vec<Matter>> {
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
    let said = Said::new(read, &followed, calendar);
    let mut matters: Vec<Vec<Matter>> = read.parts.iter().map(|_| Vec::new()).collect();
    for one in followed.iter().rev() {
        let matter = said.matter(one, wanted);
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
    fn new(read: &'a ReadParts, followed: &'a [Followed], calendar: &'a Calendar) -> Self {
        let mut by_person: HashMap<&PersonId, Vec<(Moment, Place)>> = HashMap::new();
        for (part, conversation) in read.parts.iter().enumerate() {
            for (message, row) in conversation.messages.iter().enumerate() {
                if let Some(person) = row.author.person() {
                    by_person.entry(person).or_default().push(((row.at, row.seq), Place { part, message }));
                }
            }
        }
        by_person.values_mut().for_each(|own| own.sort_unstable());
        let mut raised: HashMap<_, Vec<Moment>> = HashMap::new();
        for one in followed {
            let Some(row) = row_at(&read.parts, one.place) else { continue };
            let Some(person) = row.author.person() else { continue };
            raised.entry((person, &row.chat, one.raised.kind)).or_default().push((row.at, row.seq));
        }
        raised.values_mut().for_each(|moments| moments.sort_unstable());
        let once = |part: &Part| part.messages.iter().map(|_| ReadOnce::default()).collect();
        Self {
            parts: &read.parts,
            unread: &read.unread,
            read: read.parts.iter().map(once).collect(),
            by_person,
            followed,
            by_place: followed.iter().enumerate().map(|(number, one)| (one.place, number)).collect(),
            raised,
            calendar,
        }
    }

    fn row(&self, place: Place) -> Option<&'a MessageRow> {
        row_at(self.parts, place)
    }

    fn once(&self, place: Place) -> Option<&ReadOnce<'a>> {
        self.read.get(place.part)?.get(place.message)
    }

    fn topic(&self, place: Place) -> Option<&Topic> {
        let row = self.row(place)?;
        Some(self.once(place)?.topic.get_or_init(|| topic(&row.text)))
    }

    fn told(&self, place: Place) -> Option<&Told<'a>> {
        let row = self.row(place)?;
        Some(self.once(place)?.told.get_or_init(|| Told::new(&row.text)))
    }

    /// Returns what became of a matter; `None` if it is not known to be open, nor what became of it.
    fn matter(&self, one: &Followed, wanted: Wanted) -> Option<Matter> {
        let row = self.row(one.place)?;
        let person = row.author.person()?;
        let is_open = self.is_recent(one, row) && !self.may_be_reported_unread(row, person);
        if wanted == Wanted::Open && !is_open {
            return None;
        }
        let problem = Problem {
            kind: one.raised.kind,
            text: quoted(&row.text, &one.raised.range),
            message: row.id.clone(),
            at: row.at,
        };
        let matter = |state| Some(Matter { problem, author: row.author.clone(), state });
        let own = self.by_person.get(person)?;
        let first = own.partition_point(|(moment, _)| *moment <= (row.at, row.seq));
        for (_, place) in own.iter().skip(first).take(MAX_LATER) {
            let Some(said) = self.row(*place) else { continue };
            if let Some(again) = self.raised_again(one, *place) {
                // Saying it once more in the same breath begins nothing new.
                if place.part != one.place.part || again.raised.range != one.raised.range {
                    return matter(MatterState::Continued(said.id.clone()));
                }
            }
            match self.says(one, *place, said) {
                Some(Says::Report(range)) => {
                    let text = quoted(&said.text, &range);
                    let report = Resolution { chat: said.chat.clone(), text, message: said.id.clone(), at: said.at };
                    return matter(MatterState::Resolved(report));
                }
                Some(Says::Mentioned) => return None,
                None => {}
            }
        }
        if is_open { matter(MatterState::Open) } else { None }
    }

    /// Returns what a later message of the person says about a matter.
    fn says(&self, one: &Followed, place: Place, said: &MessageRow) -> Option<Says> {
        let is_about = speaks_of(self.topic(place)?, &one.raised.topic);
        let told = self.told(place)?;
        if !is_about && !told.may_report() {
            return None;
        }
        let later = Later {
            told,
            at: said.at,
            is_about,
            is_same_episode: place.part == one.place.part,
            is_asked: self.is_asked(one, place, said),
            candidates: self.candidates(one, said),
        };
        says(&later, &one.raised, self.calendar)
    }

    /// Returns true if the words right before a message, of somebody else, speak of a matter.
    fn is_asked(&self, one: &Followed, place: Place, said: &MessageRow) -> bool {
        let before = place.message.saturating_sub(ASKED_BEFORE)..place.message;
        before.map(|message| Place { message, ..place }).any(|before| {
            let is_other = self.row(before).is_some_and(|row| row.author.person() != said.author.person());
            is_other && self.topic(before).is_some_and(|topic| speaks_of(topic, &one.raised.topic))
        })
    }

    /// Returns how many open matters a message could be about that names none of them.
    fn candidates(&self, one: &Followed, said: &MessageRow) -> usize {
        // What names nothing is about something in the same chat.
        if self.parts.get(one.place.part).and_then(chat_of) != Some(&said.chat) {
            return 0;
        }
        let Some(person) = said.author.person() else { return 0 };
        let Some(moments) = self.raised.get(&(person, &said.chat, one.raised.kind)) else { return 0 };
        let before = moments.partition_point(|moment| *moment < (said.at, said.seq));
        let is_old = |(at, _): &Moment| said.at.as_second().saturating_sub(at.as_second()) >= MEANT_DAYS * 24 * 3_600;
        before.saturating_sub(moments.partition_point(is_old))
    }

    /// Returns the matter of a later message, if it is the same one said again.
    fn raised_again(&self, one: &Followed, place: Place) -> Option<&'a Followed> {
        let other = self.followed.get(*self.by_place.get(&place)?)?;
        let is_same = other.raised.kind == one.raised.kind
            && speaks_of(&other.raised.topic, &one.raised.topic)
            && shared(&other.raised.topic, &one.raised.topic) > 0;
        is_same.then_some(other)
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
