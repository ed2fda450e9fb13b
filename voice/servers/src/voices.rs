//! Synthesis of speech on servers.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::{Arc, OnceLock};

use azera_voice_api::{Audio, CLONE_MARK, Error, Piece, SampleRate, Style, TextToSpeech, Voice, is_same_language};
use azera_voice_recordings::Pitch;
use reqwest::Response;
use tokio::runtime::Handle;

use crate::config::ServerConfig;
use crate::error::ServerError;
use crate::level::{KnownLevels, Level};
use crate::openai::{self, SoundFormat};
use crate::samples::Samples;
use crate::server::{Server, content_type};
use crate::sound::SoundStream;
use crate::xtts;

/// The rate of all sound from servers. OpenAI, Kokoro and XTTS speak at this rate; other sounds are resampled.
pub const SERVER_VOICE_RATE: SampleRate = SampleRate(24_000);
/// The most voices of a server that are kept.
const MAX_VOICES: usize = 1_000;
/// The id of the voice with which a server speaks by itself, where none is configured. It stands in the list until the server
/// has told its voices. It means the first that the server lists, and never a recording.
pub const USUAL_VOICE: &str = "usual-voice";

/// The interface of a server that speaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpeechApi {
    /// OpenAI's `/v1/audio/speech`.
    OpenAi {
        /// The model's name on the server.
        model: String,
        /// The form of the sound that is asked for.
        format: SoundFormat,
    },
    /// An XTTS server: Coqui's streaming server, or xtts-api-server. Azera finds out which.
    Xtts,
}

/// The voices of a server.
#[derive(Clone)]
pub struct VoicesConfig {
    /// The interface.
    pub api: SpeechApi,
    /// The server.
    pub server: ServerConfig,
    /// The voice to use unless somebody chose another; it need not be in the server's list. When unset, the first of
    /// the list.
    pub voice: Option<String>,
    /// The language to speak, such as `en`.
    pub language: String,
    /// Recordings that an XTTS server may clone.
    pub samples: Arc<dyn Samples>,
}

/// Leaves out the recordings.
impl std::fmt::Debug for VoicesConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { api, server, voice, language, .. } = self;
        let mut shown = f.debug_struct("VoicesConfig");
        shown.field("api", api).field("server", server).field("voice", voice).field("language", language);
        shown.finish_non_exhaustive()
    }
}

/// Speaks with the voices of a server. Calls block; see the crate's documentation.
///
/// Servers take no liveliness, and those with XTTS neither pace nor pitch: such a wish is left out. Those with XTTS speak the
/// language of the style if they can.
pub struct ServerVoices {
    server: Server,
    handle: Handle,
    config: VoicesConfig,
    /// The configured voice or [`USUAL_VOICE`], until the server has told its own.
    untold: Voice,
    told: OnceLock<Told>,
    levels: KnownLevels,
}

/// What the server told about itself.
struct Told {
    /// Ids that the server listed itself; `None` if it has no list.
    listed: Option<Vec<String>>,
    xtts: Option<xtts::Found>,
}

impl ServerVoices {
    /// Checks the configuration. Connects to nothing yet; requests run on `handle`. [`ServerVoices::check`] or the
    /// first sentence asks for the voices.
    ///
    /// # Errors
    /// [`crate::Failure::Config`] for a wrong address, key, model or voice.
    pub fn new(config: VoicesConfig, handle: Handle) -> Result<Self, ServerError> {
        let (title, default_path) = match config.api {
            SpeechApi::OpenAi { .. } => ("the OpenAI-compatible speech server", "/v1"),
            SpeechApi::Xtts => ("the XTTS server", ""),
        };
        let server = Server::new(config.server.clone(), title, default_path)?;
        if let SpeechApi::OpenAi { model, .. } = &config.api
            && model.trim().is_empty()
        {
            return Err(server.wrong("model", "must name a model of the server"));
        }
        let untold = voice(&server, &config, config.voice.as_deref().unwrap_or(USUAL_VOICE));
        Ok(Self { untold, told: OnceLock::new(), levels: KnownLevels::default(), server, handle, config })
    }

