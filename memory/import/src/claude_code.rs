//! Transcripts of Claude Code: one JSON object a line, one file a session. What people typed and what the assistant wrote
//! are messages. Of the calls of tools, commands are kept with whether they worked; their results, and texts that the
//! program itself inserts, are left out.

use std::collections::HashMap;
use std::io::BufRead;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use crate::calls::{Call, Calls};
use crate::lines::{Line, Lines};
use crate::time::Time;
use crate::{Found, ImportedMessage, Ran, ReadError, Role, Source, SourceAuthor, SourceChat, Take};

/// Sessions of one file that are kept in mind. A file holds one, or few after it was continued.
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
    cwd: Option<String>,
    #[serde(default)]
    is_sidechain: bool,
    #[serde(default)]
    is_meta: bool,
    #[serde(default)]
    is_compact_summary: bool,
    /// What the program notes of the result of a tool.
    tool_use_result: Option<Value>,
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
    #[serde(flatten)]
    call: Call,
}

/// Where a line of a transcript was written.
#[derive(Deserialize)]
struct Whereabouts {
    cwd: Option<String>,
}

/// A session that is being read.
struct Session {
    chat: Arc<SourceChat>,
    /// The last message that a person typed. What is run next is run for it.
    asked: Option<String>,
    calls: Calls,
}

impl Session {
    /// Returns what was run for the last message, and forgets it.
    fn end_request(&mut self) -> Option<Found> {
        let commands = self.calls.take();
        let message = self.asked.take()?;
        (!commands.is_empty()).then(|| Found::Ran(Ran { chat: Arc::clone(&self.chat), message, commands }))
    }
}

/// Reads a transcript.
pub(crate) fn read(source: &Source, input: impl BufRead, take: &mut Take<'_>) -> Result<(), ReadError> {
    let mut lines = Lines::new(input);
    let mut transcript = Transcript { source, sessions: HashMap::new() };
    let mut line = Vec::new();
    while let Some(read) = lines.next(&mut line)? {
        let found = match read {
            Line::TooLong => Found::flaw(lines.number, "the line is too long"),
            Line::Whole if line.trim_ascii().is_empty() => continue,
            Line::Whole => match serde_json::from_slice(&line) {
                Ok(entry) => transcript.entry(entry, lines.number),
                Err(error) => Found::bad_json(lines.number, &error),
            },
        };
        // What was run before a message belongs to the one before it.
        if let Found::Message(message) = &found
            && let Some(ran) = transcript.begin_message(message)
            && take(ran).is_break()
        {
            return Ok(());
        }
        if let ControlFlow::Break(()) = take(found) {
            return Ok(());
        }
    }
    for ran in transcript.end_all() {
        if take(ran).is_break() {
            break;
        }
    }
    Ok(())
}

/// Returns the folder in which the session of a Claude Code transcript began: the first one that a line names. The root of
/// the file system and relative paths do not count, because they name no project. Returns `None` if no line names a folder,
/// or if the input fails before.
pub fn first_folder(input: impl BufRead) -> Option<String> {
    let mut lines = Lines::new(input);
    let mut line = Vec::new();
    while let Some(read) = lines.next(&mut line).ok()? {
        if let Line::Whole = read
            && let Ok(Whereabouts { cwd: Some(folder) }) = serde_json::from_slice(&line)
            && names_project(Path::new(&folder))
        {
            return Some(folder);
        }
    }
    None
}

fn names_project(folder: &Path) -> bool {
    folder.is_absolute() && folder.file_name().is_some()
}

/// A transcript that is being read.
struct Transcript<'a> {
    source: &'a Source,
    sessions: HashMap<String, Session>,
}

impl Transcript<'_> {
    fn entry(&mut self, entry: Entry, position: usize) -> Found {
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
        let at = entry.timestamp.and_then(|time| time.moment(&self.source.zone));
        let session = self.session(entry.session_id);
        let written = match said.content {
            Content::Text(text) => text,
            Content::Blocks(blocks) => {
                let mut texts = Vec::new();
                for block in blocks {
                    match block.r#type.as_str() {
                        "text" => texts.extend(block.text),
                        "tool_use" => session.calls.begin(block.call, entry.cwd.as_deref(), at),
                        "tool_result" => session.calls.end(&block.call, entry.tool_use_result.as_ref()),
                        _ => {}
                    }
                }
                texts.join("\n\n")
            }
        };
        let text = if role == Role::Owner { typed(&written) } else { written.trim().to_owned() };
        if text.is_empty() {
            return Found::LeftOut(if written.trim().is_empty() { "calls of tools" } else { "texts of the program" });
        }
        let (id_of, name) = if role == Role::Owner { ("user", "User") } else { ("assistant", "Claude") };
        let author = SourceAuthor { id: id_of.into(), name: name.into(), account: None };
        let chat = Arc::clone(&session.chat);
        Found::Message(Box::new(ImportedMessage { id, chat, author, role, at, text, position }))
    }

    /// Returns the session with this id.
    fn session(&mut self, id: Option<String>) -> &mut Session {
        let id = id.unwrap_or_else(|| self.source.stem.clone());
        if self.sessions.len() >= MAX_SESSIONS && !self.sessions.contains_key(&id) {
            self.sessions.clear();
        }
        let new = || Session {
            chat: Arc::new(SourceChat { id: id.clone(), title: None }),
            asked: None,
            calls: Calls::default(),
        };
        self.sessions.entry(id.clone()).or_insert_with(new)
    }

    /// Notes a message that is passed on next. Returns what was run for the one before it.
    fn begin_message(&mut self, message: &ImportedMessage) -> Option<Found> {
        let session = self.sessions.get_mut(&message.chat.id).filter(|_| message.role == Role::Owner)?;
        let ran = session.end_request();
        session.asked = Some(message.id.clone());
        ran
    }

    /// Returns what was run for the last message of each session, in the order of their ids.
    fn end_all(self) -> Vec<Found> {
        let mut sessions: Vec<(String, Session)> = self.sessions.into_iter().collect();
        sessions.sort_by(|(one, _), (other, _)| one.cmp(other));
        sessions.into_iter().filter_map(|(_, mut session)| session.end_request()).collect()
    }
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
