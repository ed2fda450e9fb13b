//! Counts of memories.

use std::collections::{BTreeMap, BTreeSet};

use azera_types::{Scope, Timestamp};

use crate::indexing::queued_id;
use crate::rows::{Kind, MemoryRow};
use crate::{Error, Memory, ReadScope, Table, codec};

/// Counts of the memories that may be shown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stats {
    /// Number of memories by kind and scope.
    pub counts: Vec<(Kind, Scope, usize)>,
    /// How many of them wait to be indexed.
    pub queued: usize,
    /// How many of them were said in each week, by [`week_of`]. Empty weeks are left out.
    pub weeks: BTreeMap<i64, usize>,
}

const WEEK_S: i64 = 7 * 24 * 3_600;

/// The first Monday of 1970 (5 January), in seconds.
const MONDAY_S: i64 = 4 * 24 * 3_600;

/// Returns the number of the week in UTC. Weeks begin on Mondays; the week of 5 January 1970 is number 0.
pub fn week_of(at: Timestamp) -> i64 {
    (at.as_second() - MONDAY_S).div_euclid(WEEK_S)
}

/// Returns the start of a week. For a week out of range, returns the first or last possible time.
pub fn week_begins(week: i64) -> Timestamp {
    let second = week.saturating_mul(WEEK_S).saturating_add(MONDAY_S);
    Timestamp::from_second(second).unwrap_or(if second < 0 { Timestamp::MIN } else { Timestamp::MAX })
}

impl Stats {
    /// Returns the total number of memories.
    pub fn total(&self) -> usize {
        self.counts.iter().map(|(_, _, count)| count).sum()
    }
}

impl Memory {
    /// Counts the memories that `read_scope` allows.
    pub fn stats(&self, read_scope: &ReadScope) -> Result<Stats, Error> {
        let mut counts: BTreeMap<(Kind, Scope), usize> = BTreeMap::new();
        let mut weeks: BTreeMap<i64, usize> = BTreeMap::new();
        let mut waiting = BTreeSet::new();
        codec::walk(self.store.as_ref(), Table::IndexQueue, b"", |ticket, _| {
            waiting.insert(queued_id(ticket)?);
            Ok(true)
        })?;
        let mut queued = 0;
        codec::walk(self.store.as_ref(), Table::Memories, b"", |_, value| {
            let memory: MemoryRow = codec::decode(Table::Memories, value)?;
            if read_scope.allows(&memory.persona, &memory.scope, &memory.source_scopes, memory.at) {
                queued += usize::from(waiting.contains(&memory.id));
                *weeks.entry(week_of(memory.at)).or_default() += 1;
                *counts.entry((memory.kind, memory.scope)).or_default() += 1;
            }
            Ok(true)
        })?;
        let counts = counts.into_iter().map(|((kind, scope), count)| (kind, scope, count)).collect();
        Ok(Stats { counts, queued, weeks })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weeks_begin_on_mondays() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        assert_eq!(week_of(at("1970-01-05T00:00:00Z")), 0);
        assert_eq!(week_of(at("1970-01-04T23:59:59Z")), -1);
        let week = week_of(at("2026-11-22T23:59:59Z"));
        assert_eq!(week_begins(week), at("2026-11-16T00:00:00Z"));
        assert_eq!(week_of(week_begins(week)), week);
        assert_eq!(week_of(at("2026-11-23T00:00:00Z")), week + 1);
        assert_eq!((week_begins(i64::MIN), week_begins(i64::MAX)), (Timestamp::MIN, Timestamp::MAX));
    }
}
