//! Danger that is told in passing, by signs that mean little alone.
//!
//! "I bought a rope today" is nothing, and "I see no reason to get up tomorrow" may be a bad day. Both in one message are a danger,
//! however many words stand between them. A phrase cannot reach that far, so each kind of sign is searched for by itself.
//!
//! Two kinds in one message tell self-harm, and one of them must be strong: people who move house say goodbye and set a date too.

use serde::Deserialize;

use super::pattern::{List, PatternError, Spacing};

/// The phrases of each kind of sign in one language.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct SignEntry {
    /// Strong: weary of life, worthless, without a reason.
    despair: Vec<String>,
    /// Strong: a means is there, or the place.
    at_hand: Vec<String>,
    /// Strong: gives away pets and things that matter.
    bequest: Vec<String>,
    /// Strong: leaves passwords, savings, letters, a will.
    papers: Vec<String>,
    /// Weak: thanks and goodbyes.
    farewell: Vec<String>,
    /// Weak: the time is set, the mind is made up.
    decided: Vec<String>,
    /// The writer has a weapon.
    weapon: Vec<String>,
    /// Others shall regret or pay. With a weapon it is a threat.
    revenge: Vec<String>,
}

impl SignEntry {
    pub(super) fn extend(&mut self, other: Self) {
        let Self { despair, at_hand, bequest, papers, farewell, decided, weapon, revenge } = other;
        let added = [despair, at_hand, bequest, papers, farewell, decided, weapon, revenge];
        for (list, phrases) in self.lists_mut().into_iter().zip(added) {
            list.extend(phrases);
        }
    }

    pub(super) fn lists_mut(&mut self) -> [&mut Vec<String>; 8] {
        let Self { despair, at_hand, bequest, papers, farewell, decided, weapon, revenge } = self;
        [despair, at_hand, bequest, papers, farewell, decided, weapon, revenge]
    }
}

/// The signs of one language, ready to match.
#[derive(Debug)]
pub(super) struct Signs {
    strong: Vec<List>,
    weak: Vec<List>,
    weapon: Option<List>,
    revenge: Option<List>,
}

impl Signs {
    pub(super) fn compile(entry: &SignEntry, spacing: Spacing) -> Result<Self, PatternError> {
        let list = |phrases: &Vec<String>| List::of(phrases, spacing);
        let lists = |kinds: &[&Vec<String>]| -> Result<Vec<List>, PatternError> {
            kinds.iter().filter_map(|phrases| list(phrases).transpose()).collect()
        };
        Ok(Self {
            strong: lists(&[&entry.despair, &entry.at_hand, &entry.bequest, &entry.papers])?,
            weak: lists(&[&entry.farewell, &entry.decided])?,
            weapon: list(&entry.weapon)?,
            revenge: list(&entry.revenge)?,
        })
    }

    /// Returns true if two kinds of sign stand in a text, one of them strong. A question about means (`means`) is a weak sign.
    pub(super) fn tell_self_harm(&self, text: &str, means: bool) -> bool {
        let weak = || means || self.weak.iter().any(|list| list.is_match(text));
        match self.strong.iter().filter(|list| list.is_match(text)).count() {
            0 => false,
            1 => weak(),
            _ => true,
        }
    }

    /// Returns true if somebody with a weapon speaks of revenge.
    pub(super) fn tell_threat(&self, text: &str) -> bool {
        [&self.weapon, &self.revenge].into_iter().all(|list| list.as_ref().is_some_and(|list| list.is_match(text)))
    }

    /// Returns true if there is any strong sign.
    pub(super) fn any_strong(&self, text: &str) -> bool {
        self.strong.iter().any(|list| list.is_match(text))
    }
}

/// Words that are a danger where they stand in one message, in any order: one of each list.
///
/// Each list is written `a|b|c` in the syntax of phrases.
pub(super) type TogetherEntry = Vec<Vec<String>>;

/// The same, ready to match.
#[derive(Debug)]
pub(super) struct Together(Vec<Vec<List>>);

impl Together {
    pub(super) fn compile(entry: &TogetherEntry, spacing: Spacing) -> Result<Self, PatternError> {
        let one = |list: &String| List::of(&[format!("({list})")], spacing);
        let all = |lists: &Vec<String>| lists.iter().filter_map(|list| one(list).transpose()).collect();
        Ok(Self(entry.iter().map(all).collect::<Result<_, _>>()?))
    }

    pub(super) fn stand_in(&self, text: &str) -> bool {
        self.0.iter().any(|lists| lists.iter().all(|list| list.is_match(text)))
    }
}
