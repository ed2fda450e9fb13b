//! What was said shortly before, in the same conversation.
//!
//! "Ok, but how many?" holds no word of danger, and means one behind "I want to take all my pills". So a danger keeps the net on for
//! the messages that follow it. The same holds for somebody under 18 who is in the conversation, as a person or as a role.

use azera_affect::{Danger, DangerLexicon, Tag};
use azera_memory::MessageRow;
use azera_types::Timestamp;

/// Seconds for which a conversation is about danger after somebody spoke of it, and for which a stated age counts here.
const DANGER_LASTS_S: i64 = 24 * 3_600;

/// Seconds for which a message follows a danger or a refusal.
const FOLLOWS_S: i64 = 2 * 3_600;

/// Messages of the person that follow a danger or a refusal.
const FOLLOWING: usize = 4;

/// Messages of the person that are read for their age.
const READ: usize = 12;

/// What a person, and the others in their conversation, said before a message.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Earlier {
    /// They spoke of harming themselves, a few messages ago.
    self_harm: bool,
    /// They spoke of harm to or by others, a few messages ago.
    threat: bool,
    /// They said that they are under 18.
    pub(crate) minor: bool,
    /// Somebody in the conversation asked the companion to be somebody under 18.
    pub(crate) child_role: bool,
    /// They asked for something that no model answers with or about a child, a few messages ago.
    pub(crate) refused: bool,
    /// The language of the danger.
    pub(crate) language: Option<&'static str>,
}

/// What people said lately in a conversation, oldest first.
pub(super) struct Lately<'a>(Vec<(&'a MessageRow, Danger)>);

impl<'a> Lately<'a> {
    /// Reads what people said before `now`.
    pub(super) fn of(recent: &'a [MessageRow], now: Timestamp) -> Self {
        let said = recent.iter().filter(|row| row.author.person().is_some() && age_s(row, now) <= DANGER_LASTS_S);
        Self(said.map(|row| (row, DangerLexicon::builtin().find(row.text.as_str()))).collect())
    }

    /// Returns true if somebody spoke of harming themselves.
    pub(super) fn has_self_harm(&self) -> bool {
        self.0.iter().any(|(_, found)| found.self_harm)
    }
}

impl Earlier {
    /// Looks at what stands before `message`. What others said counts only for the companion's role.
    pub(super) fn of(message: &MessageRow, lately: &Lately<'_>) -> Self {
        let Some(person) = message.author.person() else { return Self::default() };
        let before = || lately.0.iter().rev().filter(|(row, _)| row.seq < message.seq);
        let own: Vec<&(&MessageRow, Danger)> =
            before().filter(|(row, _)| row.author.person() == Some(person)).take(READ).collect();
        let minor = own.iter().any(|(_, found)| found.minor);
        let child_role = before().any(|(_, found)| found.child_role);
        let mut earlier = Self { minor, child_role, ..Self::default() };
        for (_, found) in own.iter().take(FOLLOWING).filter(|(row, _)| age_s(row, message.at) <= FOLLOWS_S) {
            let refused = found.sexualises_a_child() || found.is_intimate_with(minor, child_role);
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
fn age_s(row: &MessageRow, now: Timestamp) -> i64 {
    now.as_second().saturating_sub(row.at.as_second())
}
