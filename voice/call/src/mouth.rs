//! The replies that are to be said: their sentences, their sound, and how much was heard.

use std::collections::{BTreeMap, VecDeque};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use azera_types::{MessageId, PersonId};
use azera_voice_api::{Manner, Piece, Style};
use azera_voice_room::Script;
use azera_voice_spoken::{CodeNote, Options, Reader, Sentence};
use tokio::sync::mpsc;

use crate::contract::{Engines, Told};

/// How much sound is made ahead of what is played.
const AHEAD: Duration = Duration::from_secs(6);

/// Most replies and notices that wait to be said. An older one is dropped for a newer one, and replies before notices.
const MAX_WAITING: usize = 8;

/// Most replies that were cut and whose text may still come.
const MAX_CUT: usize = 16;

/// How much of a reply was heard.
pub(crate) struct Reach {
    pub(crate) reply: MessageId,
    pub(crate) heard: String,
    pub(crate) is_whole: bool,
    /// True if it was stopped before.
    pub(crate) is_resumed: bool,
    /// True if its text came to nothing. Then nothing counts as heard, and it may be tried again.
    pub(crate) is_broken_off: bool,
}

/// Leaves out what was heard.
impl std::fmt::Debug for Reach {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Reach[{}, {} bytes]", self.reply, self.heard.len())
    }
}

/// A reply, or words that are no reply.
struct Speech {
    reply: Option<MessageId>,
    style: Style,
    reader: Reader,
    script: Script,
    /// The sentences whose sound was asked for; a line of the script each.
    begun: Vec<Sentence>,
    sentences: VecDeque<Sentence>,
    /// True once a piece of it came.
    has_pieces: bool,
    /// The whole text, once it is known; empty if it broke off.
    text: Option<String>,
    has_sound: bool,
    /// True if a sentence of it cannot be said. It ends with the sound that is made.
    has_failed: bool,
    /// True if it was stopped before, and goes on.
    is_resumed: bool,
}

impl Speech {
    fn new(reply: Option<MessageId>, style: Style, options: Options, script: Script) -> Self {
        Self {
            reply,
            style,
            reader: Reader::new(options).eager(),
            script,
            begun: Vec::new(),
            sentences: VecDeque::new(),
            has_pieces: false,
            text: None,
            has_sound: false,
            has_failed: false,
            is_resumed: false,
        }
    }

    fn push(&mut self, text: &str) {
        self.has_pieces = true;
        // A reply that broke off is tried again.
        self.text = None;
        let sentences = self.reader.push(text);
        self.sentences.extend(sentences);
    }

    fn finish(&mut self, text: &str) {
        if self.text.is_none() {
            self.text = Some(text.to_owned());
            self.sentences.extend(self.reader.finish());
        }
    }

    /// Returns how far it reaches, if so much of it was played; `None` if it is no reply.
    fn reach(&self, played: Duration) -> Option<Reach> {
        let (reply, is_resumed, is_broken_off) = (self.reply.clone()?, self.is_resumed, self.is_broken_off());
        let heard = if is_broken_off { String::new() } else { self.script.heard(played).text };
        Some(Reach { reply, heard, is_whole: false, is_resumed, is_broken_off })
    }

    /// Returns true if its text came to nothing. The record does not know it, and it may be tried again.
    fn is_broken_off(&self) -> bool {
        !self.has_failed && self.text.as_deref() == Some("")
    }

    /// Returns the reply of which nothing more is said once this speech is stopped.
    fn reply_to_cut(&self) -> Option<MessageId> {
        self.reply.clone().filter(|_| !self.is_broken_off())
    }
}

/// What is left of a reply that was stopped.
struct Rest {
    reply: MessageId,
    style: Style,
    text: String,
    /// What was heard of it, and as far as whole sentences reach.
    heard: String,
    whole_sentences: String,
    sentences: VecDeque<Sentence>,
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
    /// Replies that came, and for those that go on, who asked for it.
    begun: Vec<(MessageId, Option<PersonId>)>,
    /// Replies that were dropped before they were said.
    dropped: Vec<MessageId>,
    rest: Option<Rest>,
    /// The names of the people in the room, by the last part of their ids, as mentions have it.
    names: BTreeMap<String, String>,
    /// Sound that is played before the next reply begins.
    before_next: Duration,
    number: u64,
    tell: mpsc::UnboundedSender<Told>,
}

