use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Secret;

// The doc comments of these fields are also the comments of azera.example.toml, so they address the operator.

/// The interface of a server that recognises speech.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RecognitionApi {
    /// no server: the speech model on this machine
    None,
    /// OpenAI's /v1/audio/transcriptions: OpenAI, speaches, vLLM and others
    #[serde(rename = "openai")]
    OpenAi,
    /// the /inference of whisper.cpp's server
    WhisperCpp,
}

/// A server that recognises speech instead of the model on this machine. Azera sends it what people say. While it does
/// not answer, the model on this machine takes its place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RecognitionServer {
    /// The interface of the server.
    pub api: RecognitionApi,
    /// The server's address; with its path for OpenAI's interface. When unset: the default address of whisper.cpp's
    /// server on this machine.
    #[schemars(url, length(min = 1, max = 2048), example = "http://127.0.0.1:8080")]
    pub url: Option<String>,
    /// The model's name on the server. whisper.cpp's server has one model and needs no name.
    #[schemars(length(min = 1, max = 200), example = "whisper-1")]
    pub model: Option<String>,
    /// The spoken language, as a code such as `en`; `auto` lets the server tell it by the sound. When unset, the
    /// server's own setting counts: OpenAI tells it, and whisper.cpp takes English.
    #[schemars(length(min = 2, max = 4), example = &"en")]
    pub language: Option<String>,
    /// The server's key, if it requires one. Better set AZERA__RECOGNITION_SERVER__KEY than write it here.
    #[schemars(length(min = 1, max = 1024), example = "sk-...", extend("writeOnly" = true))]
    pub key: Option<Secret>,
    /// Seconds to wait for a transcript.
    #[schemars(range(min = 1, max = 600))]
    pub timeout_s: u64,
}

impl Default for RecognitionServer {
    fn default() -> Self {
        Self { api: RecognitionApi::None, url: None, model: None, language: None, key: None, timeout_s: 20 }
    }
}

/// The interface of a server that speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SpeechApi {
    /// no server: the voice on this machine
    None,
    /// OpenAI's /v1/audio/speech: OpenAI, Kokoro-FastAPI, openedai-speech, Orpheus-FastAPI and others
    #[serde(rename = "openai")]
    OpenAi,
    /// an XTTS server: Coqui's streaming server or xtts-api-server
    Xtts,
}

/// The form of the sound that an OpenAI-compatible server is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SpeechFormat {
    /// a WAV file, which says its rate
    Wav,
    /// bare 16-bit samples, 24,000 a second unless the server says otherwise
    Pcm,
}

/// A server that speaks instead of the voice on this machine. Azera sends it its replies, sentence by sentence. While
/// it does not answer, the voice on this machine takes its place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SpeechServer {
    /// The interface of the server.
    pub api: SpeechApi,
    /// The server's address; with its path for OpenAI's interface. When unset: the default address of xtts-api-server
    /// on this machine.
    #[schemars(url, length(min = 1, max = 2048), example = "http://127.0.0.1:8880/v1")]
    pub url: Option<String>,
    /// The model's name on an OpenAI-compatible server.
    #[schemars(length(min = 1, max = 200), example = &"kokoro")]
    pub model: Option<String>,
    /// The voice, which the server need not list, such as a mix. When unset: the first of the server's list. A persona
    /// may name another.
    #[schemars(length(min = 1, max = 200), example = &"af_heart")]
    pub voice: Option<String>,
    /// The language that is spoken. An XTTS server needs it.
    #[schemars(length(min = 2, max = 16))]
    pub language: String,
    /// The form of the sound that an OpenAI-compatible server is asked for.
    pub format: SpeechFormat,
    /// The server's key, if it requires one. Better set AZERA__SPEECH_SERVER__KEY than write it here.
    #[schemars(length(min = 1, max = 1024), example = "sk-...", extend("writeOnly" = true))]
    pub key: Option<Secret>,
    /// Seconds to wait for the first sound of a sentence.
    #[schemars(range(min = 1, max = 600))]
    pub timeout_s: u64,
}

impl Default for SpeechServer {
    fn default() -> Self {
        Self {
            api: SpeechApi::None,
            url: None,
            model: None,
            voice: None,
            language: "en".into(),
            format: SpeechFormat::Wav,
            key: None,
            timeout_s: 20,
        }
    }
}

impl RecognitionServer {
    /// Returns the keys that the interface needs and that are not set, each with what is wrong.
    pub(crate) fn missing(&self) -> Vec<(&'static str, String)> {
        if self.api == RecognitionApi::OpenAi {
            openai_needs("recognition_server", &self.url, &self.model)
        } else {
            Vec::new()
        }
    }
}

impl SpeechServer {
    /// Returns the keys that the interface needs and that are not set, each with what is wrong.
    pub(crate) fn missing(&self) -> Vec<(&'static str, String)> {
        if self.api == SpeechApi::OpenAi { openai_needs("speech_server", &self.url, &self.model) } else { Vec::new() }
    }
}

fn openai_needs(section: &str, url: &Option<String>, model: &Option<String>) -> Vec<(&'static str, String)> {
    let mut missing = Vec::new();
    if model.is_none() {
        missing.push(("model", format!("`{section}.model` must name a model of the server")));
    }
    if url.is_none() {
        missing.push(("url", format!("`{section}.url` must be set: such a server can be anywhere")));
    }
    missing
}
