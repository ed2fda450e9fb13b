//! What becomes of the sound of one stream: recognition at pauses, and the end of an utterance.

use std::time::Duration;

use azera_types::{PersonId, Text};
use azera_voice_api::{FRAME_SAMPLES, Transcript};

use super::stream::{Guess, Part, Partial, Stream};
use super::{Action, Expected, RecognitionId, Room, Said, StreamId, Voice};
use crate::endpoint::{Endpointer, Utterance};
use crate::words;

/// How long after their last sound somebody still counts as speaking, for the turns of others.
const SPEAKS: Duration = Duration::from_millis(200);

/// How long after the bot fell silent its own words may begin to come back: the sound goes to a person and returns.
const ECHO_BEGINS: Duration = Duration::from_millis(600);

/// How long after the bot fell silent its own words may still come back.
pub(super) const ECHO: Duration = Duration::from_millis(1_500);

/// The most parts of one utterance that are recognised one by one: about four minutes. What follows is another utterance.
const MOST_PARTS: usize = 10;

/// How long after a reply was stopped it can go on.
const GO_ON: Duration = Duration::from_secs(120);

impl Room {
    pub(super) fn frame(
        &mut self,
        at: Duration,
        id: StreamId,
        person: PersonId,
        samples: &[f32; FRAME_SAMPLES],
        probability: f32,
        actions: &mut Vec<Action>,
    ) {
        if self.gate.decision(&person) != Some(true) || !self.present.contains_key(&person) {
            return;
        }
        let stream = self.streams.entry(id).or_insert_with(|| Stream {
            person: person.clone(),
            endpointer: Endpointer::default(),
            parts: Vec::new(),
            guess: None,
            partial: Partial::default(),
            talked_over: None,
        });
        // A stream belongs to the person who began it.
        if stream.person != person {
            return;
        }
        // Recognition is minutes behind: nothing can be added.
        let is_over =
            stream.parts.len() >= MOST_PARTS && stream.endpointer.utterance.as_ref().is_some_and(Utterance::is_full);
        if is_over || !stream.endpointer.frame(at, samples, probability) {
            return;
        }
        // The utterance goes on, so what was recognised of it is not all.
        actions.extend(stream.guess.take().map(|guess| Action::Cancel(guess.id)));
        self.give_way(at, id, actions);
    }

    pub(super) fn recognised(
        &mut self,
        at: Duration,
        id: RecognitionId,
        transcript: Option<Transcript>,
        actions: &mut Vec<Action>,
    ) {
        let is_of = |stream: &Stream| {
            stream.partial.id == Some(id)
                || stream.guess.as_ref().is_some_and(|guess| guess.id == id)
                || stream.parts.iter().any(|part| part.id == id)
        };
        let Some(stream) = self.streams.values_mut().find(|stream| is_of(stream)) else { return };
        let text = transcript.as_ref().map(|transcript| transcript.text.clone()).unwrap_or_default();
        if let Some(part) = stream.parts.iter_mut().find(|part| part.id == id) {
            part.text = Some(text);
            return;
        }
        let person = stream.person.clone();
        if stream.partial.id == Some(id) {
            stream.partial.id = None;
        } else if let Some(guess) = &mut stream.guess {
            guess.transcript = Some(transcript);
        }
        let said = stream.with_earlier(&text).filter(|_| !text.trim().is_empty());
        self.expect(at, &person, said.unwrap_or_default(), actions);
    }

    /// Says what a person seems to be saying, if it is for the bot.
    fn expect(&self, at: Duration, person: &PersonId, text: Text, actions: &mut Vec<Action>) {
        let is_said = !text.trim().is_empty();
        if is_said && self.voice == Voice::Silent && self.is_for_bot(person, &text, at) {
            let name = self.present.get(person).cloned().unwrap_or_default();
            actions.push(Action::Expect(Expected { person: person.clone(), name, text }));
        }
    }

    /// Returns true if the bot answers nobody: it was asked to be quiet, or nobody can hear it.
    fn is_quiet(&self) -> bool {
        self.is_muted || self.is_silenced
    }

