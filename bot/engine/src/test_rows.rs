//! Rows for the unit tests of this crate.

use azera_memory::MessageRow;
use azera_types::{Author, ChatId, MessageId, PersonId, PersonaId, Scope, Text, Timestamp};

/// Returns what Ann said to Azera in the chat `here`.
pub(crate) fn said(id: &str, scope: Scope, at: Timestamp, text: &str) -> MessageRow {
    MessageRow {
        id: MessageId::new(id).unwrap(),
        chat: ChatId::new("here").unwrap(),
        seq: 0,
        parent: None,
        depth: 0,
        author: Author::Person { id: PersonId::new("ann").unwrap(), name: "Ann".into() },
        text: Text::new(text),
        at,
        reply_to: None,
        answers: None,
        persona: PersonaId::new("azera").unwrap(),
        scope,
        source_scopes: Vec::new(),
        memorable: true,
        edited_at: None,
        came_at: None,
        parts: Vec::new(),
        undone: false,
        ran: Vec::new(),
    }
}