impl Mouth {
    pub(crate) fn new(engines: Engines, tell: mpsc::UnboundedSender<Told>) -> Self {
        Self {
            engines,
            speeches: VecDeque::new(),
            making: None,
            cut: VecDeque::new(),
            begun: Vec::new(),
            dropped: Vec::new(),
            rest: None,
            names: BTreeMap::new(),
            before_next: Duration::ZERO,
            number: 0,
            tell,
        }
    }

    /// Speaks in the manner of another persona from the next speech on.
    pub(crate) fn set_engines(&mut self, engines: Engines) {
        self.engines = engines;
    }

    /// Knows somebody's name from now on, for mentions of them.
    pub(crate) fn meet(&mut self, person: &PersonId, name: &str) {
        self.names.insert(mentioned(person), name.to_owned());
    }

    /// Knows the name of somebody who left no longer.
    pub(crate) fn part(&mut self, person: &PersonId) {
        self.names.remove(&mentioned(person));
    }

    /// Returns how a text is read aloud in a style.
    fn options(&self, style: &Style) -> Options {
        Options { names: self.names.clone(), ..self.engines.options_of(style) }
    }

    /// Returns true if nothing more is said of a reply.
    pub(crate) fn is_cut(&self, reply: &MessageId) -> bool {
        self.cut.contains(reply)
    }

    /// Begins a reply that is said in a manner of its own.
    pub(crate) fn begin(&mut self, reply: &MessageId, manner: &Manner) {
        let style = self.engines.style_of(manner);
        let options = self.options(&style);
        if let Some(speech) = self.speech(reply) {
            if !speech.has_pieces {
                speech.reader = Reader::new(options).eager();
            }
            speech.style = style.clone();
            self.engines.load_voice_soon(&style);
        }
    }

    /// Adds a piece of a reply.
    pub(crate) fn piece(&mut self, reply: &MessageId, text: &str) {
        if let Some(speech) = self.speech(reply) {
            speech.push(text);
        }
    }

    /// Drops the sentences of a reply that nobody heard yet.
    pub(crate) fn retracted(&mut self, reply: &MessageId) {
        let at = self.speeches.iter().position(|speech| speech.reply.as_ref() == Some(reply));
        let style = at.and_then(|at| self.speeches.get(at)).map(|speech| speech.style.clone());
        let Some((at, options)) = at.zip(style.map(|style| self.options(&style))) else { return };
        if let Some(speech) = self.speeches.get_mut(at) {
            speech.sentences.clear();
            speech.reader = Reader::new(options).eager();
            speech.has_pieces = false;
        }
    }

    /// Completes a reply. An empty text ends one that broke off.
    pub(crate) fn whole(&mut self, reply: &MessageId, text: &str) {
        if let Some(speech) = self.speech(reply) {
            if !speech.has_pieces && !text.is_empty() {
                speech.push(text);
            }
            speech.finish(text);
        }
    }

    /// Says words that are no reply, in the manner of the conversation unless they have their own.
    pub(crate) fn say(&mut self, text: &str, manner: Option<&Manner>) {
        let style = manner.map_or_else(|| self.engines.style.clone(), |manner| self.engines.style_of(manner));
        self.engines.load_voice_soon(&style);
        let mut options = self.options(&style);
        if options.code == CodeNote::InChat {
            // Such a text stands in no chat.
            options.code = CodeNote::NotRead;
        }
        let mut speech = Speech::new(None, style, options, Script::new(self.take_before_next()));
        speech.push(text);
        speech.finish(text);
        self.make_room();
        self.speeches.push_back(speech);
    }

    /// Drops the oldest reply that waits if too many speeches do, or the oldest notice if no reply waits. A reply can be
    /// read, and nothing repeats a notice.
    fn make_room(&mut self) {
        if self.speeches.len() >= MAX_WAITING {
            let reply = self.speeches.iter().skip(1).position(|speech| speech.reply.is_some());
            let oldest = 1 + reply.unwrap_or(0);
            let dropped = self.speeches.remove(oldest).and_then(|speech| speech.reply);
            self.cut.extend(dropped.clone());
            self.dropped.extend(dropped);
        }
    }

    /// Returns the reply, which is begun if it is new; `None` if it was cut.
    fn speech(&mut self, reply: &MessageId) -> Option<&mut Speech> {
        if self.cut.contains(reply) {
            return None;
        }
        let known = self.speeches.iter().position(|speech| speech.reply.as_ref() == Some(reply));
        let at = known.unwrap_or_else(|| {
            self.rest = None;
            self.begun.push((reply.clone(), None));
            self.make_room();
            let style = self.engines.style.clone();
            let options = self.options(&style);
            let speech = Speech::new(Some(reply.clone()), style, options, Script::new(self.take_before_next()));
            self.speeches.push_back(speech);
            self.speeches.len() - 1
        });
        self.speeches.get_mut(at)
    }

