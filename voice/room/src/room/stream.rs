//! A person's stream, and what is known of the utterance in it.

use std::time::Duration;

use azera_types::{PersonId, Text};
use azera_voice_api::Transcript;

use super::RecognitionId;
use crate::endpoint::Endpointer;

/// A person's stream, and what is known of the utterance in it.
pub(super) struct Stream {
    pub(super) person: PersonId,
    pub(super) endpointer: Endpointer,
    /// The earlier parts of an utterance that is too long to be recognised at once.
    pub(super) parts: Vec<Part>,
    /// The recognition of the utterance up to its last pause.
    pub(super) guess: Option<Guess>,
    pub(super) partial: Partial,
    /// The beginning of an utterance for which the bot waited long enough.
    pub(super) talked_over: Option<Duration>,
}

impl Stream {
    /// Takes the recognitions that are no longer wanted once the utterance is over.
    pub(super) fn take_recognitions(&mut self) -> Vec<RecognitionId> {
        let parts = std::mem::take(&mut self.parts).into_iter().filter(|part| part.text.is_none()).map(|part| part.id);
        parts.chain(self.guess.take().map(|guess| guess.id)).chain(std::mem::take(&mut self.partial).id).collect()
    }

    /// Returns the words of the earlier parts of the utterance, as far as they are known.
    pub(super) fn earlier(&self) -> Text {
        let known = self.parts.iter().map_while(|part| part.text.as_deref());
        joined(known)
    }

    /// Returns the words of the earlier parts of the utterance, and `words` behind them; `None` if not all are known.
    pub(super) fn with_earlier(&self, words: &str) -> Option<Text> {
        let earlier = self.parts.iter().map(|part| part.text.as_deref());
        let all: Option<Vec<&str>> = earlier.chain([Some(words)]).collect();
        all.map(|all| joined(all.into_iter()))
    }
}

fn joined<'a>(parts: impl Iterator<Item = &'a str>) -> Text {
    let parts: Vec<&str> = parts.map(str::trim).filter(|words| !words.is_empty()).collect();
    Text::new(parts.join(" "))
}

/// An earlier part of an utterance.
pub(super) struct Part {
    pub(super) id: RecognitionId,
    /// Its words, once they are known; empty if nothing was recognised.
    pub(super) text: Option<Text>,
}

/// What is known of an utterance while it goes on.
#[derive(Default)]
pub(super) struct Partial {
    /// The recognition that is under way.
    pub(super) id: Option<RecognitionId>,
    /// How much speech was recognised, or is being.
    pub(super) voiced: Duration,
    /// True once the bot was told that somebody speaks to it.
    pub(super) is_announced: bool,
}

/// A recognition of an utterance that may go on.
pub(super) struct Guess {
    pub(super) id: RecognitionId,
    /// When the last voiced frame before it was heard.
    pub(super) up_to: Duration,
    /// Its result.
    pub(super) transcript: Option<Option<Transcript>>,
}
