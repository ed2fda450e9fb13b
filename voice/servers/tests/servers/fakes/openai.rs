//! OpenAI's `/v1/audio` as OpenAI recognises and Kokoro-FastAPI speaks, with a key.

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Multipart};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde_json::{Value, json};

use super::{Fields, State, Then, has_key, json_body, samples_of, seconds_of, sound_response, wav_head};

pub const VOICES: [&str; 3] = ["af_heart", "bf_emma", "am_adam"];

pub fn routes(state: Arc<State>) -> Router {
    let (hearing, speaking, listing) = (state.clone(), state.clone(), state);
    Router::new()
        .route("/v1/audio/transcriptions", post(move |headers, form| transcribe(hearing.clone(), headers, form)))
        .route("/v1/audio/speech", post(move |headers, body| speak(speaking.clone(), headers, body)))
        .route(
            "/v1/audio/voices",
            get(move |headers: HeaderMap| {
                let has_no_list = listing.has_no_list;
                async move {
                    let voices: Vec<Value> = VOICES.iter().map(|id| json!({"id": id, "name": id})).collect();
                    match has_key(&headers) {
                        false => no_key(),
                        true if has_no_list => refusal(404, "Invalid URL (GET /v1/audio/voices)", None),
                        true => json_body(&json!({"voices": voices})).into_response(),
                    }
                }
            }),
        )
        .route(
            "/v1/models",
            get(|headers: HeaderMap| async move {
                let models = json!({"object": "list", "data": [{"id": "whisper-1", "object": "model"}]});
                if has_key(&headers) { json_body(&models).into_response() } else { no_key() }
            }),
        )
        .layer(DefaultBodyLimit::max(64 << 20))
}

fn refusal(status: u16, message: &str, parameter: Option<&str>) -> Response {
    let error =
        json!({"error": {"message": message, "type": "invalid_request_error", "param": parameter, "code": null}});
    (StatusCode::from_u16(status).unwrap(), json_body(&error)).into_response()
}

fn no_key() -> Response {
    refusal(401, "You didn't provide an API key.", None)
}

async fn transcribe(state: Arc<State>, headers: HeaderMap, form: Multipart) -> Response {
    if !has_key(&headers) {
        return no_key();
    }
    let fields = Fields::read(form).await;
    state.note(fields.as_json());
    if let Some(answer) = state.trouble("").await {
        return answer;
    }
    let Some((_, name, bytes)) = fields.file("file") else {
        return refusal(400, "you must provide a file", Some("file"));
    };
    if fields.text("model").is_none_or(|model| model != "whisper-1") {
        return refusal(404, "The model does not exist", Some("model"));
    }
    if bytes.len() > 26_214_400 {
        return refusal(413, "Maximum content size limit (26214400) exceeded", None);
    }
    let Some(seconds) = seconds_of(bytes).filter(|_| name.ends_with(".wav")) else {
        return refusal(400, "Invalid file format.", Some("file"));
    };
    if fields.text("language").is_some_and(|language| !["en", "de"].contains(&language)) {
        return refusal(400, "Language parameter must be specified in ISO-639-1 format.", Some("language"));
    }
    let granularities = fields.all("timestamp_granularities[]");
    let text = format!("I heard {seconds:.1} seconds.");
    match fields.text("response_format") {
        Some("json") | None if granularities.is_empty() => json_body(&json!({"text": text})).into_response(),
        Some("verbose_json") if state.is_plain => {
            refusal(400, "response_format 'verbose_json' is not compatible with this model.", Some("response_format"))
        }
        Some("verbose_json") => {
            let words = ["I", "heard"].map(|word| json!({"word": word, "start": 0.1, "end": 0.4}));
            let segment = json!({"id": 0, "start": 0.0, "end": seconds, "text": format!(" {text}"), "avg_logprob": -0.25,
                                 "compression_ratio": 0.9, "no_speech_prob": 0.125, "tokens": [1, 2]});
            let mut answer = json!({"task": "transcribe", "language": "english", "duration": seconds, "text": text});
            if granularities.contains(&"word") {
                answer["words"] = json!(words);
            }
            if granularities.is_empty() || granularities.contains(&"segment") {
                answer["segments"] = json!([segment]);
            }
            json_body(&answer).into_response()
        }
        _ => refusal(400, "Invalid response_format or timestamp_granularities.", Some("response_format")),
    }
}

async fn speak(state: Arc<State>, headers: HeaderMap, body: Bytes) -> Response {
    if !has_key(&headers) {
        return no_key();
    }
    let is_json = headers.get(header::CONTENT_TYPE).is_some_and(|kind| kind.as_bytes() == b"application/json");
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let unprocessable = |field: &str| {
        let detail =
            json!({"detail": [{"type": "missing", "loc": ["body", field], "msg": "Field required", "input": body}]});
        (StatusCode::UNPROCESSABLE_ENTITY, json_body(&detail)).into_response()
    };
    state.note(body.clone());
    let Some(text) = body["input"].as_str().filter(|_| is_json) else { return unprocessable("input") };
    if let Some(answer) = state.trouble(text).await {
        return answer;
    }
    let invalid = |message: String| {
        let detail =
            json!({"detail": {"error": "validation_error", "message": message, "type": "invalid_request_error"}});
        (StatusCode::BAD_REQUEST, json_body(&detail)).into_response()
    };
    if body["model"] != "kokoro" {
        return invalid(format!("Unsupported model: {}", body["model"]));
    }
    let voice = body["voice"].as_str().unwrap_or("af_heart");
    if !voice.split('+').all(|part| VOICES.contains(&part)) {
        return invalid(format!("Voice '{voice}' not found. Available voices: {}", VOICES.join(", ")));
    }
    let pace = body["speed"].as_f64().unwrap_or(1.0);
    if !(0.25..=4.0).contains(&pace) {
        return unprocessable("speed");
    }
    let samples = Bytes::from(samples_of(text, pace));
    // Pieces that cut samples in two.
    let cut = |samples: Bytes| {
        let third = (samples.len() / 3) | 1;
        vec![samples.slice(..third), samples.slice(third..)]
    };
    match body["response_format"].as_str() {
        Some("pcm") => sound_response("audio/pcm", cut(samples), Then::End),
        Some("wav") => {
            let mut file = wav_head(24_000);
            file[40..44].copy_from_slice(&u32::MAX.to_le_bytes());
            sound_response("audio/wav", [vec![Bytes::from(file)], cut(samples)].concat(), Then::End)
        }
        _ => sound_response("audio/mpeg", vec![Bytes::from_static(b"ID3 music")], Then::End),
    }
}
