//! What people left open in a place lately: a line of it is material for dreams and check-ins.

use azera_memory::{EpisodeQuery, MatterState, Memory, ReadScope};
use azera_types::{PersonId, Timestamp};

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
        match self.open_lines(home, &at.read_scope, now).await {
            Ok(lines) => one_of(lines, night / NIGHTS),
            // The text goes on without them.
            Err(error) => {
                tracing::warn!(%error, "cannot read what is open in a place");
                None
            }
        }
    }

    /// Returns what a person left open in the place, in their own words, another one each day; `None` if nothing is open.
    pub(super) async fn open_line_of(
        &self,
        home: &PersonaPlace,
        read_scope: &ReadScope,
        person: &PersonId,
        now: Timestamp,
    ) -> Option<SourceLine> {
        match self.open_lines(home, read_scope, now).await {
            Ok(mut lines) => {
                lines.retain(|line| line.author.person() == Some(person));
                one_of(lines, now.as_second().div_euclid(DAY_S))
            }
            // The check-in goes on without it.
            Err(error) => {
                tracing::warn!(%error, "cannot read what is open in a place");
                None
            }
        }
    }

    async fn open_lines(
        &self,
        home: &PersonaPlace,
        read_scope: &ReadScope,
        now: Timestamp,
    ) -> Result<Vec<SourceLine>, Error> {
        let calendar = self.minds.calendar(&self.access, &home.platform, &home.place).await?;
        let within = (before(now, days(REACH_DAYS)), before(now, A_DAY));
        let query = EpisodeQuery { is_open: true, within: Some(within), limit: EPISODES, ..EpisodeQuery::default() };
        let Some(read_scope) = read_scope.narrowed_to(|scope| *scope == home.place) else { return Ok(Vec::new()) };
        let read = move |memory: &Memory| read_lines(memory, &read_scope, &calendar, &query, within);
        self.services.blocking(read).await
    }
}

/// Returns the line whose turn it is.
fn one_of(lines: Vec<SourceLine>, turn: i64) -> Option<SourceLine> {
    let turn = usize::try_from(turn).unwrap_or(0);
    turn.checked_rem(lines.len()).and_then(|index| lines.into_iter().nth(index))
}

fn read_lines(
    memory: &Memory,
    read_scope: &ReadScope,
    calendar: &azera_memory::Calendar,
    query: &EpisodeQuery,
    (from, to): (Timestamp, Timestamp),
) -> Result<Vec<SourceLine>, azera_memory::Error> {
    let mut lines = Vec::new();
    for episode in memory.episodes().list(read_scope, calendar, query)?.episodes {
        for matter in episode.matters.iter().filter(|matter| matter.state == MatterState::Open) {
            let problem = &matter.problem;
            if let Some(row) = memory.messages().get(read_scope, &problem.message)?
                && (from..to).contains(&row.at)
            {
                lines.push(SourceLine::part(&row, problem.text.as_str()));
            }
        }
    }
    Ok(lines)
}
