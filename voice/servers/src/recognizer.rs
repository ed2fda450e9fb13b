//! Recognition of speech on servers.

use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use azera_server_messages::SentTexts;
use azera_voice_api::{Audio, Error, RECOGNITION_RATE, SpeechToText, Transcript, recognised_language};
use azera_voice_recordings::wav_file;
use reqwest::multipart::{Form, Part};
use serde::Deserialize;
use tokio::runtime::Handle;
use tokio::time::timeout;

use crate::config::ServerConfig;
use crate::error::{Failure, ServerError};
use crate::server::{MAX_ANSWER_BYTES, Server};
use crate::transcript::{Answer, NoTranscript};

/// The longest utterance, in seconds. As a WAV file it has 19 MB; OpenAI takes 25 MB.
pub const MAX_UTTERANCE_SECONDS: f32 = 600.0;
/// Time between two questions whether the transcript is still wanted.
const ASK_EVERY: Duration = Duration::from_millis(50);

/// The languages that Whisper knows. whisper.cpp's server fails for any other.
const WHISPER_LANGUAGES: [&str; 100] = [
    "en", "zh", "de", "es", "ru", "ko", "fr", "ja", "pt", "tr", "pl", "ca", "nl", "ar", "sv", "it", "id", "hi", "fi",
    "vi", "he", "uk", "el", "ms", "cs", "ro", "da", "hu", "ta", "no", "th", "ur", "hr", "bg", "lt", "la", "mi", "ml",
    "cy", "sk", "te", "fa", "lv", "bn", "sr", "az", "sl", "kn", "et", "mk", "br", "eu", "is", "hy", "ne", "mn", "bs",
    "kk", "sq", "sw", "gl", "mr", "pa", "si", "km", "sn", "yo", "so", "af", "oc", "ka", "be", "tg", "sd", "gu", "am",
    "yi", "lo", "uz", "fo", "ht", "ps", "tk", "nn", "mt", "sa", "lb", "my", "bo", "tl", "mg", "as", "tt", "haw", "ln",
    "ha", "ba", "jw", "su", "yue",
];

/// The interface of a server that recognises speech.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecognitionApi {
    /// OpenAI's `/v1/audio/transcriptions`: OpenAI, speaches, vLLM and others.
    OpenAi,
    /// The `/inference` of whisper.cpp's server.
    WhisperCpp,
}

/// A recogniser on a server.
#[derive(Debug, Clone)]
pub struct RecognizerConfig {
    /// The interface.
    pub api: RecognitionApi,
    /// The server.
    pub server: ServerConfig,
    /// The model's name on the server. whisper.cpp's server has one model, and ignores it.
    pub model: Option<String>,
    /// The spoken language as an ISO 639-1 code, such as `en`; `auto` lets the server tell it. When unset, the server's
    /// own setting counts, unless a language is expected: OpenAI tells the language, and whisper.cpp takes English.
    pub language: Option<String>,
}

/// Recognises speech on a server. Calls block; see the crate's documentation.
///
/// Whether a server reports the times of words and probabilities depends on its model. Where it reports none, the
/// transcript has no words, a confidence of 1 and no probability of silence.
pub struct ServerRecognizer {
    api: RecognitionApi,
    server: Server,
    handle: Handle,
    name: String,
    model: String,
    language: Option<String>,
    /// True once the server refused the verbose form, as OpenAI's newer models do.
    is_plain: AtomicBool,
    /// The expected languages that the server refused.
    refused: Mutex<BTreeSet<String>>,
}

