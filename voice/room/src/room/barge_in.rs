//! Barge-in: when the bot pauses because people talk, and when it goes on or ends what it says.

use std::time::Duration;

use super::stream::Stream;
use super::{Action, Room, StreamId, Voice};

/// After so much speech, whoever gets the answer has interrupted it, although nothing of it is recognised yet.
const LONG_TALK: Duration = Duration::from_secs(5);

impl Room {
    /// Pauses the bot if somebody talks for long enough.
    pub(super) fn give_way(&mut self, at: Duration, id: StreamId, actions: &mut Vec<Action>) {
        let is_waited_for = self.streams.get(&id).is_some_and(|stream| self.is_waited_for(at, stream));
        if self.voice == Voice::Speaking && is_waited_for {
            (self.voice, self.paused_at) = (Voice::Paused(id), at);
            actions.push(Action::Pause);
        }
    }

    /// Goes on to speak if this stream made the bot pause, unless somebody else speaks by now.
    pub(super) fn resume(&mut self, at: Duration, id: StreamId, actions: &mut Vec<Action>) {
        if self.voice != Voice::Paused(id) {
            return;
        }
        if !self.streams.get(&id).is_some_and(|stream| self.may_interrupt(at, stream)) {
            self.waited += at.saturating_sub(self.paused_at);
        }
        self.paused_at = at;
        let others = self.streams.iter().filter(|(other, _)| **other != id);
        let other = others.filter(|(_, stream)| self.is_waited_for(at, stream)).map(|(id, _)| *id).next();
        self.voice = other.map_or(Voice::Speaking, Voice::Paused);
        if other.is_none() {
            actions.push(Action::Resume);
        }
    }

    /// Ends a pause that lasts too long. Whoever gets the answer has interrupted it, and the bot talks over others.
    pub(super) fn end_long_pause(&mut self, at: Duration, actions: &mut Vec<Action>) {
        let Voice::Paused(id) = self.voice else { return };
        let Some(stream) = self.streams.get(&id) else { return };
        let began = stream.endpointer.utterance.as_ref().map(|said| said.began);
        let interrupts = self.may_interrupt(at, stream);
        let before = if interrupts { Duration::ZERO } else { self.waited };
        if before + at.saturating_sub(self.paused_at) < self.settings.longest_pause {
            return;
        }
        if interrupts && stream.endpointer.utterance.as_ref().is_some_and(|said| said.voiced >= LONG_TALK) {
            self.cut(at, actions);
        } else {
            if let Some(stream) = self.streams.get_mut(&id) {
                stream.talked_over = began;
            }
            self.resume(at, id, actions);
        }
    }

    /// Returns true if the bot waits for the end of what is said in a stream. In one answer it waits some seconds for
    /// people who talk with each other, and then no more.
    fn is_waited_for(&self, at: Duration, stream: &Stream) -> bool {
        let Some(said) = &stream.endpointer.utterance else { return false };
        let is_long_enough = said.voiced >= self.settings.barge_in && stream.talked_over != Some(said.began);
        is_long_enough && (self.waited < self.settings.longest_pause || self.may_interrupt(at, stream))
    }

    /// Returns true if what the person of a stream says may end what the bot says.
    fn may_interrupt(&self, at: Duration, stream: &Stream) -> bool {
        let Self { conversation, present, settings, .. } = self;
        let may_be_for_bot = conversation.may_be_for_bot(&stream.person, present, at, settings.attention);
        conversation.interrupts(&stream.person, may_be_for_bot)
    }

    /// Takes in that the bot fell silent by itself, or that what it says next is something else.
    pub(super) fn fell_silent(&mut self, at: Duration, actions: &mut Vec<Action>) {
        // The last sound may have ended just as somebody began to speak. The next answer must not wait for them.
        if matches!(self.voice, Voice::Paused(_)) {
            actions.push(Action::Resume);
        }
        if self.voice != Voice::Silent {
            (self.voice, self.said_at) = (Voice::Silent, at);
        }
    }

    /// Ends what is being said. Other answers that wait are said after it.
    pub(super) fn cut(&mut self, at: Duration, actions: &mut Vec<Action>) {
        self.end_speech(at);
        self.conversation.ended(at);
        actions.push(Action::Cut);
    }

    /// Ends what is being said and everything that waits.
    pub(super) fn stop(&mut self, at: Duration, actions: &mut Vec<Action>) {
        self.end_speech(at);
        self.conversation.all_ended(at);
        actions.push(Action::Stop);
    }

    fn end_speech(&mut self, at: Duration) {
        self.voice = Voice::Silent;
        (self.said_at, self.stopped_at) = (at, Some(at));
    }
}
