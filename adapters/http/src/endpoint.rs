//! What a route is. Router, permissions and the OpenAPI description are all made from these declarations, so they agree.

use std::sync::Arc;

use axum::extract::{FromRequest, FromRequestParts, Multipart, Path, Query, Request};
use axum::handler::Handler;
use axum::http::{Method, header, request::Parts};
use axum::routing::{MethodFilter, MethodRouter, on};
use bytes::Bytes;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::DeserializeOwned;

use crate::accounts::{Caller, Scope};
use crate::oauth::OAuthError;
use crate::problem::Problem;
use crate::web::Shared;

/// Largest body of a request, unless an endpoint takes files.
pub(crate) const MAX_BODY_BYTES: usize = 1 << 20;

/// Largest body of a request that anybody may send.
const MAX_PUBLIC_BODY_BYTES: usize = 16 << 10;

/// Most fields of a form, as OAuth sends them.
const MAX_FIELDS: usize = 32;

/// Who may use a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// Everybody who can reach the server.
    Public,
    /// Everybody with an account, by a session. Keys do not suffice.
    Session,
    /// Everybody with an account, by a session or a key. Tokens do not suffice.
    Account,
    /// Sessions, and keys with this scope.
    Scope(Scope),
    /// Programs on this machine, and owners.
    LocalOrAdmin,
    /// Commands on this machine, by the key in the data folder, for the owner.
    Local,
    /// Commands on this machine, by the same key, for nobody's account.
    Machine,
}

/// What a route answers.
#[derive(Clone, Copy)]
pub(crate) enum Answer {
    /// JSON of this schema.
    Json(fn(&mut SchemaGenerator) -> Schema),
    /// Another media type, and what it holds.
    Media(&'static str, &'static str),
    /// A file of this media type, whole or in part, and what it holds.
    File(&'static str, &'static str),
}

/// What a route takes as a form: files as `multipart/form-data`.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Form {
    Nothing,
    /// Any number of files.
    Files,
    /// One file in the part `file`.
    File,
    /// These fields, as `application/x-www-form-urlencoded`.
    Fields(&'static [Parameter]),
}

/// A parameter of a query.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Parameter {
    pub(crate) name: &'static str,
    pub(crate) help: &'static str,
    pub(crate) required: bool,
}

/// A route, with everything that is to be known about it.
pub(crate) struct Endpoint {
    pub(crate) method: Method,
    pub(crate) path: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) need: Need,
    pub(crate) query: &'static [Parameter],
    pub(crate) request: Option<fn(&mut SchemaGenerator) -> Schema>,
    pub(crate) answer: Answer,
    /// The route also answers with events, if the request asks for that.
    pub(crate) may_stream: bool,
    pub(crate) form: Form,
    /// Statuses besides 200 and the usual errors, with their meaning.
    pub(crate) also: &'static [(u16, &'static str)],
    pub(crate) body_bytes: usize,
    pub(crate) handler: MethodRouter<Arc<Shared>>,
}

impl Endpoint {
    /// Declares a route. `method` is one of `GET`, `POST`, `PUT` and `DELETE`.
    pub(crate) fn new<H, T>(method: Method, path: &'static str, need: Need, summary: &'static str, handler: H) -> Self
    where
        H: Handler<T, Arc<Shared>>,
        T: 'static,
    {
        let filter = MethodFilter::try_from(method.clone()).unwrap_or(MethodFilter::GET);
        Self {
            method,
            path,
            summary,
            need,
            query: &[],
            request: None,
            answer: Answer::Media("text/plain", "A text."),
            may_stream: false,
            form: Form::Nothing,
            also: &[],
            body_bytes: if need == Need::Public { MAX_PUBLIC_BODY_BYTES } else { MAX_BODY_BYTES },
            handler: on(filter, handler),
        }
    }

    /// The route takes a JSON body.
    pub(crate) fn takes<T: JsonSchema>(self) -> Self {
        Self { request: Some(SchemaGenerator::subschema_for::<T>), ..self }
    }

    /// The route answers with JSON.
    pub(crate) fn answers<T: JsonSchema>(self) -> Self {
        Self { answer: Answer::Json(SchemaGenerator::subschema_for::<T>), ..self }
    }

    /// The route answers with another media type.
    pub(crate) fn sends(self, media_type: &'static str, what: &'static str) -> Self {
        Self { answer: Answer::Media(media_type, what), ..self }
    }

    /// The route answers with a file.
    pub(crate) fn serves(self, media_type: &'static str, what: &'static str) -> Self {
        Self { answer: Answer::File(media_type, what), ..self }
    }

