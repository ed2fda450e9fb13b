//! Reads themes for people. Rows lead to memories; what is shown is read from the memories themselves, each under the read
//! scope. Where a reader may not see back to the beginning, the stored themes do not count, because what came before had
//! its part in them: the memories that may be read are then grouped by themselves.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};

use azera_types::{MemoryId, Scope, Timestamp};

use super::build::{MAX_MEMORIES, newest};
use super::cluster::MIN_MEMBERS;
use super::label::Words;
use super::rows::{self, Row};
use crate::domains::Themes;
use crate::rows::MemoryRow;
use crate::{Error, Grant, ReadScope, keys};

/// Most memories that are grouped while somebody waits.
const MAX_VISIBLE: usize = 1_024;

/// Most rows that one list reads, and most memories that it groups, over all places.
const MAX_ROWS: usize = 4 * MAX_MEMORIES;
const MAX_GROUPED: usize = 4 * MAX_VISIBLE;

/// What one list may still read and group.
struct Room {
    rows: usize,
    grouped: usize,
}

/// Texts of a theme that are read for its name: the ones closest to its centre.
const NAMED_BY: usize = 24;

/// Most themes shown within one.
const MAX_PARTS: usize = 6;

/// Something that is talked about. `Debug` shows no words.
#[derive(Clone, PartialEq)]
pub struct Theme {
    /// The place where it is talked about. A theme never spans places.
    pub scope: Scope,
    /// Words that people use about it and not about other themes; none if there are no such words.
    pub words: Vec<String>,
    /// How many memories that may be read are about it.
    pub memories: usize,
    /// When it was talked about first and last.
    pub said: (Timestamp, Timestamp),
    /// What is closest to the middle of it.
    pub typical: MemoryRow,
    /// What was said last.
    pub newest: MemoryRow,
    /// The themes that it is made of, if they are several.
    pub parts: Vec<Theme>,
}

impl std::fmt::Debug for Theme {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Theme[{} memories, {} parts]", self.memories, self.parts.len())
    }
}

/// Some of the themes, those with most memories first.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ThemePage {
    /// The themes of the page.
    pub themes: Vec<Theme>,
    /// How many there are on all pages.
    pub total: usize,
    /// True if older memories exist that were too many to count.
    pub is_cut: bool,
}

/// The memories of a theme, by theme and group.
#[derive(Default)]
struct Members(Vec<(MemoryId, Timestamp, u8)>);

impl Members {
    fn span(&self) -> (Timestamp, Timestamp) {
        let times = || self.0.iter().map(|(_, at, _)| *at);
        (times().min().unwrap_or(Timestamp::MIN), times().max().unwrap_or(Timestamp::MIN))
    }

    /// Returns the members closest to the middle first, of these the newest.
    fn central(&self) -> Vec<MemoryId> {
        let mut order: Vec<&(MemoryId, Timestamp, u8)> = self.0.iter().collect();
        order.sort_by_key(|(id, _, closeness)| Reverse((*closeness, *id)));
        order.into_iter().map(|(id, ..)| *id).collect()
    }

    fn latest(&self) -> Vec<MemoryId> {
        let mut order: Vec<&(MemoryId, Timestamp, u8)> = self.0.iter().collect();
        order.sort_by_key(|(id, at, _)| Reverse((*at, *id)));
        order.into_iter().map(|(id, ..)| *id).collect()
    }
}

/// The memories closest to the middle of a theme, and their words.
#[derive(Default)]
struct Middle {
    words: Words,
    memories: Vec<MemoryRow>,
}

impl Middle {
    /// Returns the memory that has most of the words of its theme, of several the one closest to the middle. What people
    /// write beside a matter, such as thanks, may lie closer.
    fn typical(&self, words: &[String]) -> Option<MemoryRow> {
        let has = |memory: &MemoryRow| {
            let text = memory.text.to_lowercase();
            words.iter().filter(|word| text.contains(word.as_str())).count()
        };
        // The first of equals.
        self.memories.iter().rev().max_by_key(|memory| has(memory)).cloned()
    }
}

/// The themes of one scope by their groups.
struct Grouped {
    scope: Scope,
    groups: BTreeMap<u16, BTreeMap<u16, Members>>,
}

impl Grouped {
    fn of(scope: Scope, rows: &[Row]) -> Self {
        let mut groups: BTreeMap<u16, BTreeMap<u16, Members>> = BTreeMap::new();
        let said: HashSet<Timestamp> =
            rows.iter().filter(|row| !row.is_kept && row.member().is_some()).map(|row| row.at).collect();
        // What was said counts once, also if somebody asked to keep it.
        for row in rows.iter().filter(|row| !row.is_kept || !said.contains(&row.at)) {
            if let Some(member) = row.member() {
                let members = groups.entry(member.group).or_default().entry(member.theme).or_default();
                members.0.push((row.memory, row.at, member.closeness));
            }
        }
        // What is left of a theme after memories were forgotten would show that there was one.
        for themes in groups.values_mut() {
            themes.retain(|_, members| members.0.len() >= MIN_MEMBERS);
        }
        groups.retain(|_, themes| !themes.is_empty());
        Self { scope, groups }
    }
}

