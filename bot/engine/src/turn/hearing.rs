//! Stage *hear*: the words of recordings become part of the message, before it is decided on.
//!
//! Only a message that is meant for the persona without its recordings is heard: in a direct message, by a mention, a
//! reply or its name in the caption, or where the persona answers everything. Nobody listens to what people say to each
//! other.

use azera_memory::MessageRow;
use azera_types::{Part, Text};
use azera_voice_api::HearError;

use super::context::{Missed, TurnContext, TurnRequest};
use super::part_bytes::NoBytes;
use crate::error::Error;
use crate::turn::Turns;

/// The text of a voice message until it is heard.
const VOICE_MESSAGE: &str = "[voice message]";

/// Marks the words of a voice message.
const SAID_ALOUD: &str = "[said aloud]";

/// Marks the words of another recording, before its name.
const HEARD_IN: &str = "[heard in ";

/// Why a recording was not heard.
enum NotHeard {
    NoListener,
    TooLarge,
    Gone,
    Failed(HearError),
}

impl From<NoBytes> for NotHeard {
    fn from(why: NoBytes) -> Self {
        match why {
            NoBytes::TooLarge => Self::TooLarge,
            NoBytes::Gone => Self::Gone,
        }
    }
}

impl Turns {
    /// Hears the recordings of a message that is to be answered, and stores their words with it. Returns false if the
    /// message was changed or forgotten meanwhile.
    pub(super) async fn hear_recordings(
        &self,
        request: &mut TurnRequest,
        context: &TurnContext,
    ) -> Result<bool, Error> {
        let parts = request.message.parts.iter().enumerate();
        let waits = |part: &Part| part.recording.is_some_and(|recording| !recording.is_heard);
        let waiting: Vec<usize> = parts.filter(|(_, part)| waits(part)).map(|(index, _)| index).collect();
        if waiting.is_empty() || self.skip_reason(request, context).await?.is_some() {
            return Ok(true);
        }
        for index in waiting {
            match self.hear_part(request, context, index).await? {
                Ok(words) => {
                    let Some(message) = self.store_words(&request.message, index, &words).await? else {
                        return Ok(false);
                    };
                    request.message = message;
                }
                Err(why) => note_unheard(request, index, why),
            }
        }
        Ok(true)
    }

    /// Returns the words of a recording, which may be none.
    async fn hear_part(
        &self,
        request: &TurnRequest,
        context: &TurnContext,
        index: usize,
    ) -> Result<Result<Text, NotHeard>, Error> {
        let message = &request.message;
        let Some(listener) = self.services.voice().listener else { return Ok(Err(NotHeard::NoListener)) };
        let Some(part) = message.parts.get(index) else { return Ok(Err(NotHeard::Gone)) };
        if part.bytes > listener.max_bytes() {
            return Ok(Err(NotHeard::TooLarge));
        }
        let bytes = match self.part_bytes(request.platform.as_ref(), message, index, listener.max_bytes()).await? {
            Ok(bytes) => bytes,
            Err(why) => return Ok(Err(why.into())),
        };
        // People probably speak the language of the persona.
        let language = context.persona.voice.language.as_deref();
        let heard = tokio::select! {
            heard = listener.hear(bytes, &part.mime, language) => heard,
            () = self.services.stopping.cancelled() => return Err(Error::Interrupted),
        };
        Ok(heard.map(|heard| heard.text).map_err(NotHeard::Failed))
    }

    async fn store_words(&self, message: &MessageRow, index: usize, words: &Text) -> Result<Option<MessageRow>, Error> {
        let text = with_words(message, index, words);
        let (id, version) = (message.id.clone(), message.edited_at);
        self.services.blocking(move |memory| memory.turns().hear(&id, version, index, text)).await
    }
}

/// What the person is told that a voice message is.
const VOICE: &str = "voice message";

/// Notes what the person is told about a recording that was not heard, unless there is something to tell already.
fn note_unheard(request: &mut TurnRequest, index: usize, why: NotHeard) {
    let message = &request.message;
    let is_voice_message = message.parts.get(index).is_some_and(Part::is_voice_message);
    // Nobody expects that a song beside a text is listened to where nothing is.
    if matches!(why, NotHeard::NoListener) && !is_voice_message {
        return;
    }
    if let NotHeard::Failed(error) = &why {
        tracing::warn!(message = %message.id, %error, "a recording was not heard");
    }
    let what = if is_voice_message { VOICE } else { "recording" };
    let alone = message.text.trim() == VOICE_MESSAGE;
    request.missed.get_or_insert_with(|| Missed { sentence: sentence(what, &why), alone });
}