    /// Asks whether the server works, which fills the list of voices. Returns what is worth knowing, such as a voice
    /// that the server does not list.
    ///
    /// # Errors
    /// [`ServerError`] if it cannot be reached, rejects the key, has no voice or does not speak the language.
    pub async fn check(&self) -> Result<Vec<String>, ServerError> {
        let told = self.told().await?;
        let mut notes = Vec::new();
        if let (Some(voice), Some(listed)) = (&self.config.voice, &told.listed)
            && !listed.contains(voice)
            && self.config.samples.numbers(voice).is_none()
        {
            let names: Vec<&str> = listed.iter().map(String::as_str).take(20).collect();
            notes.push(format!("it does not list the voice {voice}; it lists: {}", names.join(", ")));
        }
        if let Some(xtts) = &told.xtts {
            let language = &self.config.language;
            if xtts.language(language).is_none() {
                let codes = xtts.languages().join(", ");
                return Err(self.server.wrong("language", &format!("is none that it speaks; it speaks {codes}")));
            }
            if !xtts.takes_samples() && !self.config.samples.ids().is_empty() {
                notes.push("it takes no samples of voices; put them into its own folder of speakers".to_owned());
            }
        }
        if self.server.is_readable() {
            notes.push("what is said goes there unencrypted: use https where others share the network".to_owned());
        }
        Ok(notes)
    }

    /// Asks whether recordings can be cloned.
    ///
    /// # Errors
    /// [`ServerError`] if the server cannot be reached, or answers in another form.
    pub async fn takes_samples(&self) -> Result<bool, ServerError> {
        Ok(self.told().await?.xtts.as_ref().is_some_and(xtts::Found::takes_samples))
    }

    /// Returns the server's kind and address.
    pub fn name(&self) -> &str {
        self.server.name()
    }

    /// Returns what the server told about itself, and asks it first if that is unknown.
    async fn told(&self) -> Result<&Told, ServerError> {
        if let Some(told) = self.told.get() {
            return Ok(told);
        }
        let (listed, xtts) = match &self.config.api {
            SpeechApi::OpenAi { .. } => (openai::voices(&self.server).await?, None),
            SpeechApi::Xtts => {
                let found = xtts::find(&self.server).await?;
                (Some(found.voices()), Some(found))
            }
        };
        let told = Told { listed, xtts };
        if self.ids(&told).is_empty() {
            return Err(self.server.wrong("voice", "must name a voice: the server lists none"));
        }
        Ok(self.told.get_or_init(|| told))
    }

    /// Returns the ids of the voices: the configured one, those that the server lists, the operator's recordings, and at
    /// last those that people recorded in chats. So a recording is the usual voice only if it is configured, or if there is
    /// no other.
    fn ids(&self, told: &Told) -> Vec<String> {
        let clones = match &told.xtts {
            Some(xtts) if xtts.takes_samples() => self.config.samples.ids(),
            _ => Vec::new(),
        };
        let (given, kept): (Vec<String>, Vec<String>) = clones.into_iter().partition(|id| id.starts_with(CLONE_MARK));
        let listed = told.listed.iter().flatten().take(MAX_VOICES).cloned();
        let all = self.config.voice.iter().cloned().chain(listed).chain(kept).chain(given);
        let mut known = BTreeSet::new();
        all.filter(|id| known.insert(id.clone())).collect()
    }

    async fn request(
        &self,
        told: &Told,
        sentence: &str,
        style: &Style,
    ) -> Result<(Response, SoundStream), ServerError> {
        let (response, pitch) = match (&self.config.api, &told.xtts) {
            (SpeechApi::OpenAi { model, format }, _) => {
                openai::speak(&self.server, model, *format, sentence, style).await?
            }
            (SpeechApi::Xtts, Some(found)) => {
                let wished = style.language.as_deref().filter(|language| found.language(language).is_some());
                let (language, samples) = (wished.unwrap_or(&self.config.language), &*self.config.samples);
                let spoken = xtts::speak(&self.server, found, sentence, &style.voice, language, samples);
                (spoken.await?, Pitch::of(1.0))
            }
            (SpeechApi::Xtts, None) => return Err(self.server.protocol("nothing about itself")),
        };
        let sound = SoundStream::new(content_type(&response), SERVER_VOICE_RATE, pitch);
        Ok((response, sound.map_err(|failure| self.server.error(failure))?))
    }

