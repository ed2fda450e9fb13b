//! What was learnt in a place this week, for its review: people's own words, each with the number, the day and the speaker by
//! which anybody who reads the review can open it.

use std::collections::BTreeSet;

use azera_memory::{
    Calendar, EpisodeQuery, MAX_EPISODES, MatterState, Memory, MemoryRow, MessageRow, ReadScope, shortened,
};
use azera_types::{Author, ChatId, MemoryId, PersonId, Scope, Span, TimeZone, Timestamp};

use super::agenda::PersonaPlace;
use super::material::SourceLine;
use super::open_matters::OpenLine;
use super::schedule::before;
use super::work::A_WEEK;
use super::write::WritingContext;
use crate::background::Background;
use crate::display_names::DisplayNames;
use crate::error::Error;
use crate::zones::day;

/// Newest memories that tell who spoke, and most people whose statements are looked at.
const RECENT: usize = 2_000;
const PEOPLE: usize = 32;

/// Statements of one person that are looked at.
const OF_PERSON: usize = 20;

/// Most lines of each part.
const LINES: usize = 4;

/// Maximum number of characters shown of somebody's words.
const SHOWN: usize = 120;

/// Hours before and after a statement in which its speaker must have said nothing about danger.
const BESIDE_H: i64 = 3;

/// The end of a review: what was learnt, and the messages that it rests on.
#[derive(Default)]
pub(super) struct LearntHere {
    /// Lines below a heading; empty if nothing was learnt.
    pub(super) text: String,
    pub(super) sources: Vec<SourceLine>,
}

/// Something that was learnt.
struct Found {
    /// The statement that tells it.
    said: SourceLine,
    memory: MemoryId,
    chat: ChatId,
    at: Timestamp,
    how: How,
}

enum How {
    /// It is worth keeping, by so much.
    Marked(f32),
    /// It says how this went.
    Settled(Box<Before>),
    /// It was said in so many chats, by so many people.
    Known { chats: usize, people: usize },
}

/// What somebody had left open.
struct Before {
    said: SourceLine,
    chat: ChatId,
    /// Such as "plan".
    kind: &'static str,
}

impl Background {
    /// Returns what was learnt in a place in the last week, from what everybody who reads the review may read. Leaves out
    /// what stands beside words of danger.
    pub(super) async fn learnt_here(
        &self,
        home: &PersonaPlace,
        at: &WritingContext,
        now: Timestamp,
    ) -> Result<LearntHere, Error> {
        let scope = at.place.scope();
        let Some(own) = at.read_scope.narrowed_to(|of: &Scope| *of == scope || *of == home.place) else {
            return Ok(LearntHere::default());
        };
        let calendar = self.minds.calendar(&self.access, &home.platform, &home.place).await?;
        let (since, zone) = (before(now, A_WEEK), calendar.zone.clone());
        let found = self.services.blocking(move |memory| found(memory, &own, &calendar, since)).await?;
        let mut fit = Vec::new();
        for one in found {
            let mut is_fit = true;
            for quote in one.quotes(&zone) {
                is_fit = is_fit && !self.stands_beside_danger(home, &at.read_scope, &quote).await?;
            }
            if is_fit {
                fit.push(one);
            }
        }
        if fit.is_empty() {
            return Ok(LearntHere::default());
        }
        let before = fit.iter().filter_map(|one| one.before()).map(|before| &before.said.author);
        let names = DisplayNames::new(&scope, fit.iter().map(|one| &one.said.author).chain(before), []);
        let lines: Vec<String> = fit.iter().map(|one| one.in_words(&names, &zone)).collect();
        let text = format!("What I learnt here:\n{}\n`/why mNUMBER` shows one, with its place.", lines.join("\n"));
        let with_before = fit.into_iter().flat_map(|one| match one.how {
            How::Settled(before) => vec![one.said, before.said],
            How::Marked(_) | How::Known { .. } => vec![one.said],
        });
        Ok(LearntHere { text, sources: with_before.collect() })
    }
}

impl Found {
    /// Returns what it settles.
    fn before(&self) -> Option<&Before> {
        if let How::Settled(before) = &self.how { Some(before) } else { None }
    }

    /// Returns everything that its line quotes, each with the hours in which its speaker must have said nothing about
    /// danger.
    fn quotes(&self, zone: &TimeZone) -> Vec<OpenLine> {
        let beside = Span::new().hours(BESIDE_H);
        let quote = |line: &SourceLine, chat: &ChatId| OpenLine {
            line: line.clone(),
            chat: chat.clone(),
            span: (
                line.at.checked_sub(beside).unwrap_or(Timestamp::MIN),
                line.at.checked_add(beside).unwrap_or(Timestamp::MAX),
            ),
            zone: zone.clone(),
        };
        let mut quotes = vec![quote(&self.said, &self.chat)];
        quotes.extend(self.before().map(|before| quote(&before.said, &before.chat)));
        quotes
    }