impl ServerRecognizer {
    /// Checks the configuration. Connects to nothing yet; requests run on `handle`.
    ///
    /// # Errors
    /// [`Failure::Config`] for a wrong address, key, model or language.
    pub fn new(config: RecognizerConfig, handle: Handle) -> Result<Self, ServerError> {
        let (title, default_path) = match config.api {
            RecognitionApi::OpenAi => ("the OpenAI-compatible speech server", "/v1"),
            RecognitionApi::WhisperCpp => ("whisper.cpp's server", ""),
        };
        let server = Server::new(config.server, title, default_path)?;
        let model = config.model.unwrap_or_default();
        if config.api == RecognitionApi::OpenAi && model.trim().is_empty() {
            return Err(server.wrong("model", "must name a model of the server"));
        }
        let is_code = |code: &str| {
            code == "auto" || ((2..=3).contains(&code.len()) && code.bytes().all(|b| b.is_ascii_lowercase()))
        };
        if let Some(language) = &config.language
            && !is_code(language)
        {
            return Err(server.wrong("language", "must be a code of two or three letters, such as en, or auto"));
        }
        let name = if model.is_empty() { server.name().to_owned() } else { format!("{model} on {}", server.name()) };
        let is_plain = AtomicBool::new(false);
        let refused = Mutex::default();
        Ok(Self { api: config.api, server, handle, name, model, language: config.language, is_plain, refused })
    }

