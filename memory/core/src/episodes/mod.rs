//! Episodes of everyday conversations: a chat is divided by quiet times ([`read`]), and each part has who, where, when,
//! what and why ([`describe`], [`causes`]), and what a person left open in it, with what they said of it later ([`matters`],
//! [`reports`], [`settle`]).
//!
//! Nothing of it is stored. It is computed from messages, each read under the [`ReadScope`], so it is forgotten with
//! them, and a report that may not be read there changes nothing. Begin with [`Episodes::list`]. Coding sessions are in
//! [`crate::domains::Sessions`].

mod causes;
mod describe;
mod marks;
mod matters;
mod phrases;
mod read;
mod report_phrases;
mod reports;
mod sentences;
mod settle;
mod topic;

use std::collections::{BTreeMap, HashMap};

use azera_types::{Author, ChatId, MemoryId, MessageId, Scope, Span, Text, Timestamp};

use crate::domains::Episodes;
use crate::recall::Speaker;
use crate::rows::MessageRow;
use crate::sessions::{Problem, Resolution};
use crate::when::Calendar;
use crate::words::fold;
use crate::{Error, ReadScope};

use causes::Causes;
use marks::Marks;
use read::{Part, ReadParts, Stretch};
use settle::Wanted;

/// Most episodes that are told apart, the newest ones.
pub const MAX_EPISODES: usize = 500;

/// Most messages that are read of all chats together, the newest chats first.
const MAX_MESSAGES: usize = 10_000;

/// The same, while somebody waits for an answer.
const RECALLED_MESSAGES: usize = 3_000;

/// The stretch of a list.
const ALL_THE_TIME: Stretch = Stretch { since: Timestamp::MIN, until: None };

/// Most episodes in which a name may be mentioned that joins two of them. What is named all the time joins nothing.
const JOINING: usize = 6;

/// A person's own words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quote {
    /// The words.
    pub text: Text,
    /// Who said them.
    pub author: Author,
    /// When they were said.
    pub at: Timestamp,
    /// The message that they stand in.
    pub message: MessageId,
    /// The memory of the message, if there is one.
    pub memory: Option<MemoryId>,
}

/// What became of something that a person left open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MatterState {
    /// Nothing is known of it.
    Open,
    /// The person said it again, in this message.
    Continued(MessageId),
    /// The person said how it went.
    Resolved(Resolution),
}

/// Something that a person left open in an episode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Matter {
    /// What it is.
    pub problem: Problem,
    /// Whose it is.
    pub author: Author,
    /// What became of it.
    pub state: MatterState,
}

/// Where and when an episode was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Occasion {
    /// The chat.
    pub chat: ChatId,
    /// Who may read it.
    pub scope: Scope,
    /// When its first and its last message were said.
    pub span: (Timestamp, Timestamp),
}

/// What the reason in an episode points at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// The first message of the earlier episode.
    pub episode: MessageId,
    /// The statement there that the reason repeats.
    pub said: Quote,
}

/// A conversation between two quiet times. `Debug` shows no words.
#[derive(Clone, PartialEq)]
pub struct ChatEpisode {
    /// Its first message that may be read.
    pub id: MessageId,
    /// Where and when it was.
    pub occasion: Occasion,
    /// The people who spoke, those who spoke most first.
    pub people: Vec<Author>,
    /// Other names that they mentioned.
    pub names: Vec<String>,
    /// Number of messages that may be read.
    pub messages: usize,
    /// What it was about, in somebody's own words.
    pub title: Option<Quote>,
    /// A reason that somebody gave in it.
    pub why: Option<Quote>,
    /// What that reason points at, if the same person had said it in an earlier episode.
    pub cause: Option<Cause>,
    /// What people left open in it, and what became of it.
    pub matters: Vec<Matter>,
    /// The earlier episode that it goes on with.
    pub continues: Option<MessageId>,
}

impl std::fmt::Debug for ChatEpisode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ChatEpisode[{} messages, {}]", self.messages, self.ending())
    }
}

impl ChatEpisode {
    /// Returns the matters of which nothing more is known.
    pub fn open(&self) -> impl Iterator<Item = &Matter> {
        self.matters.iter().filter(|matter| matter.state == MatterState::Open)
    }

    /// Returns how it ended, by the same names as coding sessions: `open`, `continued`, `resolved` or `ended`.
    pub fn ending(&self) -> &'static str {
        let has = |wanted: fn(&MatterState) -> bool| self.matters.iter().any(|matter| wanted(&matter.state));
        if has(|state| *state == MatterState::Open) {
            "open"
        } else if has(|state| matches!(state, MatterState::Continued(_))) {
            "continued"
        } else if has(|state| matches!(state, MatterState::Resolved(_))) {
            "resolved"
        } else {
            "ended"
        }
    }
}