impl Themes<'_> {
    /// Returns what is talked about where `read_scope` allows it: at most `limit` themes behind the first `skip`, those with
    /// most memories first. The themes of each place are made in quiet times, so the newest memories may be missing.
    pub fn list(self, read_scope: &ReadScope, skip: usize, limit: usize) -> Result<ThemePage, Error> {
        let (mut places, mut is_cut) = (Vec::new(), false);
        let mut room = Room { rows: MAX_ROWS, grouped: MAX_GROUPED };
        for grant in read_scope.grants() {
            let (rows, is_part) = self.rows_of(read_scope, grant, &mut room)?;
            is_cut |= is_part;
            places.push(Grouped::of(grant.scope.clone(), &rows));
        }
        let mut order: Vec<(usize, u16, usize, Timestamp)> = Vec::new();
        for (place, grouped) in places.iter().enumerate() {
            for (group, themes) in &grouped.groups {
                let last = themes.values().map(|members| members.span().1).max().unwrap_or(Timestamp::MIN);
                order.push((place, *group, themes.values().map(|members| members.0.len()).sum(), last));
            }
        }
        order.sort_by_key(|(place, group, count, last)| (Reverse(*count), Reverse(*last), *place, *group));
        let total = order.len();
        let mut named: HashMap<usize, BTreeMap<u16, Middle>> = HashMap::new();
        let mut themes = Vec::new();
        for (place, group, ..) in order.into_iter().skip(skip).take(limit) {
            let Some(grouped) = places.get(place) else { continue };
            let middles = match named.entry(place) {
                std::collections::hash_map::Entry::Occupied(known) => known.into_mut(),
                std::collections::hash_map::Entry::Vacant(new) => new.insert(self.middles(read_scope, grouped)?),
            };
            themes.extend(self.theme(read_scope, grouped, group, middles)?);
        }
        Ok(ThemePage { themes, total, is_cut })
    }

    /// Returns the rows of one scope that may be read, and whether there are more.
    fn rows_of(self, read_scope: &ReadScope, grant: &Grant, room: &mut Room) -> Result<(Vec<Row>, bool), Error> {
        let place = keys::prefix(&[read_scope.persona().as_str(), &grant.scope.to_string()]);
        let most = MAX_MEMORIES.min(room.rows);
        let entries = newest(self.0.store.as_ref(), &place, most)?;
        room.rows -= entries.len();
        let mut is_cut = entries.len() >= most;
        let mut rows: Vec<Row> = rows::readable(entries).into_iter().map(|(row, _)| row).collect();
        rows.reverse();
        let Some(since) = grant.since else { return Ok((rows, is_cut)) };
        rows.retain(|row| row.at >= since);
        let most = MAX_VISIBLE.min(room.grouped);
        is_cut = rows.len() > most;
        rows.drain(..rows.len().saturating_sub(most));
        room.grouped -= rows.len();
        rows.iter_mut().for_each(|row| row.place = None);
        // What was said before a message may lie before what may be read.
        let placed = self.places(&rows, |stored| stored.own)?;
        for (row, placed) in rows.iter_mut().zip(placed) {
            row.place = Some(placed);
        }
        Ok((rows, is_cut))
    }

    /// Reads the middle of every theme of a scope.
    fn middles(self, read_scope: &ReadScope, grouped: &Grouped) -> Result<BTreeMap<u16, Middle>, Error> {
        let mut all = BTreeMap::new();
        for (theme, members) in grouped.groups.values().flatten() {
            let mut middle = Middle::default();
            for id in members.central().into_iter().take(NAMED_BY) {
                if let Some(memory) = self.0.memories().get(read_scope, id)? {
                    middle.words.add(&memory.text);
                    middle.memories.push(memory);
                }
            }
            all.insert(*theme, middle);
        }
        Ok(all)
    }

    fn theme(
        self,
        read_scope: &ReadScope,
        grouped: &Grouped,
        group: u16,
        middles: &BTreeMap<u16, Middle>,
    ) -> Result<Option<Theme>, Error> {
        let Some(themes) = grouped.groups.get(&group) else { return Ok(None) };
        let mut parts = Vec::new();
        for (number, members) in themes {
            let Some(middle) = middles.get(number) else { continue };
            let others = middles.iter().filter(|(other, _)| *other != number).map(|(_, middle)| &middle.words);
            let words = middle.words.name(others);
            let newest = self.first(read_scope, &members.latest())?;
            let Some((typical, newest)) = middle.typical(&words).zip(newest) else { continue };
            let (scope, memories, said) = (grouped.scope.clone(), members.0.len(), members.span());
            parts.push(Theme { scope, words, memories, said, typical, newest, parts: Vec::new() });
        }
        parts.sort_by_key(|part| (Reverse(part.memories), Reverse(part.said.1), part.typical.id));
        let Some(largest) = parts.first().cloned() else { return Ok(None) };
        if parts.len() == 1 {
            return Ok(Some(largest));
        }
        Ok(Some(joined(largest, parts)))
    }

    /// Returns the first of these memories that may still be read.
    fn first(self, read_scope: &ReadScope, ids: &[MemoryId]) -> Result<Option<MemoryRow>, Error> {
        for id in ids {
            if let Some(memory) = self.0.memories().get(read_scope, *id)? {
                return Ok(Some(memory));
            }
        }
        Ok(None)
    }
}

/// Returns one theme of several: it is named by the first words of each.
fn joined(largest: Theme, mut parts: Vec<Theme>) -> Theme {
    let mut words: Vec<String> = Vec::new();
    for part in &parts {
        let new = part.words.iter().find(|word| !words.contains(word));
        words.extend(new.cloned());
    }
    words.truncate(largest.words.len().max(1) + 1);
    let first = parts.iter().map(|part| part.said.0).min().unwrap_or(largest.said.0);
    let last = parts.iter().map(|part| part.said.1).max().unwrap_or(largest.said.1);
    let newest = parts.iter().map(|part| &part.newest).max_by_key(|memory| (memory.at, memory.id));
    let newest = newest.cloned().unwrap_or_else(|| largest.newest.clone());
    let memories = parts.iter().map(|part| part.memories).sum();
    parts.truncate(MAX_PARTS);
    Theme { words, memories, said: (first, last), newest, parts, ..largest }
}
