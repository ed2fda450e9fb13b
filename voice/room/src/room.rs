//! The room: who is there, who speaks, and whose turn it is.

mod barge_in;
mod listening;
mod stream;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use azera_types::{MessageId, PersonId, Text};
use azera_voice_api::{Audio, FRAME_SAMPLES, Transcript};

use crate::gate::{Gate, SealedPacket, Sound};
use crate::turns::Conversation;
use stream::Stream;

/// A stream of sound. One person speaks in it, from its first packet to its last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub u64);

/// A request to recognise speech.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecognitionId(pub u64);

/// How the room listens.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Names by which people call the bot.
    pub names: Vec<String>,
    /// Silence after which an utterance is recognised.
    pub pause: Duration,
    /// Speech after which what was said so far is recognised, so that the answer can be prepared.
    pub partial: Duration,
    /// Silence that ends a whole question.
    pub question_silence: Duration,
    /// Silence that ends another utterance which seems whole.
    pub whole_silence: Duration,
    /// Silence that ends any utterance.
    pub end_silence: Duration,
    /// Speech that makes the bot pause.
    pub barge_in: Duration,
    /// How long the bot pauses in one answer while others talk with each other. It also is how long whoever gets the
    /// answer can talk until that counts as an interruption, although nothing of it is recognised yet.
    pub longest_pause: Duration,
    /// How long after an exchange the same person is answered without a call.
    pub attention: Duration,
    /// How long the bot stays where nobody else is.
    pub alone: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            names: Vec::new(),
            pause: Duration::from_millis(130),
            partial: Duration::from_millis(1_200),
            question_silence: Duration::from_millis(320),
            whole_silence: Duration::from_millis(400),
            end_silence: Duration::from_millis(900),
            barge_in: Duration::from_millis(250),
            longest_pause: Duration::from_secs(10),
            attention: Duration::from_secs(15),
            alone: Duration::from_secs(60),
        }
    }
}

/// Something that happened.
pub enum Event {
    /// A person is in the room. A second event for the same person renames them. Whoever tells it asks those who did not
    /// decide.
    Joined {
        /// The person.
        person: PersonId,
        /// The displayed name.
        name: String,
        /// What they decided about being heard; `None` if they were not asked yet.
        decision: Option<bool>,
    },
    /// A person left.
    Left(PersonId),
    /// A person decided about being heard.
    Decided(PersonId, bool),
    /// A frame of 32 ms of a person's sound.
    Frame {
        /// The stream.
        stream: StreamId,
        /// Who speaks in it.
        person: PersonId,
        /// The sound at 16 kHz.
        samples: Box<[f32; FRAME_SAMPLES]>,
        /// Probability that it is speech.
        probability: f32,
    },
    /// A recognition is done; `None` if it failed.
    Recognised(RecognitionId, Option<Transcript>),
    /// A reply comes that is to be said. The replies to one person come in the order of their questions.
    Replying {
        /// The reply.
        reply: MessageId,
        /// Whom it answers, or who asked for the rest of it; `None` if that is not known. Then it answers the oldest
        /// question that has no reply.
        asker: Option<PersonId>,
    },
    /// The bot begins to say a sentence.
    Saying {
        /// The reply that it is part of; `None` if it is something else.
        reply: Option<MessageId>,
        /// The sentence.
        words: String,
    },
    /// What the bot was saying ended. Something else may follow.
    Ended,
    /// A reply is dropped before anything of it is said.
    Dropped(MessageId),
    /// A reply came to nothing. It may be tried again.
    Failed(MessageId),
    /// The oldest question of a person that has no answer gets none; with `None` the oldest of all.
    Unanswered(Option<PersonId>),
    /// The bot said everything, or nothing more of it is said.
    Silent,
    /// The bot is to speak and answer, or not.
    Muted(bool),
    /// Nobody can hear the bot from now on, or people can again.
    Silenced(bool),
    /// People call the bot by other names from now on.
    Named(Vec<String>),
    /// Time passed.
    Tick,
}

/// Leaves out what people said.
impl std::fmt::Debug for Event {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Joined { .. } => "Joined",
            Self::Left(_) => "Left",
            Self::Decided(..) => "Decided",
            Self::Frame { .. } => "Frame",
            Self::Recognised(..) => "Recognised",
            Self::Replying { .. } => "Replying",
            Self::Saying { .. } => "Saying",
            Self::Ended => "Ended",
            Self::Dropped(_) => "Dropped",
            Self::Failed(_) => "Failed",
            Self::Unanswered(_) => "Unanswered",
            Self::Silent => "Silent",
            Self::Muted(_) => "Muted",
            Self::Silenced(_) => "Silenced",
            Self::Named(_) => "Named",
            Self::Tick => "Tick",
        })
    }
}

/// A whole utterance.
#[derive(Clone, PartialEq)]
pub struct Said {
    /// Who said it.
    pub person: PersonId,
    /// The displayed name.
    pub name: String,
    /// The words.
    pub text: Text,
    /// When the first word began, and when the last one ended.
    pub began: Duration,
    /// See `began`.
    pub ended: Duration,
    /// True if the bot is to answer.
    pub is_for_bot: bool,
}

