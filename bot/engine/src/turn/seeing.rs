//! Stage *see*: what pictures show becomes part of the message, before it is decided on.
//!
//! As with recordings, only a message that is meant for the persona without its pictures is looked at, with the message that
//! it replies to. What the model says about a picture is a guess, and its line says so.

use azera_memory::MessageRow;
use azera_model_image::SeeError;
use azera_types::{Part, PartKind, Text};

use super::context::{Missed, TurnContext, TurnRequest};
use super::part_bytes::NoBytes;
use crate::error::Error;
use crate::turn::Turns;

/// Most pictures of a message that are looked at.
const MAX_PICTURES: usize = 4;

/// The most characters of the message that is replied to in a prompt.
const MAX_REPLIED_CHARS: usize = 1_200;

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

/// A message whose pictures were looked at.
struct Looked {
    message: MessageRow,
    /// How many were looked at.
    count: usize,
    /// Why one was not seen that its sender did not describe either.
    missed: Option<NotSeen>,
}

impl Turns {
    /// Looks at the pictures of a message that is to be answered, and at those of the message that it replies to. Stores
    /// what they show, each with its own message. Returns false if one of the two was changed or forgotten meanwhile.
    pub(super) async fn see_pictures(&self, request: &mut TurnRequest, context: &TurnContext) -> Result<bool, Error> {
        let replied = self.replied_with_pictures(request, context).await?;
        let is_shown = request.message.parts.iter().any(is_picture);
        if !is_shown && replied.is_none() || self.skip_reason(request, context).await?.is_some() {
            return Ok(true);
        }
        let Some(own) = self.look_at(request, None, MAX_PICTURES).await? else { return Ok(false) };
        let most = MAX_PICTURES.saturating_sub(own.count);
        request.message = own.message;
        if let Some(why) = own.missed {
            let is_addressed = request.again || self.is_addressed(request, context).await?;
            self.note_unseen(request, &why, is_addressed);
        }
        let Some(replied) = replied else { return Ok(true) };
        let Some(replied) = self.look_at(request, Some((replied, context)), most).await? else { return Ok(false) };
        if let Some(why) = replied.missed {
            let is_addressed = request.again || self.is_addressed(request, context).await?;
            let has_words = has_words(&request.message.text, &context.persona.name);
            self.note_unseen_before(request, &replied.message, &why, is_addressed && !has_words);
        }
        request.replied = Some(replied.message);
        Ok(true)
    }

    /// Returns the message with pictures that a message replies to, if it may be read there.
    async fn replied_with_pictures(
        &self,
        request: &TurnRequest,
        context: &TurnContext,
    ) -> Result<Option<MessageRow>, Error> {
        let Some(replied) = request.message.reply_to.clone() else { return Ok(None) };
        let read_scope = context.read_scope.clone();
        let found = self.services.blocking(move |memory| memory.messages().get(&read_scope, &replied)).await?;
        Ok(found.filter(|replied| replied.parts.iter().any(is_picture)))
    }

    /// Looks at the pictures of a message that nobody saw, at most at so many: of the request's own, or of the one that it
    /// replies to. Returns `None` if the message was changed or forgotten meanwhile.
    async fn look_at(
        &self,
        request: &TurnRequest,
        replied: Option<(MessageRow, &TurnContext)>,
        most: usize,
    ) -> Result<Option<Looked>, Error> {
        let (message, context) = match replied {
            Some((message, context)) => (message, Some(context)),
            None => (request.message.clone(), None),
        };
        let mut looked = Looked { message, count: 0, missed: None };
        // What a persona drew is described by the words that it was drawn from.
        if looked.message.author.person().is_none() {
            return Ok(Some(looked));
        }
        let parts = looked.message.parts.iter().enumerate();
        let waiting: Vec<usize> =
            parts.filter(|(_, part)| is_picture(part) && !part.is_seen).map(|(index, _)| index).collect();
        for index in waiting.into_iter().take(most) {
            looked.count += 1;
            if is_seen_in(&looked.message, index) {
                continue;
            }
            let seen = self.see_part(request, &looked.message, context, index).await?;
            let (text, is_seen) = match &seen {
                Ok(words) => (with_description(&looked.message, index, words), true),
                Err(_) => (unseen(&looked.message, index), false),
            };
            if is_seen || text != looked.message.text {
                let stored = match self.store_seen(&looked.message, index, text, is_seen).await? {
                    None => self.seen_meanwhile(&looked.message, context, index).await?,
                    stored => stored,
                };
                let Some(message) = stored else { return Ok(None) };
                looked.message = message;
            }
            if let Err(why) = seen
                && !is_seen_in(&looked.message, index)
            {
                if let NotSeen::Failed(error) = &why {
                    tracing::warn!(message = %looked.message.id, %error, "a picture was not seen");
                }
                // Whoever said what it shows need not be asked for that.
                if alt_of(&looked.message, index).is_none() {
                    looked.missed.get_or_insert(why);
                }
            }
        }
        Ok(Some(looked))
    }