    /// Asks whether the server works, and returns what is worth knowing, such as a model that it does not list.
    ///
    /// # Errors
    /// [`ServerError`] if it cannot be reached or rejects the key.
    pub async fn check(&self) -> Result<Vec<String>, ServerError> {
        let mut notes = Vec::new();
        match self.api {
            RecognitionApi::OpenAi => {
                let listed = self.server.ask::<Models>(self.server.get("/models"), self.wait(), MAX_ANSWER_BYTES).await;
                match listed {
                    Ok(models) if models.data.iter().all(|model| model.id != self.model) => {
                        let names: Vec<&str> = models.data.iter().map(|model| &*model.id).take(20).collect();
                        notes.push(format!("it does not list {}; it lists: {}", self.model, names.join(", ")));
                    }
                    // Not every such server has a list.
                    Ok(_) | Err(ServerError { failure: Failure::NoSuchPath { .. } | Failure::Refused { .. }, .. }) => {}
                    Err(error) => return Err(error),
                }
            }
            RecognitionApi::WhisperCpp => {
                let permit = self.server.admit()?;
                let result = self.server.send(self.server.get("/health"), self.wait(), &SentTexts::default()).await;
                self.server.report(permit, &result);
                match result {
                    // Older servers have no such path.
                    Ok(_) | Err(ServerError { failure: Failure::NoSuchPath { .. }, .. }) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        if self.server.is_readable() {
            notes.push("what is said goes there unencrypted: use https where others share the network".to_owned());
        }
        Ok(notes)
    }

    fn wait(&self) -> Duration {
        self.server.timeouts.about
    }

    /// Sends the utterance, which is probably in this language. What the configuration names counts more. A server that
    /// refuses what is only expected is asked without it, now and from then on.
    async fn recognise_expecting(&self, sound: Vec<u8>, expected: Option<String>) -> Result<Answer, ServerError> {
        if self.language.is_some() {
            return self.recognise(sound, self.language.clone()).await;
        }
        let is_refused = |code: &String| self.refused().contains(code);
        let knows = |code: &String| self.api == RecognitionApi::OpenAi || WHISPER_LANGUAGES.contains(&code.as_str());
        let Some(expected) = expected.filter(|code| knows(code) && !is_refused(code)) else {
            return self.recognise(sound, None).await;
        };
        match self.recognise(sound.clone(), Some(expected.clone())).await {
            Err(ServerError { failure: Failure::Refused { .. }, .. }) => {}
            other => return other,
        }
        let answer = self.recognise(sound, None).await;
        // It refused because of the language.
        if answer.is_ok() {
            self.refused().insert(expected);
        }
        answer
    }

    fn refused(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends the utterance, in the plain form if the server refuses the verbose one.
    async fn recognise(&self, sound: Vec<u8>, language: Option<String>) -> Result<Answer, ServerError> {
        if self.api == RecognitionApi::WhisperCpp || self.is_plain.load(Ordering::Relaxed) {
            return self.request(sound, language).await;
        }
        match self.request(sound.clone(), language.clone()).await {
            Err(ServerError { failure: Failure::Refused { .. }, .. }) => {}
            other => return other,
        }
        self.is_plain.store(true, Ordering::Relaxed);
        let answer = self.request(sound, language).await;
        // It refused for another reason.
        if answer.is_err() {
            self.is_plain.store(false, Ordering::Relaxed);
        }
        answer
    }

    async fn request(&self, sound: Vec<u8>, language: Option<String>) -> Result<Answer, ServerError> {
        let file = Part::bytes(sound).file_name("utterance.wav").mime_str("audio/wav");
        let file = file.map_err(|error| self.server.protocol(error.to_string()))?;
        let form = Form::new().part("file", file);
        let (path, form) = match self.api {
            RecognitionApi::OpenAi => {
                let form = form.text("model", self.model.clone());
                let form = if self.is_plain.load(Ordering::Relaxed) {
                    form.text("response_format", "json")
                } else {
                    // Both in this order; speaches refuses any other list.
                    form.text("response_format", "verbose_json")
                        .text("timestamp_granularities[]", "word")
                        .text("timestamp_granularities[]", "segment")
                };
                // Without a language, such servers tell it by the sound.
                let language = language.filter(|language| language != "auto");
                ("/audio/transcriptions", with(form, "language", language))
            }
            RecognitionApi::WhisperCpp => {
                // Without this, newer servers run the encoder once more to list the languages.
                let form = form.text("response_format", "verbose_json").text("no_language_probabilities", "true");
                ("/inference", with(form, "language", language))
            }
        };
        let request = self.server.post(path).multipart(form);
        self.server.ask(request, self.server.timeouts.first, MAX_ANSWER_BYTES).await
    }
}

fn with(form: Form, name: &'static str, value: Option<String>) -> Form {
    match value {
        Some(value) => form.text(name, value),
        None => form,
    }
}

impl SpeechToText for ServerRecognizer {
    fn name(&self) -> &str {
        &self.name
    }

    fn transcribe(&self, utterance: &Audio, is_wanted: &(dyn Fn() -> bool + Sync)) -> Result<Transcript, Error> {
        self.transcribe_in(utterance, None, is_wanted)
    }

    fn transcribe_in(
        &self,
        utterance: &Audio,
        language: Option<&str>,
        is_wanted: &(dyn Fn() -> bool + Sync),
    ) -> Result<Transcript, Error> {
        if utterance.rate != RECOGNITION_RATE {
            return Err(Error::WrongRate { found: utterance.rate, wanted: RECOGNITION_RATE });
        }
        let length = utterance.duration();
        if length.as_secs_f32() > MAX_UTTERANCE_SECONDS {
            return Err(Error::TooLong { seconds: length.as_secs_f32(), most: MAX_UTTERANCE_SECONDS });
        }
        if utterance.samples.is_empty() {
            return Ok(Transcript { text: "".into(), words: Vec::new(), confidence: 0.0, no_speech: 1.0 });
        }
        let mut answer = pin!(self.recognise_expecting(wav_file(utterance), language.map(recognised_language)));
        let answer = loop {
            if !is_wanted() {
                return Err(Error::Cancelled);
            }
            // `is_wanted` runs outside of the runtime, so it may block.
            if let Ok(answer) = self.handle.block_on(async { timeout(ASK_EVERY, answer.as_mut()).await }) {
                break answer?;
            }
        };
        let transcript = answer.transcript(length).map_err(|missing| match missing {
            NoTranscript::Error(body) => {
                self.server.error(Failure::Refused { status: 200, message: self.server.message(&body) })
            }
            NoTranscript::NoText => self.server.protocol("a transcript without a text"),
        });
        Ok(transcript?)
    }
}

#[derive(Deserialize)]
struct Models {
    #[serde(default)]
    data: Vec<Model>,
}

#[derive(Deserialize)]
struct Model {
    id: String,
}
