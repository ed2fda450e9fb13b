//! The replies that are to be said: their sentences, their sound, and how much was heard.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use azera_types::MessageId;
use azera_voice_api::Audio;
use azera_voice_room::Script;
use azera_voice_spoken::{Options, Reader, Sentence};
use tokio::sync::mpsc;

use crate::call::Engines;
use crate::session::Inbox;

/// Silence before the first word. Discord's clients swallow the beginning of a sound.
pub(crate) const LEAD: Duration = Duration::from_millis(150);

/// How much sound is made ahead of what is played.
const AHEAD: Duration = Duration::from_secs(6);

/// Most replies that wait to be said. An older one is dropped for a newer one.
const MAX_WAITING: usize = 8;

/// A reply, or words that are no reply.
pub(crate) struct Speech {
    pub(crate) reply: Option<MessageId>,
    reader: Reader,
    pub(crate) script: Script,
    sentences: VecDeque<Sentence>,
    is_text_whole: bool,
    has_sound: bool,
}

impl Speech {
    fn new(reply: Option<MessageId>) -> Self {
        Self {
            reply,
            reader: Reader::new(Options::default()),
            script: Script::new(LEAD),
            sentences: VecDeque::new(),
            is_text_whole: false,
            has_sound: false,
        }
    }

    fn finish(&mut self) {
        if !self.is_text_whole {
            self.is_text_whole = true;
            self.sentences.extend(self.reader.finish());
        }
    }
}

/// A sentence whose sound is being made.
struct Making {
    number: u64,
    is_wanted: Arc<AtomicBool>,
}

/// Says replies in order, sentence by sentence.
pub(crate) struct Mouth {
    engines: Engines,
    speeches: VecDeque<Speech>,
    making: Option<Making>,
    /// Replies that were cut: the rest of their text is not said.
    cut: VecDeque<MessageId>,
    number: u64,
    inbox: mpsc::UnboundedSender<Inbox>,
}

impl Mouth {
    pub(crate) fn new(engines: Engines, inbox: mpsc::UnboundedSender<Inbox>) -> Self {
        Self { engines, speeches: VecDeque::new(), making: None, cut: VecDeque::new(), number: 0, inbox }
    }

    /// Adds a piece of a reply.
    pub(crate) fn piece(&mut self, reply: &MessageId, text: &str) {
        if let Some(speech) = self.speech(reply) {
            let sentences = speech.reader.push(text);
            speech.sentences.extend(sentences);
        }
    }

    /// Drops the sentences of a reply that nobody heard yet.
    pub(crate) fn retracted(&mut self, reply: &MessageId) {
        if let Some(speech) = self.speeches.iter_mut().find(|speech| speech.reply.as_ref() == Some(reply)) {
            speech.sentences.clear();
            speech.reader = Reader::new(Options::default());
        }
    }

    /// Completes a reply.
    pub(crate) fn whole(&mut self, reply: &MessageId, text: &str) {
        let is_new = !self.speeches.iter().any(|speech| speech.reply.as_ref() == Some(reply));
        if let Some(speech) = self.speech(reply) {
            if is_new {
                let sentences = speech.reader.push(text);
                speech.sentences.extend(sentences);
            }
            speech.finish();
        }
    }

    /// Says words that are no reply.
    pub(crate) fn say(&mut self, text: &str) {
        let mut speech = Speech::new(None);
        let sentences = speech.reader.push(text);
        speech.sentences.extend(sentences);
        speech.finish();
        self.speeches.push_back(speech);
    }

    /// Returns the reply, which is begun if it is new; `None` if it was cut.
    fn speech(&mut self, reply: &MessageId) -> Option<&mut Speech> {
        if self.cut.contains(reply) {
            return None;
        }
        let known = self.speeches.iter().position(|speech| speech.reply.as_ref() == Some(reply));
        let at = known.unwrap_or_else(|| {
            if self.speeches.len() >= MAX_WAITING {
                self.speeches.remove(1);
            }
            self.speeches.push_back(Speech::new(Some(reply.clone())));
            self.speeches.len() - 1
        });
        self.speeches.get_mut(at)
    }

