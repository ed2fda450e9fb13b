//! Errors of requests, as `problem+json` (RFC 9457). `error` repeats the detail as a plain string.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use azera_adapter::HostError;
use schemars::JsonSchema;
use serde::Serialize;

/// Seconds that a client waits before it asks a busy engine again.
const BUSY_RETRY_S: u64 = 5;

/// An answer that says what went wrong.
#[derive(Debug, Clone)]
pub(crate) struct Problem {
    pub(crate) status: StatusCode,
    /// A stable word for programs.
    pub(crate) code: &'static str,
    /// A sentence for people.
    pub(crate) detail: String,
    pub(crate) retry_after_s: Option<u64>,
}

/// The body of an error.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ProblemBody {
    /// A reference to the kind of the problem; always `about:blank`.
    r#type: &'static str,
    /// The status in words.
    title: &'static str,
    /// The status code.
    status: u16,
    /// What happened, and what to do.
    detail: String,
    /// A stable word for programs.
    code: &'static str,
    /// The same as `detail`.
    error: String,
}

impl Problem {
    pub(crate) fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Self {
        Self { status, code, detail: detail.into(), retry_after_s: None }
    }

    pub(crate) fn invalid(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid", detail)
    }

    pub(crate) fn not_found(what: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", format!("There is no such {what}."))
    }

    pub(crate) fn forbidden(code: &'static str, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, code, detail)
    }

    pub(crate) fn unauthorized() -> Self {
        Self::new(
            StatusCode::UNAUTHORIZED,
            "unauthorized",
            "Log in, or send an API key as `Authorization: Bearer KEY`.",
        )
    }

    /// The answer of an endpoint for which nothing is configured. The server itself works.
    pub(crate) fn unconfigured(code: &'static str, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, code, detail)
    }

    /// The answer of an endpoint that this build lacks.
    pub(crate) fn missing(code: &'static str, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_IMPLEMENTED, code, detail)
    }

    pub(crate) fn too_many(retry_after_s: u64) -> Self {
        let detail = format!("Too many requests. Try again in {retry_after_s} s.");
        Self { retry_after_s: Some(retry_after_s), ..Self::new(StatusCode::TOO_MANY_REQUESTS, "too_many", detail) }
    }

    /// A fault of this server. The cause goes to the log alone.
    pub(crate) fn internal(cause: &dyn std::fmt::Display) -> Self {
        tracing::error!(%cause, "a request failed");
        let detail = "That failed because of a fault in me. The operator finds the reason in the log.";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", detail)
    }

    pub(crate) fn body(&self) -> ProblemBody {
        ProblemBody {
            r#type: "about:blank",
            title: self.status.canonical_reason().unwrap_or("Error"),
            status: self.status.as_u16(),
            detail: self.detail.clone(),
            code: self.code,
            error: self.detail.clone(),
        }
    }
}

impl From<HostError> for Problem {
    fn from(error: HostError) -> Self {
        let (status, code) = match &error {
            HostError::Busy => (StatusCode::TOO_MANY_REQUESTS, "busy"),
            HostError::Stopping => (StatusCode::SERVICE_UNAVAILABLE, "stopping"),
            HostError::NotAllowed => (StatusCode::FORBIDDEN, "not_allowed"),
            HostError::Full => (StatusCode::INSUFFICIENT_STORAGE, "disk_full"),
            HostError::Unavailable(_) => (StatusCode::SERVICE_UNAVAILABLE, "unavailable"),
            HostError::Interrupted => (StatusCode::SERVICE_UNAVAILABLE, "interrupted"),
            HostError::Refused(_) => (StatusCode::UNPROCESSABLE_ENTITY, "refused"),
            HostError::Storage(_) => (StatusCode::INTERNAL_SERVER_ERROR, "storage"),
            HostError::Internal(_) => (StatusCode::INTERNAL_SERVER_ERROR, "internal"),
        };
        if status.is_server_error() {
            tracing::warn!(%error, code, "a request failed");
        }
        let retry_after_s = error.is_temporary().then_some(BUSY_RETRY_S);
        Self { retry_after_s, ..Self::new(status, code, error.in_words()) }
    }
}

impl From<crate::Error> for Problem {
    fn from(error: crate::Error) -> Self {
        Self::internal(&error)
    }
}

impl From<azera_types::IdError> for Problem {
    fn from(error: azera_types::IdError) -> Self {
        Self::invalid(format!("That is no id: {error}."))
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = serde_json::to_vec(&self.body()).unwrap_or_default();
        let content_type = HeaderValue::from_static("application/problem+json");
        let mut response = (self.status, [(header::CONTENT_TYPE, content_type)], body).into_response();
        if let Some(seconds) = self.retry_after_s {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        // A layer may show the same problem in another form.
        response.extensions_mut().insert(self);
        response
    }
}
