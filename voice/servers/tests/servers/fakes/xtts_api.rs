//! xtts-api-server: names of samples in its own folder, and errors as 500 or as a stream that breaks off.

use std::collections::HashMap;
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use serde_json::{Value, json};

use super::{State, Then, json_body, samples_of, sound_response, wav, wav_head};

pub const SPEAKERS: [&str; 2] = ["calm_female", "male"];

pub fn routes(state: Arc<State>) -> Router {
    let (streaming, whole) = (state.clone(), state);
    let languages =
        || async { json_body(&json!({"languages": {"English": "en", "German": "de", "Chinese": "zh-cn"}})) };
    let speakers = || async {
        let speaker =
            |name: &&str| json!({"name": name, "voice_id": name, "preview_url": format!("http://x/sample/{name}.wav")});
        json_body(&json!(SPEAKERS.iter().map(speaker).collect::<Vec<_>>()))
    };
    Router::new()
        .route("/languages", get(languages))
        .route("/speakers", get(speakers))
        .route("/tts_stream", get(move |uri| stream(streaming.clone(), uri)))
        .route("/tts_to_audio/", post(move |headers, body| speak(whole.clone(), headers, body)))
        .route("/tts_to_audio", post(|| async { Redirect::temporary("/tts_to_audio/") }))
        .fallback(|| async { (StatusCode::NOT_FOUND, json_body(&json!({"detail": "Not Found"}))) })
}

fn detail(status: u16, detail: &Value) -> Response {
    (StatusCode::from_u16(status).unwrap(), json_body(&json!({"detail": detail}))).into_response()
}

fn missing(field: &str) -> Response {
    detail(422, &json!([{"type": "missing", "loc": [field], "msg": "Field required", "input": null}]))
}

async fn stream(state: Arc<State>, uri: Uri) -> Response {
    let url = reqwest::Url::parse(&format!("http://fake{uri}")).unwrap();
    let query: HashMap<String, String> = url.query_pairs().into_owned().collect();
    state.note(json!(query));
    if let Some(field) = ["text", "speaker_wav", "language"].into_iter().find(|field| !query.contains_key(*field)) {
        return missing(field);
    }
    if let Some(answer) = state.trouble(&query["text"]).await {
        return answer;
    }
    if state.does_not_stream {
        return detail(400, &json!("HTTP Streaming is only supported for local models."));
    }
    if !["en", "de", "zh-cn"].contains(&&*query["language"].to_lowercase()) {
        return detail(400, &json!("Language code sent is either unsupported or misspelled."));
    }
    // The status is out before the speaker is looked for.
    if !SPEAKERS.contains(&&*query["speaker_wav"]) {
        return sound_response("audio/x-wav", Vec::new(), Then::Die);
    }
    let samples = Bytes::from(samples_of(&query["text"], 1.0));
    let half = samples.len() / 2;
    let pieces = vec![Bytes::from(wav_head(24_000)), samples.slice(..half), samples.slice(half..)];
    sound_response("audio/x-wav", pieces, Then::End)
}

async fn speak(state: Arc<State>, headers: HeaderMap, body: Bytes) -> Response {
    let is_json = headers.get(header::CONTENT_TYPE).is_some_and(|kind| kind.as_bytes() == b"application/json");
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    state.note(body.clone());
    if let Some(field) =
        ["text", "speaker_wav", "language"].into_iter().find(|field| !is_json || !body[*field].is_string())
    {
        return missing(field);
    }
    let text = body["text"].as_str().unwrap();
    if let Some(answer) = state.trouble(text).await {
        return answer;
    }
    // Whatever goes wrong becomes a 500.
    if !["en", "de", "zh-cn"].contains(&body["language"].as_str().unwrap()) {
        return detail(500, &json!("Error: 400: Language code sent is either unsupported or misspelled."));
    }
    if !SPEAKERS.contains(&body["speaker_wav"].as_str().unwrap()) {
        return detail(500, &json!("Error: Speaker not found."));
    }
    let samples = samples_of(text, 1.0);
    let samples: Vec<f32> =
        samples.chunks(2).map(|bytes| f32::from(i16::from_le_bytes([bytes[0], bytes[1]])) / 32_768.0).collect();
    ([(header::CONTENT_TYPE, "audio/wav")], wav(&samples, 24_000)).into_response()
}
