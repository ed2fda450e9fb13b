//! What becomes of the sound of one stream: barge-in, recognition at pauses, and the end of an utterance.

use std::time::Duration;

use azera_types::PersonId;
use azera_voice_api::{FRAME_SAMPLES, Transcript};

use super::{Action, Guess, RecognitionId, Room, Said, Stream, StreamId, Voice};
use crate::endpoint::{Endpointer, Utterance};
use crate::words;

/// Less speech than this is a cough or a key.
const LEAST_VOICED: Duration = Duration::from_millis(130);

/// How long after the bot fell silent its own words may come back.
const ECHO: Duration = Duration::from_millis(1_500);

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
            guess: None,
        });
        // A stream belongs to the person who began it.
        if stream.person != person {
            return;
        }
        // While a cut utterance is recognised, nothing can be added to it.
        let is_full = stream.endpointer.utterance.as_ref().is_some_and(Utterance::is_full);
        if is_full || !stream.endpointer.frame(at, samples, probability) {
            return;
        }
        // The utterance goes on, so what was recognised of it is not all.
        actions.extend(stream.guess.take().map(|guess| Action::Cancel(guess.id)));
        let voiced = stream.endpointer.utterance.as_ref().map_or(Duration::ZERO, |utterance| utterance.voiced);
        if self.voice == Voice::Speaking && voiced >= self.settings.barge_in {
            self.voice = Voice::Paused(id);
            actions.push(Action::Pause);
        }
    }

    pub(super) fn recognised(&mut self, id: RecognitionId, transcript: Option<Transcript>) {
        let guesses = self.streams.values_mut().filter_map(|stream| stream.guess.as_mut());
        if let Some(guess) = guesses.into_iter().find(|guess| guess.id == id) {
            guess.transcript = Some(transcript);
        }
    }

    /// Begins recognitions at pauses, and ends utterances.
    pub(super) fn end_utterances(&mut self, at: Duration, actions: &mut Vec<Action>) {
        let ids: Vec<StreamId> = self.streams.keys().copied().collect();
        for id in ids {
            match self.next_step(at, id) {
                Step::Wait => {}
                Step::Drop => {
                    if let Some(stream) = self.streams.get_mut(&id) {
                        stream.endpointer.end();
                        actions.extend(stream.guess.take().map(|guess| Action::Cancel(guess.id)));
                    }
                    self.resume(id, actions);
                }
                Step::Recognise => self.recognise(id, actions),
                Step::End(transcript) => self.end(at, id, transcript, actions),
            }
        }
    }

    fn next_step(&self, at: Duration, id: StreamId) -> Step {
        let Some(stream) = self.streams.get(&id) else { return Step::Wait };
        let Some(utterance) = &stream.endpointer.utterance else { return Step::Wait };
        let silence = at.saturating_sub(utterance.last_voiced);
        let is_paused = silence >= self.settings.pause || utterance.is_full();
        match &stream.guess {
            _ if !is_paused => Step::Wait,
            None if utterance.voiced < LEAST_VOICED => Step::Drop,
            None => Step::Recognise,
            Some(Guess { transcript: None, .. }) => Step::Wait,
            Some(Guess { transcript: Some(None), .. }) => Step::Drop,
            Some(Guess { transcript: Some(Some(transcript)), .. }) => {
                let whole = words::seems_whole(&transcript.text);
                let enough = if whole { self.settings.whole_silence } else { self.settings.end_silence };
                if transcript.text.trim().is_empty() {
                    Step::Drop
                } else if silence >= enough || utterance.is_full() {
                    Step::End(transcript.clone())
                } else {
                    Step::Wait
                }
            }
        }
    }

    fn recognise(&mut self, id: StreamId, actions: &mut Vec<Action>) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        let Some(utterance) = &stream.endpointer.utterance else { return };
        self.recognitions += 1;
        let recognition = RecognitionId(self.recognitions);
        stream.guess = Some(Guess { id: recognition, up_to: utterance.last_voiced, transcript: None });
        actions.push(Action::Recognise(recognition, utterance.audio()));
    }

    fn end(&mut self, at: Duration, id: StreamId, transcript: Transcript, actions: &mut Vec<Action>) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        let (Some(utterance), Some(guess)) = (stream.endpointer.end(), stream.guess.take()) else { return };
        let person = stream.person.clone();
        let is_speaking = self.voice != Voice::Silent;
        let may_echo = is_speaking || at.saturating_sub(self.said_at) <= ECHO;
        if may_echo && words::is_echo(&transcript.text, &self.saying) {
            return self.resume(id, actions);
        }
        if is_speaking && words::is_backchannel(&transcript.text) {
            return self.resume(id, actions);
        }
        if is_speaking {
            self.voice = Voice::Silent;
            self.said_at = at;
            actions.push(Action::Stop);
            if words::is_stop(&transcript.text, &self.settings.names) {
                return;
            }
        }
        let is_for_bot = self.conversation.is_for_bot(
            &person,
            &transcript.text,
            &self.settings.names,
            &self.present,
            utterance.began,
            self.settings.attention,
        );
        if is_for_bot {
            self.conversation.with(&person, at);
        }
        let name = self.present.get(&person).cloned().unwrap_or_default();
        let text = transcript.text;
        actions.push(Action::Said(Said { person, name, text, began: utterance.began, ended: guess.up_to, is_for_bot }));
    }
}

/// What comes next for a stream.
enum Step {
    Wait,
    /// There was no speech.
    Drop,
    Recognise,
    End(Transcript),
}
