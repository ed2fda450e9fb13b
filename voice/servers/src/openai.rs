//! OpenAI's `/v1/audio/speech`, as OpenAI, Kokoro-FastAPI, openedai-speech, speaches and Orpheus-FastAPI have it.

use azera_server_messages::SentTexts;
use azera_voice_api::Style;
use azera_voice_recordings::Pitch;
use reqwest::Response;
use serde::Deserialize;
use serde_json::json;

use crate::error::{Failure, ServerError};
use crate::server::{MAX_ANSWER_BYTES, Server};

/// The paces that these servers take.
const PACES: std::ops::RangeInclusive<f32> = 0.25..=4.0;

/// The most that a mood changes a pitch; a little more, because factors are rounded.
const MOOD_PITCH: f32 = 0.041;

/// The form of the sound that is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SoundFormat {
    /// A WAV file, which says its rate.
    Wav,
    /// Bare 16-bit samples: 24,000 a second unless the content type names another rate.
    Pcm,
}

/// The list of `/audio/voices`. Kokoro-FastAPI gives ids and names, or names alone in older versions, as
/// Orpheus-FastAPI does. OpenAI has no such list.
#[derive(Deserialize)]
struct Voices {
    voices: Vec<Listed>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Listed {
    Name(String),
    Object { id: String },
}

/// Asks for the voices; `None` if the server has no list.
pub(crate) async fn voices(server: &Server) -> Result<Option<Vec<String>>, ServerError> {
    let request = server.get("/audio/voices");
    match server.ask::<Voices>(request, server.timeouts.about, MAX_ANSWER_BYTES).await {
        Ok(listed) => Ok(Some(
            listed
                .voices
                .into_iter()
                .map(|voice| match voice {
                    Listed::Name(id) | Listed::Object { id } => id,
                })
                .collect(),
        )),
        Err(ServerError { failure: Failure::NoSuchPath { .. } | Failure::Refused { .. }, .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Asks for the sound of a sentence. Returns it with the pitch that is still to be made of it.
pub(crate) async fn speak(
    server: &Server,
    model: &str,
    format: SoundFormat,
    sentence: &str,
    style: &Style,
) -> Result<(Response, Pitch), ServerError> {
    let (pitch, pace) = Pitch::at_pace(audible(style.pitch), style.pace, &PACES);
    let body = json!({
        "model": model,
        "input": sentence,
        "voice": style.voice,
        "response_format": match format {
            SoundFormat::Wav => "wav",
            SoundFormat::Pcm => "pcm",
        },
        "speed": pace,
    });
    let request = server.post("/audio/speech").json(&body);
    Ok((server.send(request, server.timeouts.first, &SentTexts::of_text(sentence)).await?, pitch))
}

/// Returns a pitch that is worth another pace and resampling. A mood moves the pitch of every persona by up to 4 %, which is
/// left out.
fn audible(pitch: f32) -> f32 {
    if (pitch - 1.0).abs() <= MOOD_PITCH { 1.0 } else { pitch }
}
