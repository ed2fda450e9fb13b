//! The JSON of DiscordChatExporter: one channel a file. It does not say who exported it.

use std::io::BufRead;
use std::ops::ControlFlow;
use std::sync::Arc;

use serde::Deserialize;

use crate::elements::{Element, Elements};
use crate::time::Time;
use crate::{Found, ImportedMessage, ReadError, Role, Source, SourceAuthor, SourceChat, Take};

#[derive(Deserialize)]
struct Head {
    guild: Option<Named>,
    channel: Channel,
}

#[derive(Deserialize)]
struct Named {
    name: Option<String>,
}

#[derive(Deserialize)]
struct Channel {
    id: String,
    name: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Said {
    id: String,
    r#type: Option<String>,
    timestamp: Option<Time>,
    content: Option<String>,
    author: Author,
    #[serde(default)]
    attachments: Vec<Attachment>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Author {
    id: String,
    name: String,
    nickname: Option<String>,
    #[serde(default)]
    is_bot: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Attachment {
    file_name: Option<String>,
}

/// Reads the messages of a channel.
pub(crate) fn read(source: &Source, input: impl BufRead, take: &mut Take<'_>) -> Result<(), ReadError> {
    let (mut list, head) = Elements::of_key(input, "messages")?;
    let head: Head =
        serde_json::from_slice(&head).map_err(|_| ReadError::Shape("the file does not say which channel it is of"))?;
    let names = [head.guild.and_then(|guild| guild.name), head.channel.name];
    let title = names.into_iter().flatten().collect::<Vec<_>>().join(" / ");
    let chat = Arc::new(SourceChat { id: head.channel.id, title: Some(title).filter(|title| !title.is_empty()) });
    let mut element = Vec::new();
    while let Some(read) = list.next(&mut element)? {
        let found = match read {
            Element::TooLong => Found::flaw(list.number, "the message is too long"),
            Element::Whole => match serde_json::from_slice(&element) {
                Ok(said) => message(source, &chat, said, list.number),
                Err(error) => Found::bad_json(list.number, &error),
            },
        };
        if let ControlFlow::Break(()) = take(found) {
            return Ok(());
        }
    }
    Ok(())
}

fn message(source: &Source, chat: &Arc<SourceChat>, said: Said, position: usize) -> Found {
    if said.r#type.is_some_and(|kind| !matches!(kind.as_str(), "Default" | "Reply" | "0" | "19")) {
        return Found::LeftOut("events of the channel");
    }
    let files = said.attachments.into_iter().filter_map(|file| file.file_name).map(|name| format!("[file: {name}]"));
    let said_text = said.content.unwrap_or_default();
    let parts = std::iter::once(said_text.trim().to_owned()).chain(files);
    let text = parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n");
    if text.is_empty() {
        return Found::LeftOut("messages without text");
    }
    let Author { id, name, nickname, is_bot } = said.author;
    let shown = nickname.filter(|nickname| !nickname.trim().is_empty()).unwrap_or_else(|| name.clone());
    let author = SourceAuthor { id, name: shown, account: Some(name) };
    let role = if is_bot { Role::Assistant } else { Role::Person };
    let at = said.timestamp.and_then(|time| time.moment(&source.zone));
    Found::Message(Box::new(ImportedMessage { id: said.id, chat: Arc::clone(chat), author, role, at, text, position }))
}