    /// Begins to make the sound of the next sentence, unless enough is there. Returns its words, if it has any.
    pub(crate) fn go_on(&mut self, ahead: Duration) -> Option<String> {
        if self.making.is_some() || ahead >= AHEAD {
            return None;
        }
        let speech = self.speeches.front_mut()?;
        while let Some(sentence) = speech.sentences.pop_front() {
            speech.script.add(sentence.written);
            if sentence.spoken.trim().is_empty() {
                speech.script.is_made();
                continue;
            }
            self.number += 1;
            let is_wanted = Arc::new(AtomicBool::new(true));
            self.making = Some(Making { number: self.number, is_wanted: is_wanted.clone() });
            let (engines, inbox, number) = (self.engines.clone(), self.inbox.clone(), self.number);
            let words = sentence.spoken.clone();
            tokio::task::spawn_blocking(move || make(&engines, &sentence.spoken, number, &is_wanted, &inbox));
            return Some(words);
        }
        None
    }

    /// Takes in a piece of sound; `None` if nobody waits for it any more.
    pub(crate) fn made(&mut self, number: u64, mut audio: Audio) -> Option<Audio> {
        self.making.as_ref().filter(|making| making.number == number)?;
        let speech = self.speeches.front_mut()?;
        speech.script.sound(audio.duration());
        if !speech.has_sound {
            speech.has_sound = true;
            let lead = audio.rate.samples(LEAD);
            audio.samples.splice(..0, std::iter::repeat_n(0.0, lead));
        }
        Some(audio)
    }

    /// Records that the sound of a sentence is whole.
    pub(crate) fn sentence_made(&mut self, number: u64) {
        if self.making.as_ref().is_some_and(|making| making.number == number) {
            self.making = None;
            if let Some(speech) = self.speeches.front_mut() {
                speech.script.is_made();
            }
        }
    }

    /// Ends the present reply if all of it was made, and played as `is_played` says. Returns true if it ended.
    pub(crate) fn end_present(&mut self, is_played: bool) -> bool {
        let is_over = self.speeches.front().is_some_and(|speech| speech.is_text_whole && speech.sentences.is_empty());
        let ends = is_over && is_played && self.making.is_none();
        if ends {
            self.speeches.pop_front();
        }
        ends
    }

    /// Drops everything that is to be said, and returns it, the present reply first.
    pub(crate) fn stop(&mut self) -> Vec<Speech> {
        /// Cut replies whose text may still come.
        const REMEMBERED: usize = 16;
        if let Some(making) = self.making.take() {
            making.is_wanted.store(false, Ordering::Release);
        }
        let dropped: Vec<Speech> = self.speeches.drain(..).collect();
        self.cut.extend(dropped.iter().filter_map(|speech| speech.reply.clone()));
        let excess = self.cut.len().saturating_sub(REMEMBERED);
        self.cut.drain(..excess);
        dropped
    }

    /// Returns true if nothing is to be said.
    pub(crate) fn is_silent(&self) -> bool {
        self.speeches.is_empty()
    }
}

/// Makes the sound of a sentence, on a thread for blocking work.
fn make(engines: &Engines, sentence: &str, number: u64, is_wanted: &AtomicBool, inbox: &mpsc::UnboundedSender<Inbox>) {
    let spoken = engines.speaker.speak(sentence, &engines.style, &mut |audio| {
        if !is_wanted.load(Ordering::Acquire) || inbox.send(Inbox::Made(number, audio)).is_err() {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    });
    if let Err(error) = spoken {
        tracing::error!(%error, "cannot say a sentence");
    }
    inbox.send(Inbox::SentenceMade(number)).ok();
}
