//! Speech: texts as sound, and recordings of voices that a server clones.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::Response;
use azera_adapter::{FileContent, SpeechAnswer, SpeechRequest};
use azera_types::PersonaId;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Done, List};
use crate::accounts::{Caller, Scope};
use crate::endpoint::{Endpoint, Files, Json, Need, Parted};
use crate::media::{self, File};
use crate::problem::Problem;
use crate::voice_samples::{ListedSample, NewSample, SampleError};
use crate::web::Shared;

/// The chat whose persona speaks.
const HOME: &str = "main";

/// Longest text, in bytes. `voice.max_seconds` limits the sound.
const MAX_TEXT_BYTES: usize = 32 << 10;

/// Seconds after which a client may ask a busy voice again.
const BUSY_S: u64 = 5;

/// Largest recording, and room for the other parts of the body.
const MAX_SAMPLE_BYTES: usize = 10 << 20;
const FORM_BYTES: usize = 64 << 10;

/// The media type of every sound.
const WAV: &str = "audio/wav";

/// Where the recordings are.
const SAMPLES: &str = "/api/voice-samples/";

/// A text to speak.
#[derive(Deserialize, JsonSchema)]
struct NewSpeech {
    /// The text.
    text: String,
    /// Is not read: the operator chooses what speaks.
    #[serde(default)]
    #[expect(dead_code, reason = "clients send it")]
    model: Option<String>,
    /// The address of an uploaded recording whose voice must speak. An XTTS server can do that.
    #[serde(default)]
    voice_sample_url: Option<String>,
    /// Is not read: no voice here is made from a description.
    #[serde(default)]
    #[expect(dead_code, reason = "clients send it")]
    voice_description: Option<String>,
    /// The persona that speaks, with its voice, pace and liveliness.
    #[serde(default)]
    persona_id: Option<String>,
}

/// A spoken text.
#[derive(Debug, Serialize, JsonSchema)]
struct Speech {
    /// The sound: a WAV file (16 bit, mono) as base64.
    audio_base64: String,
    /// Always `wav`.
    format: &'static str,
    /// How long it lasts, in thousandths of a second.
    duration_ms: u64,
}

/// Whether something speaks, and whether something hears.
#[derive(Debug, Serialize, JsonSchema)]
struct VoiceStatus {
    /// Whether texts can be spoken.
    available: bool,
    /// Why not, and how that changes; null if something speaks.
    why: Option<String>,
    /// Whether voice messages are heard.
    hears: bool,
    /// Why not, and how that changes; null if they are heard.
    why_deaf: Option<String>,
}

/// A recording of a voice.
#[derive(Debug, Serialize, JsonSchema)]
struct Sample {
    /// The name of its file.
    filename: String,
    /// Where it is.
    url: String,
    /// The name of the voice.
    name: String,
    /// Whose voice it is, and that this person agreed.
    consent: String,
    /// How long it lasts.
    seconds: f32,
    /// When it was added (RFC 3339).
    added_at: String,
}

/// A recording that was kept.
#[derive(Debug, Serialize, JsonSchema)]
struct Kept {
    /// Always true.
    success: bool,
    /// The name of its file. Without `.wav`, it is the name of the voice.
    filename: String,
    /// Where it is.
    url: String,
    /// Its size in bytes, as it is kept.
    size: usize,
}

pub(super) fn endpoints() -> Vec<Endpoint> {
    let admin = Need::Scope(Scope::Admin);
    let mut upload = Endpoint::new(
        Method::POST,
        "/api/voice-samples/upload",
        admin,
        "Keep a recording of a voice: WAV, MP3, Ogg or FLAC. `name` names the voice, `consent` says whose it is and that this \
         person agreed",
        upload,
    )
    .takes_file()
    .answers::<Kept>();
    upload.body_bytes = MAX_SAMPLE_BYTES + FORM_BYTES;
    vec![
        Endpoint::new(Method::POST, "/api/tts/synthesize", Need::Scope(Scope::Chat), "Speak a text", synthesize)
            .takes::<NewSpeech>()
            .answers::<Speech>()
            .also(&[(409, "Nothing speaks here. The body says how to change that.")]),
        Endpoint::new(
            Method::GET,
            "/api/tts/status",
            Need::Scope(Scope::Chat),
            "Tell whether something speaks and hears, and if not, how that changes",
            status,
        )
        .answers::<VoiceStatus>(),
        upload,
        Endpoint::new(Method::GET, "/api/voice-samples", admin, "List the recordings of voices", samples)
            .answers::<List<Sample>>(),
        Endpoint::new(Method::DELETE, "/api/voice-samples/{filename}", admin, "Delete a recording of a voice", remove)
            .answers::<Done>(),
        Endpoint::new(Method::GET, "/api/voice-samples/{filename}", admin, "Get a recording of a voice", sample)
            .serves(WAV, "The recording as it is kept: 24 kHz, mono, 16 bit."),
    ]
}

