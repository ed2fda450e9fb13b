//! A listener and a speaker for whom sound is the bytes of the words, and voice channels that keep what is asked of them.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use azera_adapter::{
    CallManner, CallWish, CaptionStatus, JoinedCall, Outbound, PlatformError, RecordStatus, SentRecording, SentSound,
    VoiceChannels, VoiceError, VoiceMessages, VoiceStatus,
};
use azera_engine::Voice;
use azera_memory::VoiceReplies;
use azera_types::{
    ChatId, FetchError, Fetching, InboundPart, MessageId, Part, PartSource, PersonId, Text, Timestamp, VoiceNote,
};
use azera_voice_api::{
    Given, HearError, Heard, Listener, Manner, Recorded, Sample, SampleError, SampleRate, SampleStore, SpeakError,
    Speaker, Voice as SpeakingVoice,
};

use crate::watch::WatchedPlatform;

/// Hears the words in the bytes, and counts how often it listens. Beside it are the recordings of voices.
#[derive(Default)]
pub struct Ear(pub AtomicUsize, pub Arc<Recordings>);

/// Recordings of voices, as an XTTS server would clone them.
#[derive(Default)]
pub struct Recordings {
    pub all: Mutex<Vec<Sample>>,
    /// Why nothing speaks with them.
    pub obstacle: Mutex<Option<String>>,
    /// How something was spoken last.
    pub spoken_in: Mutex<Option<Manner>>,
}

#[async_trait]
impl SampleStore for Recordings {
    async fn obstacle(&self) -> Option<String> {
        self.obstacle.lock().unwrap().clone()
    }

    async fn keep(&self, name: &str, given: Given, file: Vec<u8>) -> Result<Sample, SampleError> {
        if !file.starts_with(b"RIFF") {
            return Err(SampleError::Unfit("it is no WAV, MP3, Ogg or FLAC file".to_owned()));
        }
        let mut all = self.all.lock().unwrap();
        let id = format!("~{}", given.at.as_second());
        all.push(Sample { id, name: name.to_owned(), given: Some(given), seconds: 4.0 });
        Ok(all.last().unwrap().clone())
    }

    async fn list(&self) -> Result<Vec<Sample>, SampleError> {
        Ok(self.all.lock().unwrap().clone())
    }

    async fn agree(&self, id: &str, at: Timestamp) -> Result<bool, SampleError> {
        let mut all = self.all.lock().unwrap();
        let found = all.iter_mut().find(|sample| sample.id == id).and_then(|sample| sample.given.as_mut());
        Ok(found.map(|given| given.agreed_at = Some(at)).is_some())
    }

    async fn remove(&self, id: &str) -> Result<bool, SampleError> {
        let mut all = self.all.lock().unwrap();
        let before = all.len();
        all.retain(|sample| sample.id != id);
        Ok(all.len() < before)
    }
}

#[async_trait]
impl Listener for Ear {
    fn max_bytes(&self) -> u64 {
        10_000
    }

    async fn hear(&self, file: Vec<u8>, _: &str, _: Option<&str>) -> Result<Heard, HearError> {
        self.0.fetch_add(1, Ordering::SeqCst);
        match String::from_utf8(file) {
            Ok(words) => Ok(Heard { text: Text::new(words) }),
            Err(_) => Err(HearError::Unreadable("it is no sound".to_owned())),
        }
    }
}

/// Speaks words as their bytes, with voices of its own and with all recordings.
pub struct Mouth(Arc<Recordings>);

#[async_trait]
impl Speaker for Mouth {
    async fn voices(&self) -> Result<Vec<SpeakingVoice>, SpeakError> {
        let recorded: Vec<String> = self.0.all.lock().unwrap().iter().map(|sample| sample.id.clone()).collect();
        let voice = |(id, language): (&str, &str)| SpeakingVoice {
            id: id.to_owned(),
            language: language.to_owned(),
            rate: SampleRate(24_000),
            engine: "made-up".to_owned(),
        };
        let own = [("joe", "en-US"), ("karl", "de-DE")].map(voice);
        let recorded = recorded.iter().map(|id| voice((id, "en")));
        Ok(own.into_iter().chain(recorded).collect())
    }

    async fn speak(&self, text: &str, manner: &Manner) -> Result<VoiceNote, SpeakError> {
        *self.0.spoken_in.lock().unwrap() = Some(manner.clone());
        Ok(VoiceNote { bytes: text.as_bytes().to_vec(), duration: Duration::from_secs(1), waveform: vec![0, 255] })
    }

