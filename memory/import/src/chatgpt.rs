//! `conversations.json` of an export of ChatGPT: a list of conversations, each a tree of messages. The branch that the
//! person saw last is read.

use std::collections::{HashMap, HashSet};
use std::io::BufRead;
use std::ops::ControlFlow;
use std::sync::Arc;

use azera_types::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use crate::conversations::read_list;
use crate::time::Time;
use crate::{Found, ImportedMessage, ReadError, Role, Source, SourceAuthor, SourceChat, Take};

#[derive(Deserialize)]
struct Conversation {
    conversation_id: Option<String>,
    id: Option<String>,
    title: Option<String>,
    create_time: Option<Time>,
    current_node: Option<String>,
    mapping: HashMap<String, Node>,
}

#[derive(Deserialize)]
struct Node {
    parent: Option<String>,
    message: Option<Said>,
}

#[derive(Deserialize)]
struct Said {
    id: Option<String>,
    author: Author,
    create_time: Option<Time>,
    content: Option<Content>,
    recipient: Option<String>,
    metadata: Option<Metadata>,
}

#[derive(Deserialize)]
struct Author {
    role: String,
}

#[derive(Deserialize)]
struct Content {
    content_type: String,
    #[serde(default)]
    parts: Vec<Value>,
}

#[derive(Deserialize)]
struct Metadata {
    #[serde(default)]
    is_visually_hidden_from_conversation: bool,
}

/// Reads the conversations.
pub(crate) fn read(source: &Source, input: impl BufRead, take: &mut Take<'_>) -> Result<(), ReadError> {
    read_list(input, take, |conversation, number, take| branch(source, conversation, number, take))
}

/// Passes on the messages of the current branch, oldest first.
fn branch(source: &Source, conversation: Conversation, position: usize, take: &mut Take<'_>) -> ControlFlow<()> {
    let Conversation { conversation_id, id, title, create_time, current_node, mut mapping } = conversation;
    let Some(id) = conversation_id.or(id) else {
        return take(Found::flaw(position, "the conversation has no id"));
    };
    let begun = create_time.and_then(|time| time.moment(&source.zone));
    let Some(path) = path(&mapping, current_node.as_deref()) else {
        return take(Found::flaw(position, "the conversation has no current message, or its messages form a circle"));
    };
    let chat = Arc::new(SourceChat { id, title: title.filter(|title| !title.trim().is_empty()) });
    let mut before = begun;
    for node in path {
        let Some(said) = mapping.remove(&node).and_then(|node| node.message) else { continue };
        let at = said.create_time.as_ref().and_then(|time| time.moment(&source.zone)).or(before);
        let found = message(&chat, said, node, at, position);
        if matches!(found, Found::Message(_)) {
            before = at;
        }
        take(found)?;
    }
    let others = mapping.values().filter(|node| node.message.is_some()).count();
    (0..others).try_for_each(|_| take(Found::LeftOut("other branches")))
}

/// Returns the ids of the nodes from the root to the current one; `None` if there is no current node, or no root.
fn path(mapping: &HashMap<String, Node>, current: Option<&str>) -> Option<Vec<String>> {
    let mut next = Some(current.filter(|current| mapping.contains_key(*current))?);
    let (mut path, mut seen) = (Vec::new(), HashSet::new());
    while let Some(id) = next {
        if !seen.insert(id) {
            return None;
        }
        path.push(id.to_owned());
        next = mapping.get(id).and_then(|node| node.parent.as_deref()).filter(|parent| mapping.contains_key(*parent));
    }
    path.reverse();
    Some(path)
}

fn message(chat: &Arc<SourceChat>, said: Said, node: String, at: Option<Timestamp>, position: usize) -> Found {
    let (role, author, name) = match said.author.role.as_str() {
        "user" => (Role::Owner, "user", "User"),
        "assistant" => (Role::Assistant, "assistant", "ChatGPT"),
        "tool" => return Found::LeftOut("calls of tools"),
        _ => return Found::LeftOut("texts of the program"),
    };
    if said.metadata.is_some_and(|metadata| metadata.is_visually_hidden_from_conversation) {
        return Found::LeftOut("texts of the program");
    }
    if said.recipient.is_some_and(|recipient| recipient != "all") {
        return Found::LeftOut("calls of tools");
    }
    let shown = |content: &Content| matches!(content.content_type.as_str(), "text" | "multimodal_text");
    let Some(content) = said.content.filter(shown) else { return Found::LeftOut("thoughts and calls of tools") };
    let texts: Vec<&str> = content.parts.iter().filter_map(Value::as_str).map(str::trim).collect();
    let text = texts.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n\n");
    if text.is_empty() {
        return Found::LeftOut("messages without text");
    }
    let author = SourceAuthor { id: author.into(), name: name.into(), account: None };
    let id = said.id.unwrap_or(node);
    Found::Message(Box::new(ImportedMessage { id, chat: Arc::clone(chat), author, role, at, text, position }))
}
