//! Coqui's streaming server: voices are numbers, which come from the server and go back with each sentence.

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::Multipart;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde_json::{Value, json};

use super::{Fields, State, Then, json_body, samples_of, sound_response, wav_head};

/// Returns the numbers of a voice, as far as tests look at them.
pub fn latents(seed: f64) -> Value {
    json!({"speaker_embedding": vec![seed; 512], "gpt_cond_latent": vec![vec![seed / 2.0; 1024]; 2]})
}

pub fn routes(state: Arc<State>) -> Router {
    let cloning = state.clone();
    let studio = || async { json_body(&json!({"Ana Florence": latents(0.5), "Craig Gutsy": latents(0.25)})) };
    Router::new()
        .route("/studio_speakers", get(studio))
        .route("/languages", get(|| async { json_body(&json!(["en", "de", "zh-cn"])) }))
        .route("/clone_speaker", post(move |form| clone_speaker(cloning.clone(), form)))
        .route("/tts_stream", post(move |headers, body| stream(state.clone(), headers, body)))
        .fallback(|| async { (StatusCode::NOT_FOUND, json_body(&json!({"detail": "Not Found"}))) })
}

fn unprocessable(field: &str, body: &Value) -> Response {
    let detail = json!({"detail": [{"loc": ["body", field], "msg": "Input should be valid", "input": body}]});
    (StatusCode::UNPROCESSABLE_ENTITY, json_body(&detail)).into_response()
}

async fn clone_speaker(state: Arc<State>, form: Multipart) -> Response {
    let fields = Fields::read(form).await;
    let Some((.., bytes)) = fields.file("wav_file") else { return unprocessable("wav_file", &Value::Null) };
    state.note(json!({"cloned": bytes.len()}));
    if hound::WavReader::new(&bytes[..]).is_err() {
        return (StatusCode::INTERNAL_SERVER_ERROR, "Internal Server Error").into_response();
    }
    json_body(&latents(0.125)).into_response()
}

async fn stream(state: Arc<State>, headers: HeaderMap, body: Bytes) -> Response {
    let is_json = headers.get(header::CONTENT_TYPE).is_some_and(|kind| kind.as_bytes() == b"application/json");
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    state.note(json!({"text": body["text"], "language": body["language"], "seed": body["speaker_embedding"][0]}));
    let numbers = |value: &Value| value.as_array().is_some_and(|list| list.iter().all(Value::is_number));
    let latents = body["gpt_cond_latent"].as_array();
    if !is_json || !numbers(&body["speaker_embedding"]) || !latents.is_some_and(|rows| rows.iter().all(numbers)) {
        return unprocessable("speaker_embedding", &body["speaker_embedding"]);
    }
    // The number of tokens in a piece must be a text.
    if body.get("stream_chunk_size").is_some_and(|size| !size.is_string()) {
        return unprocessable("stream_chunk_size", &body["stream_chunk_size"]);
    }
    let (Some(text), Some(language)) = (body["text"].as_str(), body["language"].as_str()) else {
        return unprocessable("text", &body);
    };
    if let Some(answer) = state.trouble(text).await {
        return answer;
    }
    // The model fails in the middle of the answer.
    if !["en", "de", "zh-cn"].contains(&language) {
        return sound_response("audio/wav", Vec::new(), Then::Die);
    }
    let samples = Bytes::from(samples_of(text, 1.0));
    let half = samples.len() / 2;
    let head = (body["add_wav_header"] != false).then(|| Bytes::from(wav_head(24_000)));
    let pieces = head.into_iter().chain([samples.slice(..half), samples.slice(half..)]).collect();
    sound_response("audio/wav", pieces, Then::End)
}
