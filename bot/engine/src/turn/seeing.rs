//! Stage *see*: what pictures show becomes part of the message, before it is decided on.
//!
//! As with recordings, only a message that is meant for the persona without its pictures is looked at. What the model says
//! about a picture is a guess, and its line says so.

use azera_memory::MessageRow;
use azera_model_image::SeeError;
use azera_types::{Part, PartKind, Text};

use super::context::{Missed, TurnContext, TurnRequest};
use super::part_bytes::NoBytes;
use crate::error::Error;
use crate::turn::Turns;

/// Most pictures of a message that are looked at.
const MAX_PICTURES: usize = 4;

/// The text of a message that has only pictures which nobody saw.
const PICTURE: &str = "[picture]";

/// Begin the lines that platforms put into a message for its files.
const FILES: [&str; 2] = ["[image: ", "[attached: "];

/// Begins the line about a picture.
const SEEN: &str = "[seen in ";

/// Why a picture was not seen.
enum NotSeen {
    NoViewer,
    TooLarge,
    Gone,
    Failed(SeeError),
}

impl From<NoBytes> for NotSeen {
    fn from(why: NoBytes) -> Self {
        match why {
            NoBytes::TooLarge => Self::TooLarge,
            NoBytes::Gone => Self::Gone,
        }
    }
}

impl Turns {
    /// Looks at the pictures of a message that is to be answered, and stores what they show with it. Returns false if the
    /// message was changed or forgotten meanwhile.
    pub(super) async fn see_pictures(&self, request: &mut TurnRequest, context: &TurnContext) -> Result<bool, Error> {
        let parts = request.message.parts.iter().enumerate();
        let waits = |part: &Part| part.kind == PartKind::Image && !part.is_seen;
        let waiting: Vec<usize> = parts.filter(|(_, part)| waits(part)).map(|(index, _)| index).collect();
        if waiting.is_empty() || self.skip_reason(request, context).await?.is_some() {
            return Ok(true);
        }
        let mut missed = None;
        for index in waiting.into_iter().take(MAX_PICTURES) {
            let seen = self.see_part(request, index).await?;
            let (text, is_seen) = match &seen {
                Ok(words) => (with_description(&request.message, index, words), true),
                Err(_) => (unseen(&request.message, index), false),
            };
            if is_seen || text != request.message.text {
                let Some(message) = self.store_seen(&request.message, index, text, is_seen).await? else {
                    return Ok(false);
                };
                request.message = message;
            }
            if let Err(why) = seen {
                if let NotSeen::Failed(error) = &why {
                    tracing::warn!(message = %request.message.id, %error, "a picture was not seen");
                }
                // Whoever said what it shows need not be asked for that.
                if alt_of(&request.message, index).is_none() {
                    missed.get_or_insert(why);
                }
            }
        }
        if let Some(why) = missed {
            let is_addressed = request.again || self.is_addressed(request, context).await?;
            self.note_unseen(request, &why, is_addressed);
        }
        Ok(true)
    }

    /// Returns what a picture shows.
    async fn see_part(&self, request: &TurnRequest, index: usize) -> Result<Result<String, NotSeen>, Error> {
        let Some(viewer) = self.services.viewer.get() else { return Ok(Err(NotSeen::NoViewer)) };
        let Some(part) = request.message.parts.get(index) else { return Ok(Err(NotSeen::Gone)) };
        if part.bytes > viewer.max_bytes() {
            return Ok(Err(NotSeen::TooLarge));
        }
        let bytes = match self.part_bytes(request, index, viewer.max_bytes()).await? {
            Ok(bytes) => bytes,
            Err(why) => return Ok(Err(why.into())),
        };
        let seen = tokio::select! {
            seen = viewer.describe(bytes) => seen,
            () = self.services.stopping.cancelled() => return Err(Error::Interrupted),
        };
        Ok(seen.map_err(NotSeen::Failed))
    }

