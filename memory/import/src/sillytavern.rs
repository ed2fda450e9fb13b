//! Chats of SillyTavern: a line about the chat, then one message a line. Messages have no ids, so each gets one from its
//! author, its time, and how many such messages came before it.

use std::collections::HashMap;
use std::io::BufRead;
use std::ops::ControlFlow;
use std::sync::Arc;

use serde::Deserialize;

use crate::lines::{Line, Lines};
use crate::time::Time;
use crate::{Found, ImportedMessage, ReadError, Role, Source, SourceAuthor, SourceChat, Take};

/// Most messages of one chat whose authors and times are counted.
const MAX_MESSAGES: usize = 1 << 20;

#[derive(Deserialize)]
struct Entry {
    user_name: Option<String>,
    character_name: Option<String>,
    create_date: Option<Time>,
    name: Option<String>,
    #[serde(default)]
    is_user: bool,
    #[serde(default)]
    is_system: bool,
    send_date: Option<Time>,
    mes: Option<String>,
}

/// Reads a chat.
pub(crate) fn read(source: &Source, input: impl BufRead, take: &mut Take<'_>) -> Result<(), ReadError> {
    let mut lines = Lines::new(input);
    let mut line = Vec::new();
    let mut chat = Arc::new(SourceChat { id: source.stem.clone(), title: None });
    let mut seen: HashMap<(String, String), usize> = HashMap::new();
    while let Some(read) = lines.next(&mut line)? {
        let found = match read {
            Line::TooLong => Found::flaw(lines.number, "the line is too long"),
            Line::Whole if line.trim_ascii().is_empty() => continue,
            Line::Whole => match serde_json::from_slice::<Entry>(&line) {
                Ok(entry) if entry.mes.is_none() && entry.character_name.is_some() => {
                    chat = Arc::new(about(source, &entry));
                    continue;
                }
                Ok(entry) => message(source, &chat, entry, lines.number, &mut seen),
                Err(error) => Found::bad_json(lines.number, &error),
            },
        };
        if let ControlFlow::Break(()) = take(found) {
            return Ok(());
        }
        if seen.len() > MAX_MESSAGES {
            return Err(ReadError::Shape("the chat has more than a million messages"));
        }
    }
    Ok(())
}

/// Returns the chat that a first line is about.
fn about(source: &Source, entry: &Entry) -> SourceChat {
    let names = [entry.user_name.as_deref(), entry.character_name.as_deref()].map(Option::unwrap_or_default);
    let [user, character] = names;
    // Without a date, several chats with one character would be the same.
    let date = entry.create_date.as_ref().map_or_else(|| source.stem.clone(), written);
    SourceChat { id: format!("{user}\n{character}\n{date}"), title: Some(character.to_owned()) }
}

fn message(
    source: &Source,
    chat: &Arc<SourceChat>,
    entry: Entry,
    position: usize,
    seen: &mut HashMap<(String, String), usize>,
) -> Found {
    let (Some(name), Some(text)) = (entry.name, entry.mes) else {
        return Found::flaw(position, "the message has no name or no text");
    };
    let text = text.trim().to_owned();
    if entry.is_system {
        return Found::LeftOut("texts of the program");
    }
    if text.is_empty() {
        return Found::LeftOut("messages without text");
    }
    let said = entry.send_date.as_ref().map_or_else(String::new, written);
    let same = seen.entry((name.clone(), said.clone())).or_default();
    *same += 1;
    let id = format!("{name}\n{said}\n{same}");
    let role = if entry.is_user { Role::Owner } else { Role::Assistant };
    let at = entry.send_date.and_then(|time| time.moment(&source.zone));
    let author = SourceAuthor { id: name.clone(), name, account: None };
    Found::Message(Box::new(ImportedMessage { id, chat: Arc::clone(chat), author, role, at, text, position }))
}

/// Returns a time as the file writes it.
fn written(time: &Time) -> String {
    match time {
        Time::Number(number) => number.to_string(),
        Time::Text(text) => text.clone(),
    }
}