    async fn record(&self, text: &str, _: &Manner) -> Result<Recorded, SpeakError> {
        Ok(Recorded { wav: text.as_bytes().to_vec(), duration: Duration::from_secs(1) })
    }
}

pub fn voice(ear: &Arc<Ear>) -> Voice {
    Voice {
        listener: Some(ear.clone()),
        speaker: Some(Arc::new(Mouth(ear.1.clone()))),
        samples: Some(ear.1.clone()),
        replies: VoiceReplies::Auto,
    }
}

/// A file that cannot be fetched any more.
struct Expired;

impl PartSource for Expired {
    fn fetch(&self, _: u64) -> Fetching<'_> {
        Box::pin(std::future::ready(Err(FetchError::Failed("its address has expired".to_owned()))))
    }
}

/// Returns a voice message. `expired` ones can only be had from the platform.
pub fn spoken(words: &[u8], expired: bool) -> InboundPart {
    let part = Part::new("voice-message.ogg", Some("audio/ogg"), words.len() as u64).spoken(Some(1_000));
    let source: Arc<dyn PartSource> = if expired { Arc::new(Expired) } else { Arc::new(words.to_vec()) };
    InboundPart { part, source }
}

#[async_trait]
impl VoiceMessages for WatchedPlatform {
    fn speaks_in(&self, _: &ChatId) -> bool {
        self.watch.went("VoiceMessages::speaks_in");
        true
    }

    async fn parts(&self, _: &ChatId, message: &MessageId) -> Result<Vec<InboundPart>, PlatformError> {
        self.watch.went("VoiceMessages::parts");
        let words = self.spoken.lock().unwrap().get(message).cloned();
        Ok(words.map(|words| spoken(&words, false)).into_iter().collect())
    }

    async fn newest_sound(&self, _: &ChatId, person: &PersonId) -> Result<Option<SentSound>, PlatformError> {
        self.watch.went("VoiceMessages::newest_sound");
        let given = self.given.lock().unwrap().get(person).cloned();
        let at = Timestamp::from_second(1_750_000_000).unwrap();
        Ok(given.map(|bytes| SentSound { sound: spoken(&bytes, false), at }))
    }

    async fn speak(&self, outbound: &Outbound, note: &VoiceNote) -> Result<(), PlatformError> {
        let words = String::from_utf8(note.bytes.clone()).unwrap();
        self.watch.shown_for("VoiceMessages::speak", outbound.reply_to.as_ref(), &words);
        self.sounds.lock().unwrap().push((outbound.id.clone(), words));
        Ok(())
    }
}

/// A recording that was sent.
pub type Delivered = (PersonId, String, Vec<(String, Vec<u8>)>);

/// Voice channels. What is said in one is the chat in which somebody asks, unless a call goes on.
#[derive(Default)]
pub struct Channels {
    /// The help lines that were to be sent, also to people who are in the call: for which question, for whom, and the lines.
    pub helped: Mutex<Vec<(MessageId, PersonId, String)>>,
    /// What was forgotten.
    pub gone: Mutex<Vec<(ChatId, MessageId)>>,
    /// Who agreed to captions; `None` while none run.
    pub captions: Mutex<Option<BTreeSet<PersonId>>>,
    /// Who agreed to be recorded; `None` while nobody records.
    pub recorded: Mutex<Option<BTreeSet<PersonId>>>,
    /// The recordings that were sent: to whom, the text, and the files.
    pub sent: Mutex<Vec<Delivered>>,
    /// Who can no longer see any voice channel.
    pub blind: Mutex<BTreeSet<PersonId>>,
    /// The chat of the call that everybody is in.
    pub call: Mutex<Option<ChatId>>,
    /// What was said in calls, and with which voice.
    pub said: Mutex<Vec<(String, Option<String>)>>,
    /// True while nobody can tell whether a call is recorded.
    pub is_record_lost: AtomicBool,
}

impl Channels {
    fn say_with(&self, text: &str, voice: Option<String>) -> Result<(), VoiceError> {
        if self.call.lock().unwrap().is_none() {
            return Err(VoiceError::NotThere);
        }
        self.said.lock().unwrap().push((text.to_owned(), voice));
        Ok(())
    }
}

#[async_trait]
impl VoiceChannels for Channels {
    async fn chat_of(&self, chat: &ChatId, _: &PersonId) -> Option<ChatId> {
        Some(chat.clone())
    }

    fn text_chat_of(&self, _: &ChatId) -> Option<ChatId> {
        None
    }

    async fn personas_changed(&self, _: &ChatId) {}

