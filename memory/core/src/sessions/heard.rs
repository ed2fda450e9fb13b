//! What the person said in a session: what it says about a problem, and its words. Both are read once for each message.

use super::Log;
use super::says::{Says, says};
use super::topics::{Words, words};
use crate::rows::MessageRow;

/// Bytes at the beginning of a message that are looked at.
const LOOKED_AT: usize = 2_000;

/// A message of the person.
pub(super) struct Own<'a> {
    pub(super) message: &'a MessageRow,
    pub(super) says: Option<Says<'a>>,
    pub(super) words: Words,
}

/// A session with what its person said.
pub(super) struct Heard<'a> {
    pub(super) log: &'a Log,
    pub(super) own: Vec<Own<'a>>,
}

impl<'a> Heard<'a> {
    pub(super) fn new(log: &'a Log) -> Self {
        let own = |message: &'a MessageRow| {
            let text = beginning(&message.text);
            Own { message, says: says(text), words: words(text) }
        };
        Self { log, own: log.messages.iter().filter(|message| log.is_own(message)).map(own).collect() }
    }
}

/// Returns the whole sentences at the beginning of a text. A cut one could say the opposite.
pub(super) fn beginning(text: &str) -> &str {
    if text.len() <= LOOKED_AT {
        return text;
    }
    let text = text.get(..text.floor_char_boundary(LOOKED_AT)).unwrap_or_default();
    text.rfind(['.', '!', '?', '\n', ';']).and_then(|end| text.get(..=end)).unwrap_or_default()
}