    async fn store_seen(
        &self,
        message: &MessageRow,
        index: usize,
        text: Text,
        is_seen: bool,
    ) -> Result<Option<MessageRow>, Error> {
        let (id, version) = (message.id.clone(), message.edited_at);
        self.services.blocking(move |memory| memory.turns().see(&id, version, index, text, is_seen)).await
    }

    /// Notes what the person is told about a picture that was not seen, unless there is something to tell already. Beside
    /// other words, and where the picture is for nobody in particular, it is told once in each chat, until the next start.
    fn note_unseen(&self, request: &mut TurnRequest, why: &NotSeen, is_addressed: bool) {
        let has_alt = (0..request.message.parts.len()).any(|index| alt_of(&request.message, index).is_some());
        let alone = !has_alt && says_nothing_else(&request.message.text);
        if alone && is_addressed || self.progress.tell_unseen(&request.message.chat) {
            request.missed.get_or_insert_with(|| Missed { sentence: sentence(why), alone });
        } else {
            request.is_unseen = alone && request.missed.is_none();
        }
    }
}

/// Returns what the person is told.
fn sentence(why: &NotSeen) -> String {
    let why = match why {
        NotSeen::NoViewer => "I cannot see pictures here, because no vision model is set up.",
        NotSeen::TooLarge => "That picture is too large for me.",
        NotSeen::Gone => "I could not get that picture.",
        NotSeen::Failed(SeeError::Unreadable(_)) => "I cannot read that picture.",
        NotSeen::Failed(SeeError::Unavailable(_) | SeeError::Configuration(_)) => {
            "I cannot look at that picture at the moment."
        }
    };
    format!("{why} Please tell me what it shows.")
}

/// Returns true if a text only notes that there are files.
fn says_nothing_else(text: &str) -> bool {
    let notes = |line: &str| line == PICTURE || FILES.iter().any(|begins| line.starts_with(begins));
    text.lines().map(str::trim).all(|line| line.is_empty() || notes(line))
}

/// Returns the text of a message with the description of one of its pictures.
fn with_description(message: &MessageRow, index: usize, words: &str) -> Text {
    let Some(part) = message.parts.get(index) else { return message.text.clone() };
    with_line(message, &format!("{SEEN}{}, a guess] {}", part.name, words.trim()))
}

/// Returns what the sender of a picture wrote about it. Platforms that put it into the line about the file put it into the
/// part, too.
fn alt_of(message: &MessageRow, index: usize) -> Option<&str> {
    let part = message.parts.get(index).filter(|part| part.kind == PartKind::Image)?;
    part.alt.as_deref().map(str::trim).filter(|alt| !alt.is_empty())
}

/// Returns the text of a message with a picture that nobody saw: what the sender wrote about it, or a note where the
/// message says nothing else.
fn unseen(message: &MessageRow, index: usize) -> Text {
    match alt_of(message, index) {
        Some(alt) if !message.text.contains(alt) => with_line(message, &format!("[picture: {alt}]")),
        _ if message.text.trim().is_empty() => Text::new(PICTURE),
        _ => message.text.clone(),
    }
}

fn with_line(message: &MessageRow, line: &str) -> Text {
    match message.text.trim() {
        "" | PICTURE => Text::new(line),
        text => Text::new(format!("{text}\n{line}")),
    }
}

/// Returns a text without the lines about pictures. Nobody is called in them.
pub(super) fn without_descriptions(text: &str) -> String {
    text.lines().filter(|line| !line.starts_with(SEEN)).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_about_a_file_says_nothing_else() {
        assert!(says_nothing_else(PICTURE) && says_nothing_else("[attached: cat.png (image/png, 12 bytes)]\n"));
        assert!(!says_nothing_else("[image: cat.png, 12 kB]\nmy cat") && !says_nothing_else("[picture: my cat]"));
    }

    #[test]
    fn nobody_is_called_in_a_description() {
        assert_eq!(without_descriptions("look\n[seen in a.png, a guess] Azera, a cat."), "look");
        assert_eq!(without_descriptions("Azera, look"), "Azera, look");
    }
}