    fn in_words(&self, names: &DisplayNames, zone: &TimeZone) -> String {
        let (id, said) = (self.memory, quoted(&self.said));
        let by = |line: &SourceLine| format!("{}, {}", names.of(&line.author), day(line.at, zone));
        let who = by(&self.said);
        match &self.how {
            How::Marked(_) => format!("- `{id}` {who}: {said}"),
            How::Settled(before) => {
                let (kind, whose, words) = (before.kind, by(&before.said), quoted(&before.said));
                format!("- `{id}` {who}: {said}; that was the {kind} of {whose}: {words}")
            }
            How::Known { chats, people: 1 } => format!("- `{id}` {who}, in {chats} chats: {said}"),
            How::Known { chats, people } => {
                format!("- `{id}` last {who}; said in {chats} chats by {people} people: {said}")
            }
        }
    }
}

fn quoted(said: &SourceLine) -> String {
    format!("\"{}\"", shortened(&said.text, "", SHOWN).as_str())
}

type Read<T> = Result<T, azera_memory::Error>;

fn found(memory: &Memory, read_scope: &ReadScope, calendar: &Calendar, since: Timestamp) -> Read<Vec<Found>> {
    let known = known(memory, read_scope, since)?;
    let mut told: BTreeSet<MemoryId> = known.iter().map(|one| one.memory).collect();
    let mut found = known;
    for part in [settled(memory, read_scope, calendar, since)?, marked(memory, read_scope, since)?] {
        found.extend(part.into_iter().filter(|one| told.insert(one.memory)).take(LINES));
    }
    found.sort_by_key(|one| (one.at, one.memory));
    Ok(found)
}

/// Returns the statements of people that are worth keeping and hold, the most important first.
fn marked(memory: &Memory, read_scope: &ReadScope, since: Timestamp) -> Read<Vec<Found>> {
    let recent = memory.writings().recent(read_scope, since, RECENT)?;
    let people: BTreeSet<PersonId> = recent.iter().filter_map(|row| row.author.person()).cloned().collect();
    let mut found = Vec::new();
    for person in people.iter().take(PEOPLE) {
        for row in memory.memories().salient(read_scope, person, OF_PERSON)? {
            let holds = row.salience.as_ref().filter(|salience| salience.superseded.is_none());
            let importance = holds.map(|salience| salience.importance);
            if let Some(importance) = importance.filter(|_| row.at >= since) {
                found.extend(of_memory(memory, read_scope, &row, How::Marked(importance))?);
            }
        }
    }
    let importance = |one: &Found| if let How::Marked(importance) = one.how { importance } else { 0.0 };
    found.sort_by(|one, other| importance(other).total_cmp(&importance(one)).then(one.memory.cmp(&other.memory)));
    Ok(found)
}

/// Returns what counts as known since then, because it was said in so many chats.
fn known(memory: &Memory, read_scope: &ReadScope, since: Timestamp) -> Read<Vec<Found>> {
    let (known, _) = memory.memories().known(read_scope, 0, RECENT)?;
    let mut found = Vec::new();
    for one in known.into_iter().filter(|one| !one.is_apart && one.newest.at >= since) {
        if found.len() < LINES && !one.was_known_before(since) {
            found.extend(of_memory(
                memory,
                read_scope,
                &one.newest,
                How::Known { chats: one.chats, people: one.people },
            )?);
        }
    }
    Ok(found)
}

/// Returns how plans, problems and questions went, as somebody told since then.
fn settled(memory: &Memory, read_scope: &ReadScope, calendar: &Calendar, since: Timestamp) -> Read<Vec<Found>> {
    let query = EpisodeQuery { limit: MAX_EPISODES, ..EpisodeQuery::default() };
    let mut found = Vec::new();
    for matter in memory.episodes().list(read_scope, calendar, &query)?.episodes.into_iter().flat_map(|one| one.matters)
    {
        let MatterState::Resolved(report) = &matter.state else { continue };
        let (Some(said), Some(before)) = (
            memory.messages().get(read_scope, &report.message)?.filter(|row| row.at >= since),
            memory.messages().get(read_scope, &matter.problem.message)?,
        ) else {
            continue;
        };
        let Some(id) = memory.messages().memory_of(read_scope, &said.id)? else { continue };
        let problem = SourceLine::part(&before, matter.problem.text.as_str());
        let (chat, kind) = (before.chat, matter.problem.kind.as_str());
        let how = How::Settled(Box::new(Before { said: problem, chat, kind }));
        found.extend(of_message(&said, report.text.as_str(), id, how));
    }
    Ok(found)
}

/// Returns a statement of a person by its memory; `None` if it rests on no message that may be read, as a kept fact does.
fn of_memory(memory: &Memory, read_scope: &ReadScope, row: &MemoryRow, how: How) -> Read<Option<Found>> {
    let Some(source) = row.sources.first() else { return Ok(None) };
    let Some(message) = memory.messages().get(read_scope, source)? else { return Ok(None) };
    Ok(of_message(&message, row.gist(), row.id, how))
}

fn of_message(message: &MessageRow, words: &str, memory: MemoryId, how: How) -> Option<Found> {
    matches!(message.author, Author::Person { .. }).then(|| Found {
        said: SourceLine::part(message, words),
        memory,
        chat: message.chat.clone(),
        at: message.at,
        how,
    })
}