/// Which episodes are wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EpisodeQuery {
    /// Words that must stand in it, or in the names of its people. Empty for all.
    pub words: String,
    /// Whether only those with something open are wanted.
    pub is_open: bool,
    /// Only those with a message at or after this moment, and before the other.
    pub within: Option<(Timestamp, Timestamp)>,
    /// Episodes to leave out at the beginning.
    pub skip: usize,
    /// Most episodes.
    pub limit: usize,
}

/// Which main statements are wanted.
#[derive(Debug, Clone)]
pub(crate) struct MainStatements {
    /// Of which episodes.
    pub(crate) query: EpisodeQuery,
    /// Only of those in which somebody of this name speaks.
    pub(crate) speaker: Option<Speaker>,
    /// How many of each.
    pub(crate) of_each: usize,
}

impl MainStatements {
    fn has_speaker(&self, part: &Part) -> bool {
        let speaks = |speaker: &Speaker| part.messages.iter().any(|message| speaker.said(&message.author));
        self.speaker.as_ref().is_none_or(speaks)
    }
}

/// A page of episodes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EpisodePage {
    /// The episodes, the newest first.
    pub episodes: Vec<ChatEpisode>,
    /// How many there are on all pages.
    pub total: usize,
    /// True if older messages were too many to be read.
    pub is_cut: bool,
}

impl Episodes<'_> {
    /// Returns the episodes that `read_scope` allows. Days are those of `calendar`.
    pub fn list(self, read_scope: &ReadScope, calendar: &Calendar, query: &EpisodeQuery) -> Result<EpisodePage, Error> {
        let mut read = self.parts(read_scope, ALL_THE_TIME, &calendar.zone, MAX_MESSAGES)?;
        let is_cut = !read.unread.is_empty() || read.parts.len() > MAX_EPISODES;
        // The oldest are left out, so nothing later is missed.
        read.parts.drain(..read.parts.len().saturating_sub(MAX_EPISODES));
        let marks = self.marks(read_scope, &read.parts)?;
        let matters = settle::matters(&read, &marks, calendar, Wanted::All);
        let names: Vec<BTreeMap<String, String>> = read.parts.iter().map(describe::names).collect();
        let continues = joined(&read, &matters, &names);
        let mut wanted = Vec::new();
        for (number, part) in read.parts.iter().enumerate().rev() {
            let open =
                matters.get(number).is_some_and(|own| own.iter().any(|matter| matter.state == MatterState::Open));
            if (open || !query.is_open) && fits(part, query) {
                wanted.push((number, part));
            }
        }
        let (total, causes) = (wanted.len(), Causes::new(&read.parts));
        let page = wanted.into_iter().skip(query.skip).take(query.limit);
        let mut episodes = Vec::new();
        for (number, part) in page {
            let names = names.get(number).map(|names| names.values().cloned().collect()).unwrap_or_default();
            let matters = matters.get(number).cloned().unwrap_or_default();
            let continues = continues.get(&number).and_then(|before| read.parts.get(*before)?.first());
            let continues = continues.map(|first| first.id.clone());
            if let Some(episode) = self.described(read_scope, part, &marks)? {
                let cause = self.cause(read_scope, &read.parts, &causes, (number, &episode))?;
                episodes.push(ChatEpisode { names, cause, matters, continues, ..episode });
            }
        }
        Ok(EpisodePage { episodes, total, is_cut })
    }

    /// Returns the memories of the main statements of some episodes: of the newest one first, and of each in the order in
    /// which they were said. If open ones are wanted, these are the statements of what is open.
    pub(crate) fn main_statements(
        self,
        read_scope: &ReadScope,
        calendar: &Calendar,
        wanted: &MainStatements,
    ) -> Result<Vec<MemoryId>, Error> {
        let query = &wanted.query;
        let read = self.parts(read_scope, recalled(query, calendar), &calendar.zone, RECALLED_MESSAGES)?;
        let marks = self.marks(read_scope, &read.parts)?;
        let open = || settle::matters(&read, &marks, calendar, Wanted::Open);
        let matters = if query.is_open { open() } else { Vec::new() };
        let mut found = Vec::new();
        let mut episodes = 0;
        for (number, part) in read.parts.iter().enumerate().rev() {
            let open: Vec<&MessageId> = matters.get(number).map_or_else(Vec::new, |own| {
                own.iter().filter(|it| it.state == MatterState::Open).map(|it| &it.problem.message).collect()
            });
            let is_wanted = !query.is_open || !open.is_empty();
            if !is_wanted || episodes >= query.limit || !fits(part, query) || !wanted.has_speaker(part) {
                continue;
            }
            let is_then = |at: Timestamp| query.within.is_none_or(|(from, to)| at >= from && at < to);
            let counts = |row: &MessageRow| is_then(row.at) && (!query.is_open || open.contains(&&row.id));
            let mut main = describe::main(part, &marks, wanted.of_each, &counts);
            main.sort_by_key(|(message, _)| (message.at, message.seq));
            episodes += usize::from(!main.is_empty());
            for (message, _) in main {
                found.extend(self.0.messages().memory_of(read_scope, &message.id)?);
            }
        }
        Ok(found)
    }

    /// Returns what the reason in an episode points at.
    fn cause(
        self,
        read_scope: &ReadScope,
        parts: &[Part],
        causes: &Causes<'_>,
        (number, episode): (usize, &ChatEpisode),
    ) -> Result<Option<Cause>, Error> {
        let Some((part, message, range)) = episode.why.as_ref().and_then(|why| causes.of(number, why)) else {
            return Ok(None);
        };
        let Some(first) = parts.get(part).and_then(Part::first) else { return Ok(None) };
        Ok(Some(Cause { episode: first.id.clone(), said: self.quote(read_scope, message, &range)? }))
    }

    fn described(self, read_scope: &ReadScope, part: &Part, marks: &Marks) -> Result<Option<ChatEpisode>, Error> {
        let Some((first, span)) = part.first().zip(part.span()) else { return Ok(None) };
        let title = self.title(read_scope, part, marks)?;
        let why = self.why(read_scope, part, &title.iter().collect::<Vec<_>>())?;
        Ok(Some(ChatEpisode {
            id: first.id.clone(),
            occasion: Occasion { chat: first.chat.clone(), scope: first.scope.clone(), span },
            people: describe::people(part),
            names: Vec::new(),
            messages: part.messages.len(),
            title,
            why,
            cause: None,
            matters: Vec::new(),
            continues: None,
        }))
    }
}