    /// Says nothing of a reply. It counts as dropped before anything of it was said.
    pub(crate) fn refuse(&mut self, reply: &MessageId) {
        if !self.cut.contains(reply) {
            self.cut.push_back(reply.clone());
            self.forget_old_cuts();
            self.begun.push((reply.clone(), None));
            self.dropped.push(reply.clone());
        }
    }

    fn forget_old_cuts(&mut self) {
        let excess = self.cut.len().saturating_sub(MAX_CUT);
        self.cut.drain(..excess);
    }

    fn take_before_next(&mut self) -> Duration {
        std::mem::take(&mut self.before_next)
    }

    /// Returns the replies that came, and for those that go on, who asked for it.
    pub(crate) fn take_begun(&mut self) -> Vec<(MessageId, Option<PersonId>)> {
        std::mem::take(&mut self.begun)
    }

    /// Returns the replies that were dropped before anything of them was said.
    pub(crate) fn take_dropped(&mut self) -> Vec<MessageId> {
        std::mem::take(&mut self.dropped)
    }

    /// Returns true if the next sound is the first one of a speech, or if nothing is to be said.
    pub(crate) fn is_before_first_sound(&self) -> bool {
        self.speeches.front().is_none_or(|speech| !speech.has_sound)
    }

    /// Takes into account that other sound is played before the words of the next speech.
    pub(crate) fn delay(&mut self, sound: Duration) {
        match self.speeches.front_mut() {
            Some(speech) => speech.script.delay(sound),
            None => self.before_next += sound,
        }
    }

    /// Begins to make the sound of the next sentence, unless enough is there. Returns its words, if it has any, and the
    /// reply that it is part of.
    pub(crate) fn go_on(&mut self, ahead: Duration) -> Option<(Option<MessageId>, String)> {
        if self.making.is_some() || ahead >= AHEAD {
            return None;
        }
        let speech = self.speeches.front_mut()?;
        while let Some(sentence) = speech.sentences.pop_front() {
            speech.script.add(format!("{} ", sentence.written), &sentence.spoken);
            speech.begun.push(sentence.clone());
            if sentence.spoken.trim().is_empty() {
                speech.script.is_made();
                continue;
            }
            self.number += 1;
            let is_wanted = Arc::new(AtomicBool::new(true));
            self.making = Some(Making { number: self.number, is_wanted: is_wanted.clone() });
            let (engines, tell, number) = (self.engines.clone(), self.tell.clone(), self.number);
            let (words, style) = (sentence.spoken.clone(), speech.style.clone());
            tokio::spawn(async move {
                let (of, needs_voice) = (tell.clone(), style.needs_voice);
                let made = tokio::task::spawn_blocking(move || {
                    make(&engines, &sentence.spoken, &style, number, &is_wanted, &of);
                });
                // A voice that panics says nothing more, like one that fails.
                if made.await.is_err() {
                    tell.send(Told::Failed { sentence: number, needs_voice }).ok();
                }
            });
            return Some((speech.reply.clone(), words));
        }
        None
    }