    fn is_for_bot(&self, person: &PersonId, text: &str, at: Duration) -> bool {
        let Self { settings, present, .. } = self;
        self.conversation.is_for_bot(person, text, &settings.names, present, at, settings.attention)
    }

    /// Begins recognitions at pauses, and ends utterances.
    pub(super) fn end_utterances(&mut self, at: Duration, actions: &mut Vec<Action>) {
        let ids: Vec<StreamId> = self.streams.keys().copied().collect();
        for id in ids {
            match self.next_step(at, id) {
                Step::Wait => {}
                Step::Announce => self.announce(id, actions),
                Step::Partial => self.recognise_partial(id, actions),
                Step::Drop => {
                    if let Some(stream) = self.streams.get_mut(&id) {
                        stream.endpointer.end();
                        actions.extend(stream.take_recognitions().into_iter().map(Action::Cancel));
                    }
                    self.resume(at, id, actions);
                }
                Step::Part => self.recognise_part(id, actions),
                Step::Flush => self.flush(at, id, actions),
                Step::Recognise => self.recognise(id, actions),
                Step::End(words) => {
                    self.end_before(at, id, &words, actions);
                    self.end(at, id, words, actions);
                }
            }
        }
    }

    fn next_step(&self, at: Duration, id: StreamId) -> Step {
        let Some(stream) = self.streams.get(&id) else { return Step::Wait };
        let Some(utterance) = &stream.endpointer.utterance else { return Step::Wait };
        // What was recognised up to a pause holds all words so far.
        if utterance.is_full() && stream.guess.is_none() {
            let is_known = stream.parts.iter().all(|part| part.text.is_some());
            return match stream.parts.len() < MOST_PARTS {
                true => Step::Part,
                false if is_known => Step::Flush,
                false => Step::Wait,
            };
        }
        let silence = at.saturating_sub(utterance.last_voiced);
        let is_paused = silence >= self.settings.pause;
        match &stream.guess {
            _ if !is_paused => self.step_while_speaking(stream, utterance),
            None if utterance.is_too_short() => Step::Drop,
            None => Step::Recognise,
            Some(Guess { transcript: None, .. }) => Step::Wait,
            Some(Guess { transcript: Some(transcript), .. }) => {
                let last = transcript.as_ref().map(|transcript| transcript.text.as_str()).unwrap_or_default();
                let Some(words) = stream.with_earlier(last) else { return Step::Wait };
                if words.is_empty() {
                    Step::Drop
                } else if silence >= self.silence_after(at, id, &words) {
                    Step::End(words)
                } else {
                    Step::Wait
                }
            }
        }
    }

    /// Recognises the first part of an utterance that is too long to be recognised at once.
    fn recognise_part(&mut self, id: StreamId, actions: &mut Vec<Action>) {
        let recognition = self.next_recognition();
        let Some(stream) = self.streams.get_mut(&id) else { return };
        let Some(utterance) = &mut stream.endpointer.utterance else { return };
        let audio = utterance.take_first_part();
        stream.partial.voiced = utterance.voiced;
        // It is of sound that is no longer in one piece.
        actions.extend(stream.partial.id.take().map(Action::Cancel));
        stream.parts.push(Part { id: recognition, text: None });
        actions.push(Action::Recognise(recognition, audio));
    }

