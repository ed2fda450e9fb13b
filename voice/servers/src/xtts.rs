//! Both kinds of XTTS server.
//!
//! Coqui's streaming server gives the numbers of each studio voice (`/studio_speakers`), computes those of a sample
//! (`/clone_speaker`), and takes them with each sentence (`/tts_stream`). xtts-api-server names the samples in its own
//! folder (`/speakers`) and takes a name (`/tts_stream`, `/tts_to_audio/`); a sample cannot be sent to it. Neither takes
//! a pace.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use azera_server_messages::SentTexts;
use reqwest::Response;
use reqwest::multipart::{Form, Part};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::error::{Failure, ServerError};
use crate::samples::{Numbers, Samples};
use crate::server::{MAX_ANSWER_BYTES, MAX_LATENTS_BYTES, Server};

/// The longest sentence that goes into an address, in bytes. Longer ones are sent as a body, and are not streamed.
const MAX_QUERY_BYTES: usize = 2_000;
/// The most numbers of a voice.
const MAX_NUMBERS: usize = 1 << 20;

/// The numbers that stand for a voice.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Latents {
    gpt_cond_latent: Vec<Vec<f32>>,
    speaker_embedding: Vec<f32>,
}

impl Latents {
    fn is_usable(&self) -> bool {
        let numbers = self.gpt_cond_latent.iter().map(Vec::len).sum::<usize>() + self.speaker_embedding.len();
        !self.speaker_embedding.is_empty() && !self.gpt_cond_latent.is_empty() && numbers <= MAX_NUMBERS
    }
}

/// What an XTTS server is and has.
pub(crate) struct Found {
    kind: Kind,
    /// The codes of the languages that it speaks.
    languages: Vec<String>,
}

enum Kind {
    /// Coqui's streaming server, with the numbers of its own voices.
    Streaming(BTreeMap<String, Arc<Latents>>),
    /// xtts-api-server, with the names of its samples. True once it refused to stream.
    Api { voices: Vec<String>, is_whole: AtomicBool },
}

impl Found {
    /// Returns the names of the server's own voices.
    pub(crate) fn voices(&self) -> Vec<String> {
        match &self.kind {
            Kind::Streaming(latents) => latents.keys().cloned().collect(),
            Kind::Api { voices, .. } => voices.clone(),
        }
    }

    /// Returns true if a sample can be sent to the server.
    pub(crate) fn takes_samples(&self) -> bool {
        matches!(self.kind, Kind::Streaming(_))
    }

    /// Returns the server's code of a language, such as `zh-cn` for `zh`.
    pub(crate) fn language(&self, wanted: &str) -> Option<&str> {
        let wanted = wanted.to_lowercase();
        let primary = wanted.split('-').next().unwrap_or_default();
        let exact = self.languages.iter().find(|code| **code == wanted);
        let same = |code: &&String| code.split('-').next() == Some(primary);
        exact.or_else(|| self.languages.iter().find(same)).map(String::as_str)
    }

    /// Returns the codes of the languages.
    pub(crate) fn languages(&self) -> &[String] {
        &self.languages
    }
}

/// The list of languages: codes alone, or by their names.
#[derive(Deserialize)]
#[serde(untagged)]
enum Languages {
    Codes(Vec<String>),
    Named { languages: BTreeMap<String, String> },
}

#[derive(Deserialize)]
struct Speaker {
    voice_id: String,
}

/// Asks which kind of server it is, and which voices and languages it has.
pub(crate) async fn find(server: &Server) -> Result<Found, ServerError> {
    let wait = server.timeouts.about;
    let studio = server.ask::<BTreeMap<String, Latents>>(server.get("/studio_speakers"), wait, MAX_LATENTS_BYTES).await;
    let kind = match studio {
        Ok(voices) => {
            let usable = voices.into_iter().filter(|(_, latents)| latents.is_usable());
            Kind::Streaming(usable.map(|(name, latents)| (name, Arc::new(latents))).collect())
        }
        Err(ServerError { failure: Failure::NoSuchPath { .. }, .. }) => {
            let speakers: Vec<Speaker> = server.ask(server.get("/speakers"), wait, MAX_ANSWER_BYTES).await?;
            let voices = speakers.into_iter().map(|speaker| speaker.voice_id).collect();
            Kind::Api { voices, is_whole: AtomicBool::new(false) }
        }
        Err(error) => return Err(error),
    };
    let languages = match server.ask(server.get("/languages"), wait, MAX_ANSWER_BYTES).await? {
        Languages::Codes(codes) => codes,
        Languages::Named { languages } => languages.into_values().collect(),
    };
    Ok(Found { kind, languages })
}