async fn synthesize(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Json(new): Json<NewSpeech>,
) -> Result<axum::Json<Speech>, Problem> {
    if new.text.trim().is_empty() {
        return Err(Problem::invalid("`text` is empty."));
    }
    if new.text.len() > MAX_TEXT_BYTES {
        let detail = format!("A text to speak has at most {MAX_TEXT_BYTES} bytes.");
        return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", detail));
    }
    let given = |text: Option<String>| text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
    let persona = given(new.persona_id).map(PersonaId::new).transpose()?;
    if let Some(persona) = &persona
        && !shared.answering(&caller).await?.iter().any(|known| known.id == *persona)
    {
        return Err(Problem::not_found("persona"));
    }
    let voice = given(new.voice_sample_url).map(|url| voice_of(&url)).transpose()?;
    shared.count_message(&caller)?;
    let request = SpeechRequest { text: new.text, persona, voice };
    let at = shared.reading(&caller, HOME)?;
    match shared.speech()?.say(&shared.platform, at, request).await? {
        SpeechAnswer::Sound { wav: FileContent(bytes), duration } => Ok(axum::Json(Speech {
            audio_base64: STANDARD.encode(bytes),
            format: "wav",
            duration_ms: u64::try_from(duration.as_millis()).unwrap_or(u64::MAX),
        })),
        SpeechAnswer::Refused(why) => Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "refused", why)),
        SpeechAnswer::Busy => Err(Problem::too_many(BUSY_S)),
        SpeechAnswer::Unavailable(why) => Err(Problem::unconfigured("speech_unavailable", why)),
    }
}

async fn status(State(shared): State<Arc<Shared>>) -> Result<axum::Json<VoiceStatus>, Problem> {
    let speech = shared.speech()?;
    let (why, why_deaf) = (speech.silence(), speech.deafness());
    Ok(axum::Json(VoiceStatus { available: why.is_none(), why, hears: why_deaf.is_none(), why_deaf }))
}

/// Returns the voice that the address of a recording stands for.
fn voice_of(url: &str) -> Result<String, Problem> {
    let name = url.rsplit('/').next().and_then(|file| file.strip_suffix(".wav")).filter(|name| !name.is_empty());
    let unknown = || Problem::invalid(format!("`voice_sample_url` is an address that `{SAMPLES}upload` returned."));
    name.map(str::to_owned).ok_or_else(unknown)
}

async fn upload(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Files(files): Files,
) -> Result<axum::Json<Kept>, Problem> {
    shared.count_message(&caller)?;
    let file = super::form::one_file(files, MAX_SAMPLE_BYTES).await?;
    let consent = file.text("consent").map(str::to_owned);
    // An owner who uploads a recording answers for it, also without words of their own.
    let consent = consent
        .unwrap_or_else(|| "The owner uploaded this over the web and states that the speaker agreed.".to_owned());
    let name = file.text("name").map_or_else(|| file.name.clone(), str::to_owned);
    let stem = name.rsplit_once('.').map_or(name.as_str(), |(stem, _)| stem);
    let sample = NewSample { name: super::form::plain_name(stem, "voice"), consent, bytes: file.bytes };
    let kept = shared.samples()?.add(sample).await.map_err(|error| match error {
        SampleError::Refused(why) => Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "refused", why),
        SampleError::Store(error) => Problem::internal(&error),
    })?;
    let filename = format!("{}.wav", kept.name);
    Ok(axum::Json(Kept { success: true, url: format!("{SAMPLES}{filename}"), filename, size: kept.bytes }))
}

/// Returns the name of the recording in a file's name.
fn name_in(filename: &str) -> Result<&str, Problem> {
    filename.strip_suffix(".wav").ok_or_else(|| Problem::not_found("recording"))
}

impl From<ListedSample> for Sample {
    fn from(sample: ListedSample) -> Self {
        let ListedSample { name, consent, seconds, added_at } = sample;
        let filename = format!("{name}.wav");
        Self { url: format!("{SAMPLES}{filename}"), filename, name, consent, seconds, added_at }
    }
}

async fn samples(State(shared): State<Arc<Shared>>) -> Result<axum::Json<List<Sample>>, Problem> {
    let kept = shared.samples()?.list().await.map_err(|error| Problem::internal(&error))?;
    Ok(axum::Json(kept.into_iter().map(Sample::from).collect::<Vec<_>>().into()))
}

async fn remove(
    State(shared): State<Arc<Shared>>,
    Parted(filename): Parted<String>,
) -> Result<axum::Json<Done>, Problem> {
    let removed = shared.samples()?.remove(name_in(&filename)?).await.map_err(|error| Problem::internal(&error))?;
    if removed { Ok(axum::Json(Done { status: "deleted" })) } else { Err(Problem::not_found("recording")) }
}

async fn sample(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    Parted(filename): Parted<String>,
) -> Result<Response, Problem> {
    let found = shared.samples()?.wav(name_in(&filename)?).await.map_err(|error| Problem::internal(&error))?;
    let bytes = found.ok_or_else(|| Problem::not_found("recording"))?;
    Ok(media::answer(&headers, File { bytes, media_type: WAV, name: filename }))
}
