//! `conversations.json` of an export of Claude: a list of conversations, each a list of messages.

use std::io::BufRead;
use std::ops::ControlFlow;
use std::sync::Arc;

use azera_types::Timestamp;
use serde::Deserialize;

use crate::conversations::read_list;
use crate::time::Time;
use crate::{Found, ImportedMessage, ReadError, Role, Source, SourceAuthor, SourceChat, Take};

#[derive(Deserialize)]
struct Conversation {
    uuid: String,
    name: Option<String>,
    created_at: Option<Time>,
    chat_messages: Vec<Said>,
}

#[derive(Deserialize)]
struct Said {
    uuid: Option<String>,
    sender: Option<String>,
    text: Option<String>,
    #[serde(default)]
    content: Vec<Block>,
    created_at: Option<Time>,
}

#[derive(Deserialize)]
struct Block {
    r#type: Option<String>,
    text: Option<String>,
}

/// Reads the conversations.
pub(crate) fn read(source: &Source, input: impl BufRead, take: &mut Take<'_>) -> Result<(), ReadError> {
    read_list(input, take, |conversation, number, take| messages(source, conversation, number, take))
}

fn messages(source: &Source, conversation: Conversation, position: usize, take: &mut Take<'_>) -> ControlFlow<()> {
    let title = conversation.name.filter(|name| !name.trim().is_empty());
    let chat = Arc::new(SourceChat { id: conversation.uuid, title });
    let mut before = conversation.created_at.and_then(|time| time.moment(&source.zone));
    for said in conversation.chat_messages {
        let at = said.created_at.as_ref().and_then(|time| time.moment(&source.zone)).or(before);
        before = at;
        take(message(&chat, said, at, position))?;
    }
    ControlFlow::Continue(())
}

fn message(chat: &Arc<SourceChat>, said: Said, at: Option<Timestamp>, position: usize) -> Found {
    let (role, author, name) = match said.sender.as_deref() {
        Some("human") => (Role::Owner, "human", "User"),
        Some("assistant") => (Role::Assistant, "assistant", "Claude"),
        _ => return Found::LeftOut("texts of the program"),
    };
    let Some(id) = said.uuid else { return Found::flaw(position, "a message has no uuid") };
    // Newer exports hold the text in blocks, beside thoughts and calls of tools.
    let blocks = said.content.into_iter().filter(|block| block.r#type.as_deref() == Some("text"));
    let texts: Vec<String> = blocks.filter_map(|block| block.text).filter(|text| !text.trim().is_empty()).collect();
    let text = if texts.is_empty() { said.text.unwrap_or_default() } else { texts.join("\n\n") };
    let text = text.trim().to_owned();
    if text.is_empty() {
        return Found::LeftOut("messages without text");
    }
    let author = SourceAuthor { id: author.into(), name: name.into(), account: None };
    Found::Message(Box::new(ImportedMessage { id, chat: Arc::clone(chat), author, role, at, text, position }))
}
