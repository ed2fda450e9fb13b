//! The source lines that a text is written from, and where they come from.

use std::collections::{BTreeMap, BTreeSet};

use azera_memory::{MemoryRow, MessageRow, SourceScope};
use azera_types::{Author, MessageId, Scope, Timestamp};

use super::flaws::weight;
use super::prompts::line;
use crate::display_names::DisplayNames;

/// Maximum number of characters in a line.
const LINE_CHARS: usize = 240;

/// A statement that may be written about.
#[derive(Clone)]
pub(super) struct SourceLine {
    pub(super) author: Author,
    pub(super) text: String,
    pub(super) sources: Vec<MessageId>,
    scope: Scope,
    source_scopes: Vec<SourceScope>,
    pub(super) at: Timestamp,
    /// Salience, from 0 to 1.
    importance: f32,
}

impl From<&MessageRow> for SourceLine {
    fn from(row: &MessageRow) -> Self {
        Self {
            author: row.author.clone(),
            text: one_line(&row.text),
            sources: vec![row.id.clone()],
            scope: row.scope.clone(),
            source_scopes: row.source_scopes.clone(),
            at: row.at,
            importance: 0.0,
        }
    }
}

impl From<&MemoryRow> for SourceLine {
    fn from(row: &MemoryRow) -> Self {
        Self {
            author: row.author.clone(),
            text: one_line(&row.text),
            sources: row.sources.clone(),
            scope: row.scope.clone(),
            source_scopes: row.source_scopes.clone(),
            at: row.at,
            importance: row
                .salience
                .as_ref()
                .filter(|salience| salience.stands())
                .map_or(0.0, |salience| salience.importance.clamp(0.0, 1.0)),
        }
    }
}

impl SourceLine {
    /// Returns a line with a part of what a message says.
    pub(super) fn part(row: &MessageRow, part: &str) -> Self {
        Self { text: one_line(part), ..Self::from(row) }
    }

    /// Returns how much the line says: its content words, weighted up to twice by salience.
    fn weight(&self) -> usize {
        (weight(&self.text) as f32 * (1.0 + self.importance)).round() as usize
    }
}

/// Joins a text into one line, because its own line breaks would look like further lines.
fn one_line(text: &str) -> String {
    let whole = text.split_whitespace().collect::<Vec<_>>().join(" ");
    whole.chars().take(LINE_CHARS).collect()
}

/// Formats lines for a prompt, each with its speaker.
pub(super) fn lines(said: &[SourceLine]) -> String {
    let Some(first) = said.first() else { return String::new() };
    let names = DisplayNames::new(&first.scope, said.iter().map(|said| &said.author), []);
    said.iter().map(|said| line(&names.of(&said.author), &said.text)).collect::<Vec<_>>().join("\n")
}

/// Returns the messages that the lines come from.
pub(super) fn sources(said: &[SourceLine]) -> Vec<MessageId> {
    let all: BTreeSet<&MessageId> = said.iter().flat_map(|said| &said.sources).collect();
    all.into_iter().cloned().collect()
}

/// Returns every scope that the lines come from, each as far back as its oldest source, and the realm that owns the
/// persona, if one does.
pub(super) fn source_scopes(said: &[SourceLine], realm: Option<&Scope>, now: Timestamp) -> Vec<SourceScope> {
    let mut oldest: BTreeMap<&Scope, Timestamp> = BTreeMap::new();
    let mut used = |scope, at: Timestamp| {
        oldest.entry(scope).and_modify(|from| *from = at.min(*from)).or_insert(at);
    };
    for said in said {
        used(&said.scope, said.at);
        said.source_scopes.iter().for_each(|source_scope| used(&source_scope.scope, source_scope.from));
    }
    realm.into_iter().for_each(|realm| used(realm, now));
    oldest.into_iter().map(|(scope, from)| SourceScope { scope: scope.clone(), from }).collect()
}

/// Returns the `count` lines that say most, in the order they were said.
pub(super) fn telling(said: Vec<SourceLine>, count: usize) -> Vec<SourceLine> {
    let mut weighed: Vec<(usize, usize)> = said.iter().map(SourceLine::weight).enumerate().collect();
    weighed.retain(|(_, weight)| *weight > 0);
    weighed.sort_by_key(|(index, weight)| (std::cmp::Reverse(*weight), *index));
    let mut chosen: Vec<usize> = weighed.into_iter().take(count).map(|(index, _)| index).collect();
    chosen.sort_unstable();
    chosen.into_iter().filter_map(|index| said.get(index).cloned()).collect()
}

/// Returns `count` of the lines that say most, different ones for each attempt, in the order they were said.
pub(super) fn some(said: &[SourceLine], count: usize, attempt: usize) -> Vec<SourceLine> {
    let rich: Vec<SourceLine> = telling(said.to_vec(), count * super::draft::ATTEMPTS);
    if rich.len() <= count {
        return rich;
    }
    let start = attempt * count % rich.len();
    let mut chosen: Vec<usize> = (0..count).map(|step| (start + step) % rich.len()).collect();
    chosen.sort_unstable();
    chosen.into_iter().filter_map(|index| rich.get(index).cloned()).collect()
}