/// Leaves out who said it, and what.
impl std::fmt::Debug for Said {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { text, began, ended, is_for_bot, .. } = self;
        write!(f, "Said[{} bytes, {began:?} to {ended:?}, for the bot: {is_for_bot}]", text.len())
    }
}

/// What somebody seems to be saying to the bot.
#[derive(Clone, PartialEq, Eq)]
pub struct Expected {
    /// Who speaks.
    pub person: PersonId,
    /// The displayed name.
    pub name: String,
    /// The words so far; empty at the beginning.
    pub text: Text,
}

/// Leaves out what people say.
impl std::fmt::Debug for Expected {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Expected[{} bytes]", self.text.len())
    }
}

/// What is to be done.
#[derive(Debug)]
pub enum Action {
    /// Recognise this sound, and answer with [`Event::Recognised`].
    Recognise(RecognitionId, Audio),
    /// The result of a recognition is no longer wanted.
    Cancel(RecognitionId),
    /// Somebody seems to say something to the bot. It can prepare the answer.
    Expect(Expected),
    /// Somebody said something.
    Said(Said),
    /// Go on with the reply that was stopped. If nothing of it is left, this was said to the bot like anything else.
    GoOn(Said),
    /// Somebody asked the bot to be quiet from now on, or to talk again.
    Mute(bool),
    /// Pause the bot's speech: somebody talks.
    Pause,
    /// Go on: it was not an interruption.
    Resume,
    /// End what is being said, for good. Other answers that wait are said after it.
    Cut,
    /// End what is being said and everything that waits, for good.
    Stop,
    /// Leave the channel: nobody else is there.
    Leave,
}

/// Whether the bot speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Voice {
    Silent,
    Speaking,
    /// It paused because of this stream.
    Paused(StreamId),
}

/// A voice channel with the bot in it.
pub struct Room {
    settings: Settings,
    gate: Gate,
    present: BTreeMap<PersonId, String>,
    streams: BTreeMap<StreamId, Stream>,
    conversation: Conversation,
    voice: Voice,
    /// When the bot paused, or began to wait for the one who speaks now.
    paused_at: Duration,
    /// How long it waited in this answer for people who talk with each other.
    waited: Duration,
    /// What the bot says now, and said last.
    saying: String,
    said_at: Duration,
    /// When a reply was stopped that may go on.
    stopped_at: Option<Duration>,
    is_muted: bool,
    /// True while nobody can hear the bot.
    is_silenced: bool,
    recognitions: u64,
    /// How many utterances of people who left were not recognised to their end.
    lost: usize,
    /// Since when nobody else is there.
    alone_since: Option<Duration>,
}