/// Returns the time whose messages are read for a question.
fn recalled(query: &EpisodeQuery, calendar: &Calendar) -> Stretch {
    let (since, until) = query.within.map_or((Timestamp::MIN, None), |(from, to)| (from, Some(to)));
    if query.is_open {
        // What was said later may settle it. What is older is not open any more.
        let oldest = calendar.now.checked_sub(Span::new().hours(settle::OPEN_AT_MOST_DAYS * 24));
        return Stretch { since: oldest.map_or(since, |oldest| oldest.max(since)), until: None };
    }
    Stretch { since, until }
}

/// Returns true if a part is wanted.
fn fits(part: &Part, query: &EpisodeQuery) -> bool {
    let is_then =
        query.within.is_none_or(|(from, to)| part.messages.iter().any(|message| message.at >= from && message.at < to));
    let mut missing: Vec<String> = fold(&query.words).split_whitespace().map(str::to_owned).collect();
    for message in &part.messages {
        if missing.is_empty() {
            break;
        }
        let said = fold(&format!("{} {}", message.author.name(), message.text.as_str()));
        missing.retain(|word| !said.contains(word.as_str()));
    }
    is_then && missing.is_empty()
}

/// Returns, by number, the part that each one goes on with: the newest earlier one whose open matter it takes up, or
/// whose names it shares.
fn joined(read: &ReadParts, matters: &[Vec<Matter>], names: &[BTreeMap<String, String>]) -> HashMap<usize, usize> {
    let mut part_of: HashMap<&MessageId, usize> = HashMap::new();
    for (number, part) in read.parts.iter().enumerate() {
        part_of.extend(part.messages.iter().map(|message| (&message.id, number)));
    }
    let mut found: HashMap<usize, usize> = HashMap::new();
    for (earlier, message) in settle::continuations(matters) {
        if let Some(later) = part_of.get(&message).filter(|later| **later > earlier) {
            found.entry(*later).and_modify(|before| *before = earlier.max(*before)).or_insert(earlier);
        }
    }
    let mut naming: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (number, names) in names.iter().enumerate() {
        names.keys().for_each(|name| naming.entry(name).or_default().push(number));
    }
    let mut by_name: HashMap<usize, usize> = HashMap::new();
    for parts in naming.values().filter(|parts| parts.len() <= JOINING) {
        for pair in parts.windows(2) {
            let &[earlier, later] = pair else { continue };
            if shares_people(read, earlier, later) {
                by_name.entry(later).and_modify(|before| *before = earlier.max(*before)).or_insert(earlier);
            }
        }
    }
    by_name.into_iter().for_each(|(later, earlier)| {
        found.entry(later).or_insert(earlier);
    });
    found
}

fn shares_people(read: &ReadParts, one: usize, other: usize) -> bool {
    let people = |number: usize| read.parts.get(number).map(describe::people).unwrap_or_default();
    let others = people(other);
    people(one).iter().any(|author| others.iter().any(|other| other.person() == author.person()))
}
