use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;

use crate::problem::Problem;

/// An error as the protocol writes it: a word for programs, and a sentence for people.
#[derive(Debug, Clone)]
pub(crate) enum OAuthError {
    /// An error of the protocol.
    Refused {
        /// The word, from RFC 6749, 7591 and 8707.
        error: &'static str,
        /// The sentence.
        why: String,
    },
    /// Anything else, such as too many requests.
    Other(Problem),
}

impl OAuthError {
    pub(crate) fn new(error: &'static str, why: impl Into<String>) -> Self {
        Self::Refused { error, why: why.into() }
    }

    /// The request lacks something, or has something twice.
    pub(crate) fn request(why: impl Into<String>) -> Self {
        Self::new("invalid_request", why)
    }

    /// A code or a refresh token does not work. The sentence never says which check failed.
    pub(crate) fn grant() -> Self {
        Self::new("invalid_grant", "This code or refresh token does not work. Ask the person again.")
    }
}

impl From<Problem> for OAuthError {
    fn from(problem: Problem) -> Self {
        Self::Other(problem)
    }
}

impl From<crate::Error> for OAuthError {
    fn from(error: crate::Error) -> Self {
        Self::Other(error.into())
    }
}

impl IntoResponse for OAuthError {
    fn into_response(self) -> Response {
        match self {
            Self::Refused { error, why } => {
                let body = axum::Json(json!({"error": error, "error_description": why}));
                let mut response = (StatusCode::BAD_REQUEST, body).into_response();
                response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
                response
            }
            Self::Other(problem) => problem.into_response(),
        }
    }
}
