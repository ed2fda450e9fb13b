//! The server of whisper.cpp: one model, no key, and some errors with status 200.

use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Multipart};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde_json::json;

use super::{Fields, State, json_body, seconds_of};

pub fn routes(state: Arc<State>) -> Router {
    Router::new()
        .route("/inference", post(move |form| infer(state.clone(), form)))
        .route("/health", get(|| async { json_body(&json!({"status": "ok"})) }))
        .fallback(|| async { (StatusCode::NOT_FOUND, "File Not Found") })
        .layer(DefaultBodyLimit::max(64 << 20))
}

async fn infer(state: Arc<State>, form: Multipart) -> Response {
    let fields = Fields::read(form).await;
    state.note(fields.as_json());
    if let Some(answer) = state.trouble("").await {
        return answer;
    }
    let Some((.., bytes)) = fields.file("file") else {
        return json_body(&json!({"error": "no 'file' field in the request"})).into_response();
    };
    let Some(seconds) = seconds_of(bytes) else {
        return json_body(&json!({"error": "failed to read audio data"})).into_response();
    };
    if !["en", "de", "auto"].contains(&fields.text("language").unwrap_or("en")) {
        return (StatusCode::INTERNAL_SERVER_ERROR, json_body(&json!({"error": "failed to process audio"})))
            .into_response();
    }
    let text = format!(" I heard {seconds:.1} seconds.\n");
    match fields.text("response_format").unwrap_or("json") {
        "verbose_json" => {
            let token = |word: &str, start: f64| json!({"word": word, "start": start, "end": start + 0.2, "t_dtw": -1, "probability": 0.75});
            let segment = json!({"id": 0, "text": text.trim_end(), "start": 0.0, "end": seconds, "tokens": [40, 2982],
                "words": [token(" I", 0.0), token(" hear", 0.2), token("d", 0.4)], "temperature": 0.0,
                "avg_logprob": -0.3, "no_speech_prob": 0.0625});
            json_body(&json!({"task": "transcribe", "language": "english", "duration": seconds, "text": text,
                              "segments": [segment]}))
            .into_response()
        }
        "json" => json_body(&json!({"text": text})).into_response(),
        _ => ([(header::CONTENT_TYPE, "text/html; charset=utf-8")], text).into_response(),
    }
}
