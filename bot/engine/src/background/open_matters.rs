//! What people left open in a place lately: a line of it is material for dreams and check-ins.

use azera_memory::{EpisodeQuery, MAX_HISTORY, MatterState, Memory, ReadScope};
use azera_types::{ChatId, PersonId, Text, TimeZone, Timestamp};

use super::agenda::PersonaPlace;
use super::material::SourceLine;
use super::schedule::{before, days};
use super::work::A_DAY;
use super::write::WritingContext;
use crate::background::Background;
use crate::error::Error;

/// Days that are looked back. What was left open in the last day is among the lines of the day.
const REACH_DAYS: u32 = 21;

/// Newest conversations with something open that are looked at.
const EPISODES: usize = 5;

/// In one of so many nights an open matter is taken up. The other nights leave room for themes.
const NIGHTS: i64 = 2;

const DAY_S: i64 = 24 * 3_600;

/// What somebody left open.
pub(super) struct OpenLine {
    /// The sentence that says so.
    pub(super) line: SourceLine,
    /// The chat of its conversation.
    pub(super) chat: ChatId,
    /// When the conversation began and ended.
    pub(super) span: (Timestamp, Timestamp),
    /// The time zone of the place.
    pub(super) zone: TimeZone,
}

impl OpenLine {
    /// Returns the day on which it was said, such as "3 March".
    pub(super) fn day(&self) -> String {
        self.line.at.to_zoned(self.zone.clone()).strftime("%-d %B").to_string()
    }
}

impl Background {
    /// Returns what somebody left open in the place, in their own words, another one each time; `None` in other nights, or
    /// if nothing is open.
    pub(super) async fn open_line(
        &self,
        home: &PersonaPlace,
        at: &WritingContext,
        now: Timestamp,
    ) -> Option<SourceLine> {
        let night = now.as_second().div_euclid(DAY_S);
        if night.rem_euclid(NIGHTS) != 0 {
            return None;
        }
        let found = async {
            let lines = self.open_lines(home, &at.read_scope, now).await?;
            let Some(open) = one_of(lines, night / NIGHTS) else { return Ok(None) };
            let is_unfit = self.stands_beside_danger(home, &at.read_scope, &open).await?;
            Ok::<_, Error>((!is_unfit).then_some(open.line))
        };
        // The text goes on without it.
        found.await.unwrap_or_else(|error| {
            tracing::warn!(%error, "cannot read what is open in a place");
            None
        })
    }

    /// Returns true if anything that the person said in that conversation is about danger or against the rules, or if it
    /// cannot be read any more.
    pub(super) async fn stands_beside_danger(
        &self,
        home: &PersonaPlace,
        read_scope: &ReadScope,
        open: &OpenLine,
    ) -> Result<bool, Error> {
        let Some(person) = open.line.author.person() else { return Ok(true) };
        let said = self.said_around(home, read_scope, person, open).await?;
        let overrides = self.minds.overrides(&home.platform, &home.place).await?;
        Ok(said.is_empty() || self.is_any_dangerous_or_frowned_on(&overrides, &said).await?)
    }

    /// Returns what a person left open in the place, in their own words, another one each day; `None` if nothing is open.
    pub(super) async fn open_line_of(
        &self,
        home: &PersonaPlace,
        read_scope: &ReadScope,
        person: &PersonId,
        now: Timestamp,
    ) -> Option<OpenLine> {
        match self.open_lines(home, read_scope, now).await {
            Ok(mut lines) => {
                lines.retain(|open| open.line.author.person() == Some(person));
                one_of(lines, now.as_second().div_euclid(DAY_S))
            }
            // The check-in goes on without it.
            Err(error) => {
                tracing::warn!(%error, "cannot read what is open in a place");
                None
            }
        }
    }

    /// Returns everything that a person said in the conversation in which they left something open, whole. It is empty if
    /// that cannot be read any more.
    async fn said_around(
        &self,
        home: &PersonaPlace,
        read_scope: &ReadScope,
        person: &PersonId,
        open: &OpenLine,
    ) -> Result<Vec<Text>, Error> {
        let Some(read_scope) = read_scope.narrowed_to(|scope| *scope == home.place) else { return Ok(Vec::new()) };
        let (chat, (from, to), person) = (open.chat.clone(), open.span, person.clone());
        let sources = open.line.sources.clone();
        self.services
            .blocking(move |memory| {
                let mut rows = memory.messages().history(&read_scope, &chat, MAX_HISTORY)?;
                rows.retain(|row| row.author.person() == Some(&person) && (from..=to).contains(&row.at));
                let is_whole = sources.iter().all(|source| rows.iter().any(|row| row.id == *source));
                Ok(if is_whole { rows.into_iter().map(|row| row.text).collect() } else { Vec::new() })
            })
            .await
    }

    async fn open_lines(
        &self,
        home: &PersonaPlace,
        read_scope: &ReadScope,
        now: Timestamp,
    ) -> Result<Vec<OpenLine>, Error> {
        let calendar = self.minds.calendar(&self.access, &home.platform, &home.place).await?;
        let within = (before(now, days(REACH_DAYS)), before(now, A_DAY));
        let query = EpisodeQuery { is_open: true, within: Some(within), limit: EPISODES, ..EpisodeQuery::default() };
        let Some(read_scope) = read_scope.narrowed_to(|scope| *scope == home.place) else { return Ok(Vec::new()) };
        let read = move |memory: &Memory| read_lines(memory, &read_scope, &calendar, &query, within);
        self.services.blocking(read).await
    }
}

/// Returns the line whose turn it is.
fn one_of(lines: Vec<OpenLine>, turn: i64) -> Option<OpenLine> {
    let turn = usize::try_from(turn).unwrap_or(0);
    turn.checked_rem(lines.len()).and_then(|index| lines.into_iter().nth(index))
}

fn read_lines(
    memory: &Memory,
    read_scope: &ReadScope,
    calendar: &azera_memory::Calendar,
    query: &EpisodeQuery,
    (from, to): (Timestamp, Timestamp),
) -> Result<Vec<OpenLine>, azera_memory::Error> {
    let mut lines = Vec::new();
    for episode in memory.episodes().list(read_scope, calendar, query)?.episodes {
        for matter in episode.matters.iter().filter(|matter| matter.state == MatterState::Open) {
            let problem = &matter.problem;
            if let Some(row) = memory.messages().get(read_scope, &problem.message)?
                && (from..to).contains(&row.at)
            {
                lines.push(OpenLine {
                    line: SourceLine::part(&row, problem.text.as_str()),
                    chat: episode.occasion.chat.clone(),
                    span: episode.occasion.span,
                    zone: calendar.zone.clone(),
                });
            }
        }
    }
    Ok(lines)
}
