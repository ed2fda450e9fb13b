//! Questions about conversations, such as "what did we talk about last Tuesday?": what was said then shares no word with
//! them. The main statements of those conversations come first.

use std::collections::HashSet;

use azera_types::{MemoryId, Scope};

use super::{Hit, Query, Speaker};
use crate::domains::Recall;
use crate::episodes::{EpisodeQuery, MainStatements};
use crate::recall::question::AskedTalk;
use crate::{Error, ReadScope, Shown};

/// Most conversations whose statements come first, and most statements of one.
const EPISODES: usize = 3;
const STATEMENTS: usize = 3;

/// Name of the signal of these hits.
const SIGNAL: &str = "episode";

impl Recall<'_> {
    /// Puts the main statements of the conversations that a question asks for before other hits. They take at most half of
    /// the results, because the question may ask for something else.
    pub(super) fn with_talks(self, read_scope: &ReadScope, query: &Query, hits: Vec<Hit>) -> Result<Vec<Hit>, Error> {
        let Some(asked) = query.question.talk else { return Ok(hits) };
        let best = hits.first().map_or(0.0, |best| best.score);
        let mut first: Vec<Hit> = Vec::new();
        for id in self.main_statements(read_scope, query, asked)? {
            let Some(memory) = self.0.memories().get(read_scope, id)? else { continue };
            let is_shown = memory.sources.iter().any(|source| query.exclude.contains(source));
            if is_shown || !self.was_known(query, &memory)? || first.len() >= query.results.div_ceil(2) {
                continue;
            }
            if let Some(found) = hits.iter().find(|hit| hit.memory.id == id) {
                first.push(Hit { score: best, ..found.clone() });
                continue;
            }
            let validity = self.validity(read_scope, query, &memory)?;
            let (snippet, score) = (Default::default(), best);
            let signals = vec![SIGNAL];
            let hit = Hit { snippet, shown: Shown::new(), score, signals, memory, validity, again: Vec::new() };
            first.push(self.with_excerpt(hit, None, query));
        }
        let known: HashSet<MemoryId> = first.iter().map(|hit| hit.memory.id).collect();
        first.extend(hits.into_iter().filter(|hit| !known.contains(&hit.memory.id)));
        first.truncate(query.results);
        Ok(first)
    }

    /// Returns the memories of the statements, of the newest conversation first. Those of the place where the question is
    /// asked count before others.
    fn main_statements(self, read_scope: &ReadScope, query: &Query, asked: AskedTalk) -> Result<Vec<MemoryId>, Error> {
        let question = &query.question;
        let here: Option<ReadScope> = read_scope.narrowed_to(|scope| scope == read_scope.place());
        let others = read_scope.narrowed_to(|scope| scope != read_scope.place() && *scope != Scope::Global);
        // A stretch of `None` is all the time. A time before or after another one is none that can be listed.
        let stretches: Vec<_> = match &question.time {
            Some(time) => time.stretches().map(Some).collect(),
            None if asked == AskedTalk::Open => vec![None],
            None if matches!(question.speaker, Some(Speaker::Named(_))) => vec![None],
            None => Vec::new(),
        };
        let wanted = |within| MainStatements {
            query: EpisodeQuery {
                is_open: asked == AskedTalk::Open,
                within,
                limit: EPISODES,
                ..EpisodeQuery::default()
            },
            speaker: question.speaker.clone().filter(|speaker| matches!(speaker, Speaker::Named(_))),
            of_each: STATEMENTS,
        };
        for within in stretches {
            for scope in here.iter().chain(&others) {
                let found = self.0.episodes().main_statements(scope, &question.calendar, &wanted(within))?;
                if !found.is_empty() {
                    return Ok(found);
                }
            }
        }
        Ok(Vec::new())
    }
}
