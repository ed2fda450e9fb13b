//! Endpoints of the first HTTP interface for which this version has no engine yet. They answer with the status 501, a
//! stable code, and what takes their place.

use axum::http::Method;

use crate::accounts::Scope;
use crate::endpoint::{Endpoint, Need};
use crate::problem::Problem;

/// An endpoint without an engine.
struct Missing {
    method: Method,
    path: &'static str,
    summary: &'static str,
    code: &'static str,
    detail: &'static str,
}

const IMAGES: &str = "This version makes no pictures.";
const SPEECH: &str = "The web does not speak yet. `azera say` makes sound files.";

const fn missing(
    method: Method,
    path: &'static str,
    summary: &'static str,
    code: &'static str,
    detail: &'static str,
) -> Missing {
    Missing { method, path, summary, code, detail }
}

/// Every endpoint without an engine. bot/docs/web.md lists them.
const MISSING: [Missing; 12] = [
    missing(
        Method::GET,
        "/api/logs",
        "Show the log",
        "logs_unavailable",
        "The web does not show the log. It goes to the error output.",
    ),
    missing(
        Method::POST,
        "/api/status/mood",
        "Set the mood",
        "mood_unavailable",
        "A mood follows from what is said, and cannot be set.",
    ),
    missing(Method::POST, "/api/tts/synthesize", "Speak a text", "speech_unavailable", SPEECH),
    missing(Method::POST, "/api/voice-samples/upload", "Add a voice sample", "speech_unavailable", SPEECH),
    missing(Method::GET, "/api/voice-samples/{filename}", "Get a voice sample", "speech_unavailable", SPEECH),
    missing(Method::POST, "/api/images/generate", "Make a picture", "images_unavailable", IMAGES),
    missing(Method::GET, "/api/images", "List the pictures", "images_unavailable", IMAGES),
    missing(Method::GET, "/api/images/models", "List the models of pictures", "images_unavailable", IMAGES),
    missing(Method::POST, "/api/images/upload-reference", "Add a reference", "images_unavailable", IMAGES),
    missing(Method::GET, "/api/images/references/{filename}", "Get a reference", "images_unavailable", IMAGES),
    missing(Method::GET, "/api/images/{filename}", "Get a picture", "images_unavailable", IMAGES),
    missing(Method::DELETE, "/api/images/{filename}", "Delete a picture", "images_unavailable", IMAGES),
];

pub(super) fn endpoints() -> Vec<Endpoint> {
    let endpoint = |one: Missing| {
        let Missing { method, path, summary, code, detail } = one;
        let answer = async move || Problem::missing(code, detail);
        Endpoint::new(method, path, Need::Scope(Scope::Chat), summary, answer)
            .also(&[(501, "This version cannot do that. The body says what takes its place.")])
    };
    MISSING.into_iter().map(endpoint).collect()
}
