//! What the same person said shortly before, in the same conversation.
//!
//! "Ok, but how many?" holds no word of danger, and means one behind "I want to take all my pills". So a danger keeps the net on for
//! the messages that follow it.

use azera_affect::{Danger, DangerLexicon, Tag};
use azera_memory::MessageRow;
use azera_types::Timestamp;

/// Seconds for which a conversation is about danger after somebody spoke of it, and for which a stated age counts here.
pub(super) const DANGER_LASTS_S: i64 = 24 * 3_600;

/// Seconds for which a message follows a danger or a refusal.
const FOLLOWS_S: i64 = 2 * 3_600;

/// Messages of the person that follow a danger or a refusal.
const FOLLOWING: usize = 4;

/// Messages of the person that are read for their age.
const READ: usize = 12;

/// What a person said before a message.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Earlier {
    /// They spoke of harming themselves, a few messages ago.
    self_harm: bool,
    /// They spoke of harm to or by others, a few messages ago.
    threat: bool,
    /// They said that they are under 18.
    pub(crate) minor: bool,
    /// They asked for something that no model answers with or about a child, a few messages ago.
    pub(crate) refused: bool,
    /// The language of the danger.
    pub(crate) language: Option<&'static str>,
}

impl Earlier {
    /// Reads the messages of the person who wrote `message`. Messages of others are not looked at.
    pub(super) fn of(message: &MessageRow, recent: &[MessageRow]) -> Self {
        let Some(person) = message.author.person() else { return Self::default() };
        let own = recent.iter().rev().filter(|row| row.seq < message.seq && row.author.person() == Some(person));
        let lately = own.filter(|row| age_s(row, message.at) <= DANGER_LASTS_S).take(READ);
        let said: Vec<(i64, Danger)> =
            lately.map(|row| (age_s(row, message.at), DangerLexicon::builtin().find(row.text.as_str()))).collect();
        let minor = said.iter().any(|(_, found)| found.minor);
        let mut earlier = Self { minor, ..Self::default() };
        for (_, found) in said.iter().take(FOLLOWING).filter(|(age, _)| *age <= FOLLOWS_S) {
            let refused = found.sexualises_a_child() || (minor && found.is_intimate());
            earlier.self_harm |= found.self_harm;
            earlier.threat |= found.threat;
            earlier.refused |= refused;
            if found.self_harm || found.threat || refused {
                earlier.language = earlier.language.or(found.language);
            }
        }
        earlier
    }

    /// Adds the tags of what a message follows.
    pub(super) fn add_to(&self, tags: &mut Vec<Tag>) {
        let follows = [(self.self_harm, Tag::SelfHarm), (self.threat, Tag::Threat), (self.minor, Tag::Minor)];
        for (_, tag) in follows.into_iter().filter(|(follows, _)| *follows) {
            if !tags.contains(&tag) {
                tags.push(tag);
            }
        }
    }
}

/// How many seconds a message is older than `now`.
pub(super) fn age_s(row: &MessageRow, now: Timestamp) -> i64 {
    now.as_second().saturating_sub(row.at.as_second())
}