    async fn send_help(&self, of: &MessageId, _: &ChatId, to: &PersonId, lines: &str) -> Result<(), PlatformError> {
        self.helped.lock().unwrap().push((of.clone(), to.clone(), lines.to_owned()));
        Ok(())
    }

    async fn join(&self, _: &ChatId, _: &PersonId) -> Result<JoinedCall, VoiceError> {
        Err(VoiceError::NotThere)
    }

    async fn leave(&self, _: &ChatId, _: &PersonId) -> Result<(), VoiceError> {
        Err(VoiceError::NotThere)
    }

    async fn say(&self, _: &ChatId, _: &PersonId, text: &str) -> Result<(), VoiceError> {
        self.say_with(text, None)
    }

    async fn say_in(&self, _: &ChatId, _: &PersonId, text: &str, manner: CallManner) -> Result<(), VoiceError> {
        self.say_with(text, manner.voice)
    }

    async fn mute(&self, _: &ChatId, _: &PersonId, _: bool) -> Result<(), VoiceError> {
        Err(VoiceError::NotThere)
    }

    async fn stop(&self, _: &ChatId, _: &PersonId) -> Result<(), VoiceError> {
        Err(VoiceError::NotThere)
    }

    async fn decided(&self, _: &ChatId, person: &PersonId, may_be_heard: bool) -> bool {
        let captions = self.captions.lock().unwrap();
        may_be_heard && captions.as_ref().is_none_or(|agreed| agreed.contains(person))
    }

    async fn captions(
        &self,
        chat: &ChatId,
        person: &PersonId,
        wish: CallWish,
    ) -> Result<Option<CaptionStatus>, VoiceError> {
        let mut captions = self.captions.lock().unwrap();
        match (wish, captions.as_mut()) {
            (CallWish::On, _) => *captions = Some(BTreeSet::from([person.clone()])),
            (CallWish::Off, _) => *captions = None,
            (CallWish::Agree(_), Some(agreed)) => {
                agreed.insert(person.clone());
            }
            (CallWish::Refuse, Some(agreed)) => {
                agreed.remove(person);
            }
            (CallWish::Show | CallWish::Agree(_) | CallWish::Refuse, _) => {}
        }
        Ok(captions.as_ref().map(|agreed| CaptionStatus {
            name: "1".to_owned(),
            by: "Ann".to_owned(),
            place: chat.to_string(),
            people: agreed.len(),
            shows_yours: agreed.contains(person),
        }))
    }

    async fn withdraw(&self, gone: &[(ChatId, MessageId)]) {
        self.gone.lock().unwrap().extend_from_slice(gone);
    }

    async fn record(&self, _: &ChatId, person: &PersonId, wish: CallWish) -> Result<Option<RecordStatus>, VoiceError> {
        if self.is_record_lost.load(Ordering::Relaxed) {
            return Err(VoiceError::RecordingEnded);
        }
        let mut recorded = self.recorded.lock().unwrap();
        match (wish, recorded.as_mut()) {
            (CallWish::On, _) => *recorded = Some(BTreeSet::from([person.clone()])),
            (CallWish::Off, _) => *recorded = None,
            (CallWish::Agree(_), Some(agreed)) => {
                agreed.insert(person.clone());
            }
            (CallWish::Refuse, Some(agreed)) => {
                agreed.remove(person);
            }
            (CallWish::Show | CallWish::Agree(_) | CallWish::Refuse, _) => {}
        }
        Ok(recorded.as_ref().map(|agreed| RecordStatus {
            name: "1".to_owned(),
            by: "Ann".to_owned(),
            is_running: agreed.len() == 2,
            people: 2,
            agreed: agreed.len(),
            records_you: agreed.contains(person),
        }))
    }

    async fn sees(&self, _: &ChatId, person: &PersonId) -> bool {
        !self.blind.lock().unwrap().contains(person)
    }

    async fn send_recording(&self, recording: SentRecording<'_>) -> Result<usize, PlatformError> {
        let SentRecording { to, text, files } = recording;
        let count = files.len();
        self.sent.lock().unwrap().push((to.clone(), text.to_owned(), files));
        Ok(count)
    }

    async fn forgotten(&self, person: &PersonId) {
        if let Some(agreed) = self.recorded.lock().unwrap().as_mut() {
            agreed.remove(person);
        }
    }

    async fn status(&self, _: &ChatId, _: &PersonId) -> Result<VoiceStatus, VoiceError> {
        let voice_chat = self.call.lock().unwrap().clone().ok_or(VoiceError::NotThere)?;
        Ok(VoiceStatus { voice_chat, people: 1, packets_heard: 0, packets_dropped: 0, packets_decoded: 0 })
    }
}
