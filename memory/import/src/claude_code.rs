//! Transcripts of Claude Code: one JSON object a line, one file a session. What people typed and what the assistant wrote
//! are messages. Calls of tools, their results, and texts that the program itself inserts are left out.

use std::collections::HashMap;
use std::io::BufRead;
use std::ops::ControlFlow;
use std::sync::Arc;

use serde::Deserialize;

use crate::lines::{Line, Lines};
use crate::time::Time;
use crate::{Found, ImportedMessage, ReadError, Role, Source, SourceAuthor, SourceChat, Take};

/// Sessions of one file whose ids are kept. A file holds one, or few after it was continued.
const MAX_SESSIONS: usize = 1_024;

/// Elements that the program inserts into what a person types. Nobody said their content.
const INSERTED: [&str; 11] = [
    "bash-input",
    "bash-stderr",
    "bash-stdout",
    "command-args",
    "command-message",
    "command-name",
    "ide_opened_file",
    "ide_selection",
    "local-command-stderr",
    "local-command-stdout",
    "system-reminder",
];

/// Beginnings of texts that the program writes in a person's name.
const BY_PROGRAM: [&str; 3] = [
    "Caveat: The messages below were generated",
    "[Request interrupted by user",
    "This session is being continued from a previous conversation",
];

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    r#type: Option<String>,
    uuid: Option<String>,
    session_id: Option<String>,
    timestamp: Option<Time>,
    #[serde(default)]
    is_sidechain: bool,
    #[serde(default)]
    is_meta: bool,
    #[serde(default)]
    is_compact_summary: bool,
    message: Option<Said>,
}

#[derive(Deserialize)]
struct Said {
    content: Content,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Blocks(Vec<Block>),
}

#[derive(Deserialize)]
struct Block {
    r#type: String,
    text: Option<String>,
}

/// Reads a transcript.
pub(crate) fn read(source: &Source, input: impl BufRead, take: &mut Take<'_>) -> Result<(), ReadError> {
    let mut lines = Lines::new(input);
    let (mut line, mut sessions) = (Vec::new(), HashMap::new());
    while let Some(read) = lines.next(&mut line)? {
        let found = match read {
            Line::TooLong => Found::flaw(lines.number, "the line is too long"),
            Line::Whole if line.trim_ascii().is_empty() => continue,
            Line::Whole => match serde_json::from_slice(&line) {
                Ok(entry) => entry_found(source, entry, lines.number, &mut sessions),
                Err(error) => Found::bad_json(lines.number, &error),
            },
        };
        if let ControlFlow::Break(()) = take(found) {
            return Ok(());
        }
    }
    Ok(())
}

fn entry_found(
    source: &Source,
    entry: Entry,
    position: usize,
    sessions: &mut HashMap<String, Arc<SourceChat>>,
) -> Found {
    let role = match entry.r#type.as_deref() {
        Some("user") => Role::Owner,
        Some("assistant") => Role::Assistant,
        _ => return Found::LeftOut("notes of the program"),
    };
    if entry.is_sidechain {
        return Found::LeftOut("talk between agents");
    }
    if entry.is_meta || entry.is_compact_summary {
        return Found::LeftOut("texts of the program");
    }
    let (Some(id), Some(said)) = (entry.uuid, entry.message) else {
        return Found::flaw(position, "the message has no uuid or no content");
    };
    let written = match said.content {
        Content::Text(text) => text,
        Content::Blocks(blocks) => {
            let texts = blocks.into_iter().filter(|block| block.r#type == "text").filter_map(|block| block.text);
            texts.collect::<Vec<_>>().join("\n\n")
        }
    };
    let text = if role == Role::Owner { typed(&written) } else { written.trim().to_owned() };
    if text.is_empty() {
        return Found::LeftOut(if written.trim().is_empty() { "calls of tools" } else { "texts of the program" });
    }
    let session = entry.session_id.unwrap_or_else(|| source.stem.clone());
    if sessions.len() >= MAX_SESSIONS && !sessions.contains_key(&session) {
        sessions.clear();
    }
    let new = || Arc::new(SourceChat { id: session.clone(), title: None });
    let chat = Arc::clone(sessions.entry(session.clone()).or_insert_with(new));
    let (id_of, name) = if role == Role::Owner { ("user", "User") } else { ("assistant", "Claude") };
    let author = SourceAuthor { id: id_of.into(), name: name.into(), account: None };
    let at = entry.timestamp.and_then(|time| time.moment(&source.zone));
    Found::Message(Box::new(ImportedMessage { id, chat, author, role, at, text, position }))
}

/// Returns what the person typed, without what the program inserted.
fn typed(written: &str) -> String {
    let (mut text, mut rest) = (String::new(), written);
    while let Some((before, after)) = rest.split_once('<') {
        text.push_str(before);
        let Some(tag) = INSERTED.iter().find(|tag| after.starts_with(**tag)) else {
            text.push('<');
            rest = after;
            continue;
        };
        // Text that is cut off belongs to the element to its end.
        rest = after.split_once(&format!("</{tag}>")).map_or("", |(_, after)| after);
    }
    text.push_str(rest);
    let text = text.trim();
    if BY_PROGRAM.iter().any(|begins| text.starts_with(begins)) { String::new() } else { text.to_owned() }
}