/// Asks for the sound of a sentence.
pub(crate) async fn speak(
    server: &Server,
    found: &Found,
    sentence: &str,
    voice: &str,
    language: &str,
    samples: &dyn Samples,
) -> Result<Response, ServerError> {
    let language = found.language(language).ok_or_else(|| {
        server.wrong("language", &format!("is none that it speaks; it speaks {}", found.languages().join(", ")))
    })?;
    let sent = SentTexts::of_text(sentence);
    let wait = server.timeouts.first;
    match &found.kind {
        Kind::Streaming(known) => {
            let latents = latents(server, known, voice, samples).await?;
            let mut body = serde_json::to_value(&*latents).unwrap_or_default();
            body["text"] = sentence.into();
            body["language"] = language.into();
            body["add_wav_header"] = true.into();
            // The server takes this number as a text.
            body["stream_chunk_size"] = "20".into();
            server.send(server.post("/tts_stream").json(&body), wait, &sent).await
        }
        Kind::Api { is_whole, .. } => {
            let sentence = not_a_file(sentence);
            let mut is_refused = false;
            if sentence.len() <= MAX_QUERY_BYTES && !is_whole.load(Ordering::Relaxed) {
                let query = [("text", &*sentence), ("speaker_wav", voice), ("language", language)];
                match server.send(server.get("/tts_stream").query(&query), wait, &sent).await {
                    // It streams only with a model of its own.
                    Err(ServerError { failure: Failure::Refused { .. } | Failure::NoSuchPath { .. }, .. }) => {
                        is_refused = true;
                    }
                    other => return other,
                }
            }
            let body = json!({"text": sentence, "speaker_wav": voice, "language": language});
            // Without the slash at the end, it redirects.
            let spoken = server.send(server.post("/tts_to_audio/").json(&body), wait, &sent).await;
            // A sentence that it refuses either way says nothing about streaming.
            if is_refused && spoken.is_ok() {
                is_whole.store(true, Ordering::Relaxed);
            }
            spoken
        }
    }
}

/// Returns the sentence in a form that is no file name: xtts-api-server would read a text file of that name aloud.
fn not_a_file(sentence: &str) -> String {
    let is_file = sentence.trim_end().to_lowercase().ends_with(".txt");
    if is_file { format!("{} .", sentence.trim_end()) } else { sentence.to_owned() }
}

/// Returns the numbers of a voice: of the server's own, or else of a sample, for which they are computed once. They are
/// kept with the sample alone, and go with it.
async fn latents(
    server: &Server,
    own: &BTreeMap<String, Arc<Latents>>,
    voice: &str,
    samples: &dyn Samples,
) -> Result<Arc<Latents>, ServerError> {
    let is_gone = || server.protocol("no numbers of the voice");
    let Some(slot) = samples.numbers(voice) else { return own.get(voice).cloned().ok_or_else(is_gone) };
    if let Some(known) = slot.get() {
        return Ok(known);
    }
    let wav = samples.wav(voice).ok_or_else(is_gone)?;
    let latents = Arc::new(clone_speaker(server, wav).await?);
    // The sample may have been removed meanwhile, or another one be in its place.
    if !samples.numbers(voice).is_some_and(|now| Numbers::is_same(&now, &slot)) {
        return Err(is_gone());
    }
    slot.set(latents.clone());
    Ok(latents)
}

/// Lets the server compute the numbers of a recording.
async fn clone_speaker(server: &Server, wav: Vec<u8>) -> Result<Latents, ServerError> {
    let file = Part::bytes(wav).file_name("sample.wav").mime_str("audio/wav");
    let file = file.map_err(|error| server.protocol(error.to_string()))?;
    let request = server.post("/clone_speaker").multipart(Form::new().part("wav_file", file));
    let wait = server.timeouts.about;
    let response = server.send(request, wait, &SentTexts::default()).await?;
    let body = server.read(response, MAX_ANSWER_BYTES, wait).await?;
    let latents = serde_json::from_slice::<Value>(&body).ok().and_then(|body| serde_json::from_value(body).ok());
    latents.filter(Latents::is_usable).ok_or_else(|| server.protocol("no numbers for a sample of a voice"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_language_is_found_by_its_code() {
        let languages = ["en", "pt", "zh-cn"].map(str::to_owned).to_vec();
        let found = Found { kind: Kind::Streaming(BTreeMap::new()), languages };
        for (wanted, code) in
            [("en", Some("en")), ("en-GB", Some("en")), ("pt-BR", Some("pt")), ("zh", Some("zh-cn")), ("eo", None)]
        {
            assert_eq!(found.language(wanted), code, "{wanted}");
        }
    }

    #[test]
    fn a_sentence_is_never_a_file_name() {
        assert_eq!(not_a_file("Read notes.txt"), "Read notes.txt .");
        assert_eq!(not_a_file("/etc/SECRET.TXT "), "/etc/SECRET.TXT .");
        assert_eq!(not_a_file("Good morning."), "Good morning.");
    }
}