    /// The route takes files.
    pub(crate) fn takes_files(self) -> Self {
        Self { form: Form::Files, ..self }
    }

    /// The route takes one file.
    pub(crate) fn takes_file(self) -> Self {
        Self { form: Form::File, ..self }
    }

    /// The route takes the fields of a form.
    pub(crate) fn takes_fields(self, fields: &'static [Parameter]) -> Self {
        Self { form: Form::Fields(fields), ..self }
    }

    /// The route reads a query.
    pub(crate) fn asks(self, query: &'static [Parameter]) -> Self {
        Self { query, ..self }
    }

    /// The route answers with further statuses.
    pub(crate) fn also(self, also: &'static [(u16, &'static str)]) -> Self {
        Self { also, ..self }
    }
}

/// The body of a request as JSON.
pub(crate) struct Json<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Json<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let media_type = request.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let essence = media_type.and_then(|value| value.split(';').next()).unwrap_or_default().trim();
        // Another site's form cannot send this type, so it is required.
        if !essence.eq_ignore_ascii_case("application/json") {
            let detail = "Send the body as JSON, with `Content-Type: application/json`.";
            return Err(Problem::new(axum::http::StatusCode::UNSUPPORTED_MEDIA_TYPE, "media_type", detail));
        }
        let body = Bytes::from_request(request, state).await.map_err(|error| Problem::invalid(error.to_string()))?;
        serde_json::from_slice(&body)
            .map(Json)
            .map_err(|error| Problem::invalid(format!("The body is wrong: {error}.")))
    }
}

/// The body of a request as a form with files.
pub(crate) struct Files(pub(crate) Multipart);

impl<S: Send + Sync> FromRequest<S> for Files {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let media_type = request.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let essence = media_type.and_then(|value| value.split(';').next()).unwrap_or_default().trim();
        if !essence.eq_ignore_ascii_case("multipart/form-data") {
            let detail = "Send the file as `multipart/form-data`.";
            return Err(Problem::new(axum::http::StatusCode::UNSUPPORTED_MEDIA_TYPE, "media_type", detail));
        }
        let form = Multipart::from_request(request, state).await;
        form.map(Self).map_err(|error| Problem::invalid(error.body_text()))
    }
}

/// The fields of a form, as OAuth sends them.
pub(crate) struct Fields(Vec<(String, String)>);

impl Fields {
    /// Returns the value of a field; `None` if it is missing or empty.
    pub(crate) fn optional(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(field, _)| field == name).map(|(_, value)| value.as_str());
        found.filter(|value| !value.is_empty())
    }

    /// Returns the value of a field.
    pub(crate) fn required(&self, name: &str) -> Result<&str, OAuthError> {
        self.optional(name).ok_or_else(|| OAuthError::request(format!("`{name}` is missing.")))
    }
}

impl<S: Send + Sync> FromRequest<S> for Fields {
    type Rejection = OAuthError;

    async fn from_request(request: Request, state: &S) -> Result<Self, OAuthError> {
        let media_type = request.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let essence = media_type.and_then(|value| value.split(';').next()).unwrap_or_default().trim();
        if !essence.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
            return Err(OAuthError::request("Send the body as application/x-www-form-urlencoded."));
        }
        let body = Bytes::from_request(request, state).await.map_err(|error| OAuthError::request(error.to_string()))?;
        let fields: Vec<(String, String)> =
            url::form_urlencoded::parse(&body).into_owned().take(MAX_FIELDS + 1).collect();
        if fields.len() > MAX_FIELDS {
            return Err(OAuthError::request(format!("The body has more than {MAX_FIELDS} fields.")));
        }
        let twice =
            |(place, (name, _)): (usize, &(String, String))| fields[..place].iter().any(|(field, _)| field == name);
        if fields.iter().enumerate().any(twice) {
            return Err(OAuthError::request("A field stands twice in the body."));
        }
        Ok(Self(fields))
    }
}

/// The query of a request.
pub(crate) struct Params<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Params<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let query = Query::<T>::from_request_parts(parts, state).await;
        query.map(|Query(value)| Self(value)).map_err(|error| Problem::invalid(error.body_text()))
    }
}

/// The variable parts of a path.
pub(crate) struct Parted<T>(pub(crate) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Parted<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let path = Path::<T>::from_request_parts(parts, state).await;
        path.map(|Path(value)| Self(value)).map_err(|error| Problem::invalid(error.body_text()))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        parts.extensions.get::<Self>().cloned().ok_or_else(Problem::unauthorized)
    }
}