    /// Takes in a piece of sound. Returns whether it is the first one of its speech; `None` if nobody waits for it any
    /// more.
    pub(crate) fn made(&mut self, number: u64, piece: &Piece) -> Option<bool> {
        self.making.as_ref().filter(|making| making.number == number)?;
        let speech = self.speeches.front_mut()?;
        speech.script.sound(piece.audio.duration(), piece.audio.loud(), &piece.word_ends);
        Some(!std::mem::replace(&mut speech.has_sound, true))
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

    /// Cuts the present speech where its sound ends, because the voice cannot say its next sentence. Returns false if
    /// nobody waits for that sentence any more.
    pub(crate) fn failed(&mut self, number: u64) -> bool {
        if self.making.as_ref().is_none_or(|making| making.number != number) {
            return false;
        }
        self.making = None;
        if let Some(speech) = self.speeches.front_mut() {
            speech.sentences.clear();
            speech.has_failed = true;
            self.cut.extend(speech.reply.clone());
        }
        self.forget_old_cuts();
        true
    }

    /// Ends the present reply if all of it was made, and played as `is_played` says. Returns whether it ended, and its
    /// reach.
    pub(crate) fn end_present(&mut self, is_played: bool) -> (bool, Option<Reach>) {
        let is_complete = |speech: &Speech| speech.has_failed || speech.text.is_some() && speech.sentences.is_empty();
        if !is_played || self.making.is_some() || !self.speeches.front().is_some_and(is_complete) {
            return (false, None);
        }
        let reach = self.speeches.pop_front().and_then(|speech| {
            let is_broken_off = speech.is_broken_off();
            let is_whole = !speech.has_failed && !is_broken_off;
            // Nothing counts as heard of a reply that broke off, because the record does not know it.
            let heard = match speech.text {
                Some(text) if !speech.has_failed => text,
                _ => speech.script.heard_in_all().text,
            };
            Some(Reach { reply: speech.reply?, heard, is_whole, is_resumed: speech.is_resumed, is_broken_off })
        });
        (true, reach)
    }

    /// Drops what is being said, and keeps what waits. Returns how far its reply reached, if so much of it was played.
    pub(crate) fn cut_present(&mut self, played: Duration) -> Option<Reach> {
        if let Some(making) = self.making.take() {
            making.is_wanted.store(false, Ordering::Release);
        }
        self.before_next = Duration::ZERO;
        let speech = self.speeches.pop_front()?;
        self.cut.extend(speech.reply_to_cut());
        self.forget_old_cuts();
        let reach = speech.reach(played);
        self.rest = rest(speech, played);
        reach
    }

    /// Drops everything that is to be said. Returns how far each reply reached, if so much of the present one was played.
    pub(crate) fn stop(&mut self, played: Duration) -> Vec<Reach> {
        let mut reached: Vec<Reach> = self.cut_present(played).into_iter().collect();
        reached.extend(self.speeches.iter().filter_map(|speech| speech.reach(Duration::ZERO)));
        self.cut.extend(self.speeches.drain(..).filter_map(|speech| speech.reply_to_cut()));
        self.forget_old_cuts();
        reached
    }

    /// Goes on with the reply that was stopped, because this person asked for it. Returns false if there is none, or if
    /// its text was not known to the end.
    pub(crate) fn resume(&mut self, asker: &PersonId) -> bool {
        let Some(Rest { reply, style, text, heard, whole_sentences, sentences }) = self.rest.take() else {
            return false;
        };
        self.cut.retain(|cut| *cut != reply);
        self.begun.push((reply.clone(), Some(asker.clone())));
        let script = Script::resumed(self.take_before_next(), whole_sentences, heard);
        let options = self.options(&style);
        let begun = Speech::new(Some(reply), style, options, script);
        self.speeches.push_back(Speech { sentences, text: Some(text), is_resumed: true, ..begun });
        true
    }

    /// Forgets what is left of the reply that was stopped, so that it cannot go on.
    pub(crate) fn forget_rest(&mut self) {
        self.rest = None;
    }

    /// Returns true if nothing is to be said.
    pub(crate) fn is_silent(&self) -> bool {
        self.speeches.is_empty()
    }
}

/// Returns the part of an id by which a mention names the person.
fn mentioned(person: &PersonId) -> String {
    person.as_str().split_once(':').map_or(person.as_str(), |(_, id)| id).to_owned()
}

/// Returns what is left of a reply, from the sentence on in which it was stopped; `None` if it broke off.
fn rest(speech: Speech, played: Duration) -> Option<Rest> {
    let (reply, style, text) = (speech.reply?, speech.style, speech.text.filter(|text| !text.is_empty())?);
    let heard = speech.script.heard(played);
    let mut sentences: VecDeque<Sentence> = speech.begun.into_iter().skip(heard.sentences).collect();
    sentences.extend(speech.sentences);
    let whole_sentences = speech.script.text_of(heard.sentences);
    (!sentences.is_empty()).then_some(Rest { reply, style, text, heard: heard.text, whole_sentences, sentences })
}

/// Makes the sound of a sentence, on a thread for blocking work.
fn make(
    engines: &Engines,
    sentence: &str,
    style: &Style,
    number: u64,
    is_wanted: &AtomicBool,
    tell: &mpsc::UnboundedSender<Told>,
) {
    let spoken = engines.speaker.speak(sentence, style, &mut |piece| {
        if !is_wanted.load(Ordering::Acquire) || tell.send(Told::Made(number, piece)).is_err() {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    });
    let told = match spoken {
        Ok(()) => Told::SentenceMade(number),
        Err(error) => {
            tracing::error!(%error, "cannot say a sentence");
            Told::Failed { sentence: number, needs_voice: style.needs_voice }
        }
    };
    tell.send(told).ok();
}