/// Returns what the person is told.
fn sentence(what: &str, why: &NotHeard) -> String {
    match why {
        NotHeard::NoListener => {
            format!("I cannot listen to {what}s here, because no speech model is set up. Please write to me instead.")
        }
        NotHeard::TooLarge => format!("That {what} is too large for me. Please send a shorter one, or write."),
        NotHeard::Gone => format!("I could not get that {what}. Please send it again, or write."),
        NotHeard::Failed(HearError::TooLong { most_seconds }) => format!(
            "That {what} is longer than the {most_seconds} seconds that I listen to. Please send a shorter one, or write."
        ),
        // A voice message has the form that its platform makes.
        NotHeard::Failed(HearError::Unreadable(_)) if what == VOICE => {
            format!("I cannot read the sound of that {what}. Please send it again, or write.")
        }
        NotHeard::Failed(HearError::Unreadable(_)) => format!(
            "I cannot read the sound of that {what}. I read WAV, MP3, FLAC and Ogg (Opus or Vorbis), but neither M4A, MP4 \
             nor WebM. Please send it in another form, or write."
        ),
        NotHeard::Failed(HearError::Busy) => {
            format!("Too many {what}s wait at the moment. Please send it again in a while, or write.")
        }
        NotHeard::Failed(HearError::Unavailable(_)) => {
            format!("I cannot listen to that {what} at the moment. Please write to me instead.")
        }
    }
}

/// Returns the text that a message has until its recordings are heard: its own, or a note if it has none.
pub(super) fn until_heard<'a>(text: Text, parts: impl IntoIterator<Item = &'a Part>) -> Text {
    let is_alone = text.trim().is_empty() && parts.into_iter().any(Part::is_voice_message);
    if is_alone { Text::new(VOICE_MESSAGE) } else { text }
}

/// Returns the text of a message with the words of one of its recordings.
fn with_words(message: &MessageRow, index: usize, words: &Text) -> Text {
    let (text, words) = (message.text.trim(), words.trim());
    let Some(part) = message.parts.get(index).filter(|_| !words.is_empty()) else { return message.text.clone() };
    let line = match part.is_voice_message() {
        true => format!("{SAID_ALOUD} {words}"),
        false => format!("{HEARD_IN}{}] {words}", part.name),
    };
    match text {
        "" | VOICE_MESSAGE => Text::new(line),
        text => Text::new(format!("{text}\n{line}")),
    }
}

/// Returns a text as if its spoken words had been written.
pub(crate) fn as_written(text: &str) -> String {
    let lines = text.lines().map(|line| line.strip_prefix(SAID_ALOUD).map_or(line, str::trim_start));
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns the words of a message that was said aloud, as if they had been written; `None` for another message, and for one
/// that was not heard.
pub(crate) fn spoken_words(message: &MessageRow) -> Option<Text> {
    let is_heard = message.text.trim() != VOICE_MESSAGE;
    let is_spoken = message.parts.iter().any(Part::is_voice_message);
    (is_heard && is_spoken).then(|| Text::new(as_written(&message.text)))
}

/// Returns what was heard in the recordings of a message, which may be nothing; `None` if none of them was heard.
pub(crate) fn heard_words(message: &MessageRow) -> Option<String> {
    let is_heard = |part: &&Part| part.recording.is_some_and(|recording| recording.is_heard);
    let heard = message.parts.iter().filter(is_heard).count();
    if heard == 0 {
        return None;
    }
    // Each recording has a line behind what was written. People may write such a line themselves.
    let mut lines: Vec<&str> = message.text.lines().rev().filter_map(words_of_line).take(heard).collect();
    lines.reverse();
    Some(lines.join("\n"))
}

/// Returns the words of a line about a recording.
fn words_of_line(line: &str) -> Option<&str> {
    let heard_in = || line.strip_prefix(HEARD_IN).and_then(|rest| rest.split_once(']')).map(|(_, words)| words);
    line.strip_prefix(SAID_ALOUD).or_else(heard_in).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_without_words_of_its_own_is_a_voice_message() {
        let spoken = Part::new("voice-message.ogg", Some("audio/ogg"), 9).spoken(None);
        let song = Part::new("song.mp3", Some("audio/mpeg"), 9);
        assert_eq!(&*until_heard(Text::new(" "), [&spoken]), VOICE_MESSAGE);
        assert_eq!(&*until_heard(Text::new("look"), [&spoken]), "look");
        assert_eq!(&*until_heard(Text::new(""), [&song]), "");
    }

    #[test]
    fn only_lines_about_recordings_tell_what_was_heard() {
        let words = |line| words_of_line(line);
        assert_eq!(words("[said aloud] hello there"), Some("hello there"));
        assert_eq!(words("[heard in song.mp3] la la"), Some("la la"));
        assert_eq!(words("[seen in cat.png, a guess] A cat."), None);
        assert_eq!(words("look at this"), None);
    }

    #[test]
    fn spoken_words_call_like_written_ones() {
        assert_eq!(as_written("[said aloud] Azera, are you up?"), "Azera, are you up?");
        assert_eq!(as_written("look\n[said aloud] here"), "look\nhere");
        assert_eq!(as_written("it [said aloud] no"), "it [said aloud] no");
    }
}
