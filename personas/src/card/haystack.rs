//! The texts that a lorebook searches for keys.

use azera_types::composed;

use super::lorebook::{LoreEntry, Lorebook};
use super::matching::Talk;
use crate::limits::{DEFAULT_LORE_DEPTH, MAX_LORE_DEPTH, MAX_LORE_SCAN_BYTES};
use crate::words::{Inflection, contains_phrase};

/// A text to search, as written and in lower case.
#[derive(Debug, Default)]
pub(super) struct Haystack {
    pub(super) exact: String,
    lower: String,
}

impl Haystack {
    fn new(text: &str) -> Self {
        let start = text.ceil_char_boundary(text.len().saturating_sub(MAX_LORE_SCAN_BYTES));
        let exact = text.get(start..).unwrap_or_default().to_owned();
        let lower = exact.to_lowercase();
        Self { exact, lower }
    }

    fn add(&mut self, text: &str) {
        if self.exact.len() + text.len() <= 2 * MAX_LORE_SCAN_BYTES {
            self.exact.push('\n');
            self.exact.push_str(text);
            self.lower.push('\n');
            self.lower.push_str(&text.to_lowercase());
        }
    }

    /// Returns true if the key occurs, as the entry wants its keys to be compared.
    pub(super) fn has(&self, key: &str, entry: &LoreEntry) -> bool {
        // In lorebooks, a `*` at the end is not a wildcard.
        let key = &*composed(key.trim_end_matches('*'));
        let folded;
        let (text, key) = if entry.case_sensitive {
            (&self.exact, key)
        } else {
            folded = key.to_lowercase();
            (&self.lower, folded.as_str())
        };
        match entry.within_words {
            true => !key.is_empty() && text.contains(key),
            false => contains_phrase(text, key, Inflection::Noun),
        }
    }
}

/// All texts that one call searches.
pub(super) struct Haystacks {
    /// The newest messages, by how many they are.
    messages: Vec<(usize, Haystack)>,
    usual_depth: usize,
    /// The contents of active entries, for recursive scanning.
    contents: Haystack,
    /// The texts of `Sources`, in its order.
    sources: [Haystack; 6],
}

impl Haystacks {
    /// Collects the texts of a conversation of which `count` messages have been said.
    pub(super) fn new(book: &Lorebook, talk: &Talk<'_>, count: usize) -> Self {
        let bounded = |depth: u64| usize::try_from(depth).unwrap_or(usize::MAX).min(MAX_LORE_DEPTH);
        // A book that searches no message at all still searches the newest.
        let usual_depth = book.scan_depth.map_or(DEFAULT_LORE_DEPTH, bounded).max(1);
        let mut depths: Vec<usize> = book.entries.iter().filter_map(|entry| entry.scan_depth).map(bounded).collect();
        depths.push(usual_depth);
        depths.sort_unstable();
        depths.dedup();
        let messages = depths.into_iter().map(|depth| {
            let from = count.saturating_sub(depth);
            (depth, Haystack::new(&talk.messages.get(from..count).unwrap_or_default().join("\n")))
        });
        let wanted = |wants: fn(&LoreEntry) -> bool, text: &str| match book.entries.iter().any(wants) {
            true => Haystack::new(text),
            false => Haystack::default(),
        };
        Self {
            messages: messages.collect(),
            usual_depth,
            contents: Haystack::default(),
            sources: [
                wanted(|entry| entry.sources.description, talk.description),
                wanted(|entry| entry.sources.personality, talk.personality),
                wanted(|entry| entry.sources.scenario, talk.scenario),
                wanted(|entry| entry.sources.creator_notes, &book.creator_notes),
                wanted(|entry| entry.sources.depth_prompt, &book.depth_prompt),
                wanted(|entry| entry.sources.user_persona, talk.user_persona),
            ],
        }
    }

    /// Adds the content of an active entry.
    pub(super) fn add(&mut self, text: &str) {
        self.contents.add(text);
    }

    /// Returns the texts that are searched for an entry's keys, with the contents of other entries if `recursing`.
    pub(super) fn of<'a>(&'a self, entry: &LoreEntry, recursing: bool) -> Vec<&'a Haystack> {
        let bounded = |depth: u64| usize::try_from(depth).unwrap_or(usize::MAX).min(MAX_LORE_DEPTH);
        let depth = entry.scan_depth.map_or(self.usual_depth, bounded);
        let mut texts: Vec<&Haystack> = Vec::with_capacity(2);
        texts.extend(self.messages.iter().find(|(found, _)| *found == depth).map(|(_, haystack)| haystack));
        if recursing {
            texts.push(&self.contents);
        }
        let wants = &entry.sources;
        let wanted = [
            wants.description,
            wants.personality,
            wants.scenario,
            wants.creator_notes,
            wants.depth_prompt,
            wants.user_persona,
        ];
        texts.extend(self.sources.iter().zip(wanted).filter(|(_, wanted)| *wanted).map(|(haystack, _)| haystack));
        texts
    }
}