    /// Returns what a picture of a message shows. With a context, the message is another than the request's own: its
    /// bytes are read through it.
    async fn see_part(
        &self,
        request: &TurnRequest,
        message: &MessageRow,
        context: Option<&TurnContext>,
        index: usize,
    ) -> Result<Result<String, NotSeen>, Error> {
        let Some(viewer) = self.services.viewer.get() else { return Ok(Err(NotSeen::NoViewer)) };
        let Some(part) = message.parts.get(index) else { return Ok(Err(NotSeen::Gone)) };
        if part.bytes > viewer.max_bytes() {
            return Ok(Err(NotSeen::TooLarge));
        }
        let kept = match context {
            Some(context) => self.kept_bytes(message, context, index).await?,
            None => None,
        };
        let bytes = match kept {
            Some(kept) => kept,
            None => match self.part_bytes(request.platform.as_ref(), message, index, viewer.max_bytes()).await? {
                Ok(bytes) => bytes,
                Err(why) => return Ok(Err(why.into())),
            },
        };
        let seen = tokio::select! {
            seen = viewer.describe(bytes) => seen,
            () = self.services.stopping.cancelled() => return Err(Error::Interrupted),
        };
        Ok(seen.map_err(NotSeen::Failed))
    }

    /// Returns the kept bytes of a picture of an earlier message, if that may be read here.
    async fn kept_bytes(
        &self,
        message: &MessageRow,
        context: &TurnContext,
        index: usize,
    ) -> Result<Option<Vec<u8>>, Error> {
        // Somebody may ask about a picture that was sent just now.
        self.files.arrived(&message.id).await;
        let (read_scope, id) = (context.read_scope.clone(), message.id.clone());
        self.services.blocking(move |memory| memory.pictures().file_at(&read_scope, &id, index)).await
    }

    /// Returns a message as it is now, if another turn saw this picture of it meanwhile; `None` if the message was changed
    /// or forgotten.
    async fn seen_meanwhile(
        &self,
        message: &MessageRow,
        context: Option<&TurnContext>,
        index: usize,
    ) -> Result<Option<MessageRow>, Error> {
        let (read_scope, id) = (context.map(|context| context.read_scope.clone()), message.id.clone());
        let found = self.services.blocking(move |memory| match read_scope {
            Some(read_scope) => memory.messages().get(&read_scope, &id),
            None => memory.turns().open(&id),
        });
        Ok(found.await?.filter(|found| found.edited_at == message.edited_at && is_seen_in(found, index)))
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

    /// Notes the same about a picture of the message that is replied to. If that is nothing but pictures, and the reply only
    /// calls the persona, there is nothing to answer. The words of a reply are answered.
    fn note_unseen_before(&self, request: &mut TurnRequest, replied: &MessageRow, why: &NotSeen, only_calls: bool) {
        let alone = only_calls && says_nothing_else(&replied.text);
        if alone || self.progress.tell_unseen(&request.message.chat) {
            request.missed.get_or_insert_with(|| Missed { sentence: sentence(why), alone });
        }
    }
}

/// Returns true if a part is a picture.
fn is_picture(part: &Part) -> bool {
    part.kind == PartKind::Image
}

/// Returns true if a part of a message is a picture that was seen.
fn is_seen_in(message: &MessageRow, index: usize) -> bool {
    message.parts.get(index).is_some_and(|part| part.is_seen)
}

/// Returns what a person said as a prompt shows it, if it replies to a message with pictures: with what that says and shows.
pub(super) fn about(said: &str, replied: &MessageRow, by: Option<&str>) -> String {
    let shown = replied.text.split_whitespace().collect::<Vec<_>>().join(" ");
    let shown: String = shown.chars().take(MAX_REPLIED_CHARS).collect();
    let is_unseen = replied.author.person().is_some()
        && (0..replied.parts.len()).any(|index| {
            let part = replied.parts.get(index).filter(|part| is_picture(part) && !part.is_seen);
            part.is_some() && alt_of(replied, index).is_none()
        });
    let unseen = if is_unseen { "; a picture of it that you did not see" } else { "" };
    let by = by.map(|by| format!(" of {by}")).unwrap_or_default();
    format!("{said}\n[this replies to a message{by}: {shown}{unseen}]")
}

/// Returns what the person is told.
fn sentence(why: &NotSeen) -> String {
    let why = match why {
        NotSeen::NoViewer => "I cannot see pictures here, because no vision model is set up.",
        NotSeen::TooLarge => "That picture is too large for me.",
        NotSeen::Gone => "I could not get that picture.",
        NotSeen::Failed(SeeError::Unreadable(_)) => "I cannot read that picture.",
        NotSeen::Failed(SeeError::Unavailable(_) | SeeError::Unclear(_) | SeeError::Configuration(_)) => {
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

/// Returns true if a reply says more than whom it calls: who is mentioned, and the persona's name, are no words of it.
fn has_words(text: &str, name: &str) -> bool {
    let lines = text.lines().map(str::trim).filter(|line| !says_nothing_else(line));
    let is_word = |word: &str| !word.is_empty() && word.to_lowercase() != name.to_lowercase();
    let mut words =
        lines.flat_map(str::split_whitespace).filter(|word| !word.starts_with('@') && !word.starts_with("<@"));
    words.any(|word| is_word(word.trim_matches(|c: char| c.is_ascii_punctuation())))
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
    fn a_reply_that_only_calls_the_persona_has_no_words() {
        for text in ["", "@Azera", "azera?", "<@123> ?", PICTURE, "@Azera\n[image: cat.png, 12 kB]"] {
            assert!(!has_words(text, "Azera"), "{text}");
        }
        for text in ["@Azera it's my cat Miso", "@Azera remind me", "wow", "❤"] {
            assert!(has_words(text, "Azera"), "{text}");
        }
    }

    #[test]
    fn nobody_is_called_in_a_description() {
        assert_eq!(without_descriptions("look\n[seen in a.png, a guess] Azera, a cat."), "look");
        assert_eq!(without_descriptions("Azera, look"), "Azera, look");
    }
}
