//! Sends requests to one server, and reads answers within their limits.

use std::time::Duration;

use azera_breaker::{Breaker, Permit};
use azera_server_messages::{SentTexts, ServerMessage};
use reqwest::header::{CONTENT_TYPE, LOCATION};
use reqwest::{Client, RequestBuilder, Response, StatusCode, Url, redirect};
use serde::de::DeserializeOwned;
use tokio::time::{Instant, timeout};

use crate::config::{ServerConfig, Timeouts};
use crate::error::{Failure, ServerError};

/// The largest answer that is no sound, in bytes. A transcript of ten minutes with the times of its words has a
/// hundredth of it.
pub const MAX_ANSWER_BYTES: usize = 16 << 20;
/// The largest list of voices with their numbers, in bytes. The 58 voices of XTTS take a quarter of it.
pub const MAX_LATENTS_BYTES: usize = 128 << 20;
/// The most bytes of an error's text that are read.
const MAX_ERROR_BYTES: usize = 64 << 10;

/// A server of speech.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) timeouts: Timeouts,
    name: String,
    base: String,
    plain: bool,
    config: ServerConfig,
    http: Client,
    breaker: Breaker,
}

impl Server {
    /// Checks the configuration. `title` names the kind of server, and `default_path` is added to an address without
    /// a path.
    pub(crate) fn new(config: ServerConfig, title: &str, default_path: &str) -> Result<Self, ServerError> {
        let wrong = |key: &str, what: String| ServerError {
            server: title.to_owned(),
            failure: Failure::Config(format!("{}.{key} {what}", config.section)),
        };
        let mut url = Url::parse(&config.url).map_err(|error| wrong("url", format!("is no address: {error}")))?;
        if !["http", "https"].contains(&url.scheme()) || url.host_str().is_none() {
            return Err(wrong("url", "must begin with http:// or https://".into()));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(wrong("url", format!("must hold no password; set {}.key", config.section)));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(wrong("url", "must end with the path".into()));
        }
        if let Some(key) = &config.key
            && !key.expose().bytes().all(|byte| byte.is_ascii_graphic())
        {
            return Err(wrong("key", "holds a character that no key has".into()));
        }
        let address = url.host_str().unwrap_or_default().trim_matches(['[', ']']).parse::<std::net::IpAddr>();
        let is_here = url.host_str() == Some("localhost") || address.is_ok_and(|address| address.is_loopback());
        let plain = url.scheme() == "http" && !is_here;
        if url.path() == "/" {
            url.set_path(default_path);
        }
        let http = Client::builder()
            .connect_timeout(config.timeouts.connect)
            .redirect(redirect::Policy::none())
            .no_proxy()
            .user_agent(concat!("azera/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| wrong("url", format!("cannot be used: {}", cause(error))))?;
        let base = url.as_str().trim_end_matches('/').to_owned();
        Ok(Self {
            timeouts: config.timeouts,
            name: format!("{title} at {base}"),
            base,
            plain,
            breaker: Breaker::new(config.timeouts.breaker),
            config,
            http,
        })
    }

    /// Returns the server's name for people: its kind and its address.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns true if others can read the traffic: a plain connection to another machine.
    pub(crate) fn is_readable(&self) -> bool {
        self.plain
    }

    pub(crate) fn post(&self, path: &str) -> RequestBuilder {
        self.http.post(format!("{}{path}", self.base))
    }

    pub(crate) fn get(&self, path: &str) -> RequestBuilder {
        self.http.get(format!("{}{path}", self.base))
    }

    /// Asks the breaker for permission to send a request.
    pub(crate) fn admit(&self) -> Result<Permit, ServerError> {
        let refused = |retry_in| self.error(Failure::LeftAlone { retry_in });
        self.breaker.admit(now()).map_err(|error| refused(error.retry_in))
    }

    /// Tells the breaker how a request went.
    pub(crate) fn report<T>(&self, permit: Permit, result: &Result<T, ServerError>) {
        match result {
            Err(error) if error.failure.is_failure() => permit.failed(now()),
            _ => permit.succeeded(),
        }
    }

    /// Sends a request unless the breaker is open, and reads the whole answer.
    pub(crate) async fn ask<T: DeserializeOwned>(
        &self,
        request: RequestBuilder,
        wait: Duration,
        limit: usize,
    ) -> Result<T, ServerError> {
        let permit = self.admit()?;
        let result = async {
            let response = self.send(request, wait, &SentTexts::default()).await?;
            let body = self.read(response, limit, wait).await?;
            serde_json::from_slice(&body).map_err(|error| {
                let reason = match error.classify() {
                    serde_json::error::Category::Data => "the JSON has an unexpected structure",
                    _ => "it is not valid JSON",
                };
                self.protocol(reason)
            })
        };
        let result = result.await;
        self.report(permit, &result);
        result
    }

    /// Sends a request, and returns the answer after a successful status. An error never shows a text of `sent`.
    pub(crate) async fn send(
        &self,
        request: RequestBuilder,
        wait: Duration,
        sent: &SentTexts,
    ) -> Result<Response, ServerError> {
        let request = match &self.config.key {
            Some(key) => request.bearer_auth(key.expose()),
            None => request,
        };
        let response = timeout(wait, request.send()).await.map_err(|_| self.silent(wait))?;
        let response = response.map_err(|error| self.network(error))?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        if status.is_redirection() {
            let target = response.headers().get(LOCATION).and_then(|target| target.to_str().ok());
            // The target may repeat what was sent, behind a question mark.
            let target = target.and_then(|target| target.split('?').next()).unwrap_or("elsewhere").to_owned();
            return Err(self.error(Failure::Moved { target, config_key: self.config_key("url") }));
        }
        let path = response.url().path().to_owned();
        // Read as much of the reason as possible; without it, the status says enough.
        let body = self.read(response, MAX_ERROR_BYTES, self.timeouts.about).await.unwrap_or_default();
        let key = self.config.key.as_ref().map(|key| key.expose());
        Err(self.refusal(status, ServerMessage::read(&body, key, sent).message, path))
    }

    /// Reads a whole answer.
    pub(crate) async fn read(
        &self,
        mut answer: Response,
        limit: usize,
        wait: Duration,
    ) -> Result<Vec<u8>, ServerError> {
        let mut body = Vec::new();
        let whole = timeout(wait, async {
            while let Some(chunk) = answer.chunk().await.map_err(|error| self.network(error))? {
                if body.len() + chunk.len() > limit {
                    return Err(self.error(Failure::TooMuch { what: "an answer", limit }));
                }
                body.extend_from_slice(&chunk);
            }
            Ok(())
        });
        whole.await.map_err(|_| self.silent(wait))??;
        Ok(body)
    }

    /// Waits for the next piece of an answer; `None` at its end.
    pub(crate) async fn piece(&self, answer: &mut Response, wait: Duration) -> Result<Option<Vec<u8>>, ServerError> {
        let piece = timeout(wait, answer.chunk()).await.map_err(|_| self.silent(wait))?;
        Ok(piece.map_err(|error| self.network(error))?.map(Vec::from))
    }

    fn refusal(&self, status: StatusCode, message: String, path: String) -> ServerError {
        let status = status.as_u16();
        self.error(match status {
            401 | 403 => Failure::Key {
                had_key: self.config.key.is_some(),
                config_key: format!(
                    "{}.key, or AZERA__{}__KEY in the environment",
                    self.config.section,
                    self.config.section.to_uppercase()
                ),
                message,
            },
            404 | 405 => {
                let config_key = format!("{0}.api and {0}.url", self.config.section);
                Failure::NoSuchPath { path, config_key }
            }
            501 => Failure::Refused { status, message },
            408 | 425 | 429 | 500.. => Failure::Trouble { status, message },
            _ => Failure::Refused { status, message },
        })
    }

    /// Returns an error of this server.
    pub(crate) fn error(&self, failure: Failure) -> ServerError {
        ServerError { server: self.name.clone(), failure }
    }

    /// Returns the error for an answer of another form.
    pub(crate) fn protocol(&self, reason: impl Into<String>) -> ServerError {
        self.error(Failure::Protocol(reason.into()))
    }

    /// Returns the error for a wrong value in the configuration.
    pub(crate) fn wrong(&self, key: &str, what: &str) -> ServerError {
        self.error(Failure::Config(format!("{} {what}", self.config_key(key))))
    }

    /// Makes the server's own words fit to be shown.
    pub(crate) fn message(&self, body: &serde_json::Value) -> String {
        let key = self.config.key.as_ref().map(|key| key.expose());
        ServerMessage::of(body, key, &SentTexts::default()).message
    }

    fn network(&self, error: reqwest::Error) -> ServerError {
        let is_connecting = error.is_connect();
        let reason = cause(error);
        if is_connecting {
            return self.error(Failure::Unreachable { reason, config_key: self.config_key("url") });
        }
        self.error(Failure::BrokeOff { reason })
    }

    fn silent(&self, after: Duration) -> ServerError {
        self.error(Failure::Silent { after })
    }

    fn config_key(&self, key: &str) -> String {
        format!("{}.{key}", self.config.section)
    }
}

/// Returns the content type of an answer without its parameters, such as `audio/wav`, and the whole value.
pub(crate) fn content_type(response: &Response) -> Option<(String, String)> {
    let value = response.headers().get(CONTENT_TYPE)?.to_str().ok()?.to_lowercase();
    Some((value.split(';').next().unwrap_or(&value).trim().to_owned(), value))
}

fn now() -> std::time::Instant {
    // tokio's clock is the system clock, and stands still if a test paused it.
    Instant::now().into_std()
}

/// Returns the innermost cause without the address, which may contain what is said.
fn cause(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut cause: &dyn std::error::Error = &error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