    /// Ends an utterance of minutes with its earlier parts. The rest is another one.
    fn flush(&mut self, at: Duration, id: StreamId, actions: &mut Vec<Action>) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        actions.extend(stream.partial.id.take().map(Action::Cancel));
        let rest = stream.endpointer.utterance.as_mut().map(Utterance::take_rest);
        let words = stream.earlier();
        if words.is_empty() {
            stream.parts.clear();
        } else {
            self.end(at, id, words, actions);
        }
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.endpointer.utterance = rest;
        }
    }

    /// Ends an utterance with all that is known of it, because its person leaves or the call ends. Counts it if not all is
    /// known.
    pub(super) fn end_understood(&mut self, at: Duration, id: StreamId, actions: &mut Vec<Action>) {
        match self.understood(id) {
            Understood::Nothing => self.end_with_earlier(at, id, actions),
            Understood::Unknown => {
                self.lost += 1;
                self.end_with_earlier(at, id, actions);
            }
            Understood::Words(words) => self.end(at, id, words, actions),
        }
    }

    /// Ends an utterance with its earlier parts, as far as they are known, although the rest is not.
    fn end_with_earlier(&mut self, at: Duration, id: StreamId, actions: &mut Vec<Action>) {
        let words = self.streams.get(&id).map(Stream::earlier).unwrap_or_default();
        if !words.is_empty() {
            self.end(at, id, words, actions);
        }
    }

    /// Returns what is known of the utterance in a stream.
    fn understood(&self, id: StreamId) -> Understood {
        let Some(stream) = self.streams.get(&id) else { return Understood::Nothing };
        let Some(utterance) = &stream.endpointer.utterance else { return Understood::Nothing };
        let Some(last) = stream.guess.as_ref().and_then(|guess| guess.transcript.as_ref()) else {
            return if utterance.is_too_short() { Understood::Nothing } else { Understood::Unknown };
        };
        let last = last.as_ref().map(|transcript| transcript.text.as_str()).unwrap_or_default();
        match stream.with_earlier(last) {
            Some(words) if words.is_empty() => Understood::Nothing,
            Some(words) => Understood::Words(words),
            None => Understood::Unknown,
        }
    }

    /// Returns how much silence ends an utterance with these words. While somebody else speaks, a pause may be there for
    /// them, and nobody waits for an answer.
    fn silence_after(&self, at: Duration, id: StreamId, text: &str) -> Duration {
        let speaks = |said: &Utterance| !said.is_too_short() && at.saturating_sub(said.last_voiced) <= SPEAKS;
        let others = self.streams.iter().filter(|(other, _)| **other != id);
        if others.filter_map(|(_, stream)| stream.endpointer.utterance.as_ref()).any(speaks) {
            return self.settings.end_silence;
        }
        match (words::seems_whole(text), words::is_question(text)) {
            (false, _) => self.settings.end_silence,
            (true, false) => self.settings.whole_silence,
            (true, true) => self.settings.question_silence,
        }
    }

    /// Somebody says something to the bot. Whoever paused before them gave up their turn, and is heard first.
    fn end_before(&mut self, at: Duration, id: StreamId, text: &str, actions: &mut Vec<Action>) {
        let began = |stream: &Stream| stream.endpointer.utterance.as_ref().map(|said| said.began);
        let Some((stream, since)) = self.streams.get(&id).and_then(|stream| Some((stream, began(stream)?))) else {
            return;
        };
        if !self.is_for_bot(&stream.person, text, since) {
            return;
        }
        let earlier = self.streams.iter().filter(|(_, other)| began(other).is_some_and(|other| other < since));
        let earlier: Vec<StreamId> = earlier.map(|(id, _)| *id).collect();
        for id in earlier {
            if let Understood::Words(words) = self.understood(id) {
                self.end(at, id, words, actions);
            }
        }
    }

    /// Nothing is prepared for people who talk with others, or while the bot speaks.
    fn step_while_speaking(&self, stream: &Stream, utterance: &Utterance) -> Step {
        let attention = self.settings.attention;
        let may = self.conversation.may_be_for_bot(&stream.person, &self.present, utterance.began, attention);
        if !may || self.voice != Voice::Silent || self.is_quiet() || utterance.voiced < self.settings.barge_in {
            return Step::Wait;
        }
        let Partial { id, voiced, is_announced } = &stream.partial;
        if !is_announced {
            return Step::Announce;
        }
        let is_due = utterance.voiced.saturating_sub(*voiced) >= self.settings.partial;
        if is_due && id.is_none() { Step::Partial } else { Step::Wait }
    }

    fn announce(&mut self, id: StreamId, actions: &mut Vec<Action>) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        stream.partial.is_announced = true;
        let person = stream.person.clone();
        let name = self.present.get(&person).cloned().unwrap_or_default();
        actions.push(Action::Expect(Expected { person, name, text: Text::default() }));
    }

    fn recognise_partial(&mut self, id: StreamId, actions: &mut Vec<Action>) {
        let recognition = self.next_recognition();
        let Some(stream) = self.streams.get_mut(&id) else { return };
        let Some(utterance) = &stream.endpointer.utterance else { return };
        stream.partial.id = Some(recognition);
        stream.partial.voiced = utterance.voiced;
        actions.push(Action::Recognise(recognition, utterance.audio()));
    }

    fn recognise(&mut self, id: StreamId, actions: &mut Vec<Action>) {
        let recognition = self.next_recognition();
        let Some(stream) = self.streams.get_mut(&id) else { return };
        let Some(utterance) = &stream.endpointer.utterance else { return };
        // Somebody waits for this one.
        actions.extend(stream.partial.id.take().map(Action::Cancel));
        stream.guess = Some(Guess { id: recognition, up_to: utterance.last_voiced, transcript: None });
        actions.push(Action::Recognise(recognition, utterance.audio()));
    }

    fn next_recognition(&mut self) -> RecognitionId {
        self.recognitions += 1;
        RecognitionId(self.recognitions)
    }

    fn end(&mut self, at: Duration, id: StreamId, text: Text, actions: &mut Vec<Action>) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        let Some(utterance) = stream.endpointer.end() else { return };
        let ended = stream.guess.as_ref().map_or(utterance.last_voiced, |guess| guess.up_to);
        (stream.partial, stream.guess) = (Partial::default(), None);
        stream.parts.clear();
        let person = stream.person.clone();
        let is_speaking = self.voice != Voice::Silent;
        let may_echo = is_speaking || utterance.began.saturating_sub(self.said_at) <= ECHO_BEGINS;
        if may_echo && words::is_echo(&text, &self.saying) {
            return self.resume(at, id, actions);
        }
        // "Go on" is no interruption of somebody who speaks.
        if is_speaking && (words::is_backchannel(&text) || words::is_go_on(&text, &self.settings.names)) {
            return self.resume(at, id, actions);
        }
        let is_for_bot = self.is_for_bot(&person, &text, utterance.began);
        let mute = words::asks_to_mute(&text, &self.settings.names).filter(|_| is_for_bot);
        if is_speaking {
            let interrupts = self.conversation.interrupts(&person, is_for_bot);
            // "Wait" between others is no order.
            let is_order = (is_for_bot || interrupts) && words::is_stop(&text, &self.settings.names);
            if is_order || mute == Some(true) {
                self.stop(at, actions);
            } else if interrupts {
                self.cut(at, actions);
            } else {
                // What is being said goes on; if this was a question, its answer comes after it.
                self.resume(at, id, actions);
            }
            if is_order {
                return self.conversation.replied(at);
            }
        }
        if let Some(is_muted) = mute {
            self.is_muted = is_muted;
            self.conversation.with(&person, at);
            return actions.push(Action::Mute(is_muted));
        }
        let is_for_bot = is_for_bot && !self.is_quiet();
        if is_for_bot {
            self.conversation.asked(&person, at);
        }
        let goes_on = is_for_bot && self.is_to_go_on(at, &text);
        let name = self.present.get(&person).cloned().unwrap_or_default();
        let said = Said { person, name, text, began: utterance.began, ended, is_for_bot };
        actions.push(if goes_on { Action::GoOn(said) } else { Action::Said(said) });
    }

    /// Returns true if somebody asks for the rest of a reply that was stopped a short time ago.
    fn is_to_go_on(&self, at: Duration, text: &str) -> bool {
        let is_recent = self.stopped_at.is_some_and(|stopped| at.saturating_sub(stopped) <= GO_ON);
        is_recent && self.voice == Voice::Silent && words::is_go_on(text, &self.settings.names)
    }
}

/// What is known of an utterance that has no end yet.
enum Understood {
    /// There was no speech, or nobody understands it.
    Nothing,
    /// It was not recognised up to its end.
    Unknown,
    Words(Text),
}

/// What comes next for a stream.
enum Step {
    Wait,
    /// Somebody began to say something to the bot.
    Announce,
    /// Enough was said to recognise it before the end.
    Partial,
    /// There was no speech.
    Drop,
    /// So much was said that its first part is recognised now.
    Part,
    /// So many parts were said that they are an utterance of their own.
    Flush,
    Recognise,
    End(Text),
}