impl Room {
    /// Opens a room that nobody else is in.
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            gate: Gate::default(),
            present: BTreeMap::new(),
            streams: BTreeMap::new(),
            conversation: Conversation::default(),
            voice: Voice::Silent,
            paused_at: Duration::ZERO,
            waited: Duration::ZERO,
            saying: String::new(),
            said_at: Duration::ZERO,
            stopped_at: None,
            is_muted: false,
            is_silenced: false,
            recognitions: 0,
            lost: 0,
            alone_since: Some(Duration::ZERO),
        }
    }

    /// Opens a packet of a person who is present and consented.
    pub fn admit(&mut self, person: Option<&PersonId>, packet: SealedPacket) -> Option<Sound> {
        let present = person.filter(|person| self.present.contains_key(*person));
        self.gate.admit(present, packet)
    }

    /// Returns the gate with its counts.
    pub fn gate(&self) -> &Gate {
        &self.gate
    }

    /// Takes in an event of the time `at`, and returns what is to be done, in order.
    pub fn on(&mut self, at: Duration, event: Event) -> Vec<Action> {
        let mut actions = Vec::new();
        match event {
            Event::Joined { person, name, decision } => self.joined(at, (person, name), decision, &mut actions),
            Event::Left(person) => self.left(at, &person, &mut actions),
            Event::Decided(person, decision) => {
                self.gate.decide(person.clone(), Some(decision));
                if !decision {
                    self.drop_streams(at, &person, &mut actions);
                }
            }
            Event::Frame { stream, person, samples, probability } => {
                self.frame(at, stream, person, &samples, probability, &mut actions);
            }
            Event::Recognised(id, transcript) => self.recognised(at, id, transcript, &mut actions),
            Event::Replying { reply, asker } => self.replying(at, reply, asker.as_ref()),
            Event::Saying { reply, words } => self.saying(at, reply, &words),
            Event::Ended => {
                self.fell_silent(at, &mut actions);
                self.conversation.ended(at);
            }
            Event::Dropped(reply) => drop(self.conversation.over(&reply)),
            Event::Failed(reply) => self.conversation.failed(&reply),
            Event::Unanswered(asker) => self.conversation.unanswered(asker.as_ref()),
            Event::Silent => {
                self.fell_silent(at, &mut actions);
                self.conversation.all_ended(at);
            }
            Event::Muted(is_muted) => self.is_muted = is_muted,
            Event::Silenced(is_silenced) => self.is_silenced = is_silenced,
            Event::Named(names) => self.settings.names = names,
            Event::Tick => {}
        }
        self.end_utterances(at, &mut actions);
        self.end_long_pause(at, &mut actions);
        if self.alone_since.is_some_and(|since| at.saturating_sub(since) >= self.settings.alone) {
            self.alone_since = None;
            actions.push(Action::Leave);
        }
        actions
    }

    /// Ends the conversation. Returns the utterances that were understood although nobody waited for their end, and how
    /// many others are lost, also of people who left before. Nobody hears an answer to them, but whoever was in danger
    /// gets help.
    pub fn close(&mut self, at: Duration) -> (Vec<Said>, usize) {
        let mut actions = Vec::new();
        let ids: Vec<StreamId> = self.streams.keys().copied().collect();
        for id in ids {
            self.end_understood(at, id, &mut actions);
        }
        self.streams.clear();
        let said = actions.into_iter().filter_map(|action| match action {
            Action::Said(said) | Action::GoOn(said) => Some(said),
            _ => None,
        });
        (said.collect(), std::mem::take(&mut self.lost))
    }

    /// Returns when the room must be asked again at the latest, if nothing else happens.
    pub fn deadline(&self, at: Duration) -> Option<Duration> {
        /// While somebody speaks.
        const SOON: Duration = Duration::from_millis(20);
        let speaking = self.streams.values().any(|stream| stream.endpointer.utterance.is_some());
        let alone = self.alone_since.map(|since| since + self.settings.alone);
        if speaking { Some(at + SOON) } else { alone }
    }

    /// Returns true while somebody speaks, or just paused.
    pub fn is_somebody_speaking(&self) -> bool {
        let speaks = |stream: &Stream| stream.endpointer.utterance.as_ref().is_some_and(|said| !said.is_too_short());
        self.streams.values().any(speaks)
    }

    fn replying(&mut self, at: Duration, reply: MessageId, asker: Option<&PersonId>) {
        self.conversation.replies(reply, asker, at);
        // An answer to somebody who left is nobody's.
        if let Some(asker) = asker.filter(|asker| !self.present.contains_key(*asker)) {
            self.conversation.left(asker);
        }
    }

    fn saying(&mut self, at: Duration, reply: Option<MessageId>, words: &str) {
        if self.voice == Voice::Silent {
            self.voice = Voice::Speaking;
            // The end of what was said before may still come back.
            if at.saturating_sub(self.said_at) > listening::ECHO {
                self.saying.clear();
            }
        }
        if self.conversation.says(reply) {
            self.waited = Duration::ZERO;
        }
        self.saying.push(' ');
        self.saying.push_str(words);
        self.said_at = at;
    }

    fn joined(
        &mut self,
        at: Duration,
        (person, name): (PersonId, String),
        decision: Option<bool>,
        actions: &mut Vec<Action>,
    ) {
        self.alone_since = None;
        let is_new = self.present.insert(person.clone(), name).is_none();
        // News of somebody who is there already may be older than their last decision. It takes consent away and never
        // gives it.
        if is_new || decision == Some(false) {
            self.gate.decide(person.clone(), decision);
        }
        if decision == Some(false) {
            self.drop_streams(at, &person, actions);
        }
    }

    fn left(&mut self, at: Duration, person: &PersonId, actions: &mut Vec<Action>) {
        let theirs = self.streams.iter().filter(|(_, stream)| stream.person == *person);
        let theirs: Vec<StreamId> = theirs.map(|(id, _)| *id).collect();
        // The bot is silenced before the last one who hears it leaves. Their words were for it all the same, and a cry for
        // help among them must not be lost.
        let is_silenced = std::mem::take(&mut self.is_silenced);
        let mut ended = Vec::new();
        theirs.into_iter().for_each(|id| self.end_understood(at, id, &mut ended));
        self.is_silenced = is_silenced;
        // Nothing goes on for somebody who left.
        actions.extend(ended.into_iter().map(|action| match action {
            Action::GoOn(said) => Action::Said(said),
            action => action,
        }));
        self.present.remove(person);
        self.conversation.left(person);
        self.drop_streams(at, person, actions);
        if self.present.is_empty() {
            self.alone_since.get_or_insert(at);
        }
    }

    /// Drops everything that was heard of a person and is no utterance yet.
    fn drop_streams(&mut self, at: Duration, person: &PersonId, actions: &mut Vec<Action>) {
        let theirs: Vec<StreamId> =
            self.streams.iter().filter(|(_, stream)| stream.person == *person).map(|(id, _)| *id).collect();
        for id in theirs {
            if let Some(mut stream) = self.streams.remove(&id) {
                actions.extend(stream.take_recognitions().into_iter().map(Action::Cancel));
            }
            self.resume(at, id, actions);
        }
    }
}
