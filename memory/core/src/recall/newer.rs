//! Puts what holds now before the older statement that it replaced, and says until when the older one held.

use std::collections::VecDeque;

use super::{Asked, Hit, Query, Reading};
use crate::domains::Recall;
use crate::rows::MemoryRow;
use crate::when::Era;
use crate::{Error, Newer, Shown, Validity};

/// How many times one statement can have been replaced; older ones keep their place among the hits.
const MAX_REPLACED: usize = 8;

/// Name of the signal of a hit that came only because it replaced another.
const SIGNAL: &str = "newer";

impl Recall<'_> {
    /// Notes for each hit from when and until when it holds. Where the question asks for what holds now, or for a time by
    /// which the hit held no longer, what replaced it comes first, even if the search did not find it.
    pub(super) fn follow(self, reading: Reading<'_>, asked: Asked<'_>, hits: Vec<Hit>) -> Result<Vec<Hit>, Error> {
        let question = &asked.query.question;
        let asks_for_now = asked.time.is_none() && matches!(question.era, Era::Now | Era::Open);
        let mut waiting = VecDeque::from(hits);
        let mut followed = Vec::with_capacity(waiting.len());
        while let Some(hit) = waiting.pop_front() {
            let mut replaced = vec![hit];
            while let Some(last) = replaced.last_mut() {
                last.validity = self.validity(reading.read_scope, asked.query, &last.memory)?;
                if last.validity.until.is_none() {
                    break;
                }
                let Some(by) = self.0.memories().replaced(reading.read_scope, &last.memory)? else { break };
                let is_there = |hit: &Hit| by.by.is_in(&hit.memory);
                let is_over = asks_for_now || asks_for_later(asked, last);
                if !is_over || replaced.len() > MAX_REPLACED || followed.iter().chain(&replaced).any(is_there) {
                    break;
                }
                let Some(newer) = self.newer(reading, asked.query, &by.by, &mut waiting)? else { break };
                replaced.push(newer);
            }
            let score = replaced.first().map_or(0.0, |oldest| oldest.score);
            replaced.iter_mut().for_each(|hit| hit.score = hit.score.max(score));
            followed.extend(replaced.into_iter().rev());
        }
        Ok(followed)
    }

    /// Returns the memory of a newer statement: from `waiting` if the search found it, or from the record if the prompt may
    /// show it.
    fn newer(
        self,
        reading: Reading<'_>,
        query: &Query,
        by: &Newer,
        waiting: &mut VecDeque<Hit>,
    ) -> Result<Option<Hit>, Error> {
        if let Some(place) = waiting.iter().position(|hit| by.is_in(&hit.memory)) {
            return Ok(waiting.remove(place));
        }
        let memories = match by {
            Newer::Message(message) if query.exclude.contains(message) => return Ok(None),
            Newer::Message(message) => self.0.turns().memories_of(message)?,
            Newer::Memory(id) => self.0.memories().raw_memory(*id)?.into_iter().collect(),
        };
        let Reading { read_scope, until, .. } = reading;
        let may_show = |memory: &MemoryRow| {
            (memory.at <= until || memory.is_kept())
                && !memory.sources.iter().any(|source| query.exclude.contains(source))
                && read_scope.allows(&memory.persona, &memory.scope, &memory.source_scopes, memory.at)
        };
        let memory = memories.into_iter().find(|memory| by.is_in(memory) && may_show(memory));
        Ok(memory.map(|memory| {
            let (snippet, shown, signals) = (Default::default(), Shown::new(), vec![SIGNAL]);
            let validity = Validity::default();
            let hit = Hit { memory, snippet, shown, score: 0.0, signals, validity, again: Vec::new() };
            self.with_excerpt(hit, None, query)
        }))
    }
}

/// Returns true if a question asks for a time that began after a hit had ceased to hold.
fn asks_for_later(asked: Asked<'_>, hit: &Hit) -> bool {
    let question = &asked.query.question;
    let asks_for_then = !matches!(question.era, Era::Now | Era::Open);
    let Some((time, (until, _))) = asked.time.zip(hit.validity.until).filter(|_| !asks_for_then) else { return false };
    time.span().is_within() && time.span().begins_after(until)
}
