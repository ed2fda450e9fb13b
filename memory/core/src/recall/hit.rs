//! A recalled memory, and in how many chats it was said.

use std::collections::HashSet;

use azera_types::{ChatId, MemoryId, Text};

use crate::rows::{Kind, MemoryRow};
use crate::{Shown, Validity};

/// A recalled memory with its signals.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// The memory.
    pub memory: MemoryRow,
    /// The parts of the memory's text that answer the question, at most as long as the snippet length.
    pub snippet: Text,
    /// Where these parts stand in the text.
    pub shown: Shown,
    /// Fused score; comparable within one recall only.
    pub score: f32,
    /// Names of the signals that found it.
    pub signals: Vec<&'static str>,
    /// From when and until when it holds.
    pub validity: Validity,
    /// Other statements in which the same person says the same in the same place. They are not shown besides. A prompt
    /// must not tell of them: they are no sources of the reply.
    pub again: Vec<Again>,
}

/// A memory that says the same as a hit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Again {
    /// The memory.
    pub memory: MemoryId,
    /// The chat it was said in.
    pub chat: Option<ChatId>,
    /// True if its speaker does not want it to count.
    pub apart: bool,
}

impl Again {
    pub(crate) fn of(memory: MemoryRow) -> Self {
        Self { memory: memory.id, chat: memory.chat, apart: memory.apart }
    }
}

/// Chats of a place from which on a statement counts as known in the whole place.
pub const KNOWN_IN_CHATS: usize = 3;

/// How much such a statement comes forward.
pub(super) const KNOWN_RAISE: f32 = 0.1;

impl Hit {
    /// Returns the number of chats in which it was said.
    pub fn chats(&self) -> usize {
        chats_of(&self.memory, &self.again)
    }
}

/// Returns the number of chats in which something was said: in a memory, if that is a statement, and again. Returns 0 if
/// its speaker does not want it to count.
pub fn chats_of(memory: &MemoryRow, again: &[Again]) -> usize {
    if memory.apart || again.iter().any(|again| again.apart) {
        return 0;
    }
    let own = memory.chat.as_ref().filter(|_| memory.is_statement());
    own.into_iter().chain(again.iter().filter_map(|again| again.chat.as_ref())).collect::<HashSet<_>>().len()
}

/// Returns the number of chats in which these memories were said.
pub(crate) fn chats_in<'a>(memories: impl Iterator<Item = &'a MemoryRow>) -> usize {
    memories.filter_map(|memory| memory.chat.as_ref()).collect::<HashSet<_>>().len()
}

impl MemoryRow {
    /// Returns true if it is worth counting in how many chats this was said: a person said it, and asked to keep it or
    /// was found to say something worth keeping. Greetings and the persona's own words are not.
    pub(crate) fn is_statement(&self) -> bool {
        self.author.person().is_some() && (self.salience.is_some() || self.kind == Kind::Fact)
    }
}