    /// Reads an answer up to its next samples; empty at its end.
    async fn samples(&self, response: &mut Response, sound: &mut SoundStream) -> Result<Vec<f32>, ServerError> {
        while let Some(bytes) = self.server.piece(response, self.server.timeouts.idle).await? {
            let samples = sound.push(&bytes).map_err(|failure| self.server.error(failure))?;
            if !samples.is_empty() {
                return Ok(samples);
            }
        }
        Ok(Vec::new())
    }

    /// Sends a sentence and waits for its first samples, so that the breaker counts a sound that never begins.
    async fn begin(
        &self,
        told: &Told,
        sentence: &str,
        style: &Style,
    ) -> Result<(Vec<f32>, Response, SoundStream), ServerError> {
        let permit = self.server.admit()?;
        let result = async {
            let (mut response, mut sound) = self.request(told, sentence, style).await?;
            let first = self.samples(&mut response, &mut sound).await?;
            Ok((first, response, sound))
        };
        let result = result.await;
        self.server.report(permit, &result);
        result
    }
}

fn voice(server: &Server, config: &VoicesConfig, id: &str) -> Voice {
    Voice {
        id: id.to_owned(),
        language: config.language.clone(),
        rate: SERVER_VOICE_RATE,
        engine: server.name().to_owned(),
    }
}

/// Returns a piece of a sentence: servers do not say when words end.
fn heard(samples: Vec<f32>) -> Piece {
    Audio { rate: SERVER_VOICE_RATE, samples }.into()
}

impl TextToSpeech for ServerVoices {
    fn voices(&self) -> Vec<Voice> {
        let Some(told) = self.told.get() else { return vec![self.untold.clone()] };
        self.ids(told).iter().map(|id| voice(&self.server, &self.config, id)).collect()
    }

    /// Other servers than those with XTTS do not say what they speak, and are taken at the persona's word.
    fn reads(&self, voice: &Voice, language: &str) -> bool {
        let xtts = self.told.get().and_then(|told| told.xtts.as_ref());
        xtts.is_none_or(|found| found.language(language).is_some()) || is_same_language(&voice.language, language)
    }

    fn speak(
        &self,
        sentence: &str,
        style: &Style,
        take: &mut dyn FnMut(Piece) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        let told = self.handle.block_on(self.told())?;
        let ids = self.ids(told);
        let usual = || told.listed.as_ref().and_then(|listed| listed.first()).filter(|_| style.voice == USUAL_VOICE);
        let Some(voice) = Some(&style.voice).filter(|voice| ids.contains(voice)).or_else(usual) else {
            let known = ids.into_iter().filter(|id| !id.starts_with(CLONE_MARK)).collect();
            return Err(Error::UnknownVoice { voice: style.voice.clone(), known });
        };
        let style = &Style { voice: voice.clone(), ..style.clone() };
        if !sentence.contains(char::is_alphanumeric) {
            return Ok(());
        }
        let (mut samples, mut response, mut sound) = self.handle.block_on(self.begin(told, sentence, style))?;
        let mut level = Level::new(&self.levels, &style.voice, SERVER_VOICE_RATE);
        // `take` runs outside of the runtime, so it may block.
        while !samples.is_empty() {
            let samples_now = level.push(samples);
            if !samples_now.is_empty() && take(heard(samples_now)).is_break() {
                return Ok(());
            }
            samples = self.handle.block_on(self.samples(&mut response, &mut sound))?;
        }
        let mut last = level.push(sound.finish().map_err(|failure| self.server.error(failure))?);
        last.extend(level.finish());
        if !last.is_empty() && take(heard(last)).is_break() {
            return Ok(());
        }
        Ok(())
    }
}
