use std::time::Duration;

use azera_breaker::Breaker;
use azera_server_messages::{SentTexts, ServerMessage};
use backon::{ExponentialBuilder, Retryable};
use reqwest::header::{CONTENT_TYPE, LOCATION, RETRY_AFTER};
use reqwest::{Client, RequestBuilder, Response, StatusCode, Url, redirect};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::{Instant, timeout};

use crate::config::{Api, RetryPolicy, ServerConfig};
use crate::error::Error;

/// The largest response that is not streamed, in bytes. A batch of the longest vectors in use takes a sixth of it.
pub const MAX_ANSWER_BYTES: usize = 32 << 20;

/// The most bytes of an error body that are read.
const MAX_ERROR_BYTES: usize = 64 << 10;

/// A model server. Sends requests, reads whole responses, and returns errors that say what to change.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) api: Api,
    pub(crate) model: String,
    pub(crate) patience: RetryPolicy,
    /// The name of such a server for people.
    title: &'static str,
    http: Client,
    base: String,
    plain: bool,
    here: bool,
    config: ServerConfig,
    breaker: Breaker,
}

impl Server {
    pub(crate) fn new(config: ServerConfig) -> Result<Self, Error> {
        if config.model.trim().is_empty() {
            return Err(Error::Config(format!("{}.model names no model", config.section)));
        }
        let usual_path = if config.api == Api::Ollama { "/" } else { "/v1" };
        let title = config.api.title();
        Self::titled(config, title, usual_path)
    }

    /// Creates a client of a server with its own name for people. `usual_path` replaces the path of an address without
    /// one.
    pub(crate) fn titled(config: ServerConfig, title: &'static str, usual_path: &str) -> Result<Self, Error> {
        let wrong = |key: &str, what: String| Error::Config(format!("{}.{key} {what}", config.section));
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
        let name = url.host_str().unwrap_or_default();
        let plain = url.scheme() == "http";
        let address = name.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
        let here = name == "localhost" || address.is_ok_and(|address| address.is_loopback());
        if url.path() == "/" {
            url.set_path(usual_path);
        }
        // Redirects are not followed, because messages would go to a place that nobody configured. Proxies of the
        // environment are not used either: only the configuration says where requests go.
        let http = Client::builder()
            .connect_timeout(config.patience.connect)
            .redirect(redirect::Policy::none())
            .no_proxy()
            .user_agent(concat!("azera/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| Error::Config(format!("no connection can be made: {}", cause(error))))?;
        Ok(Self {
            api: config.api,
            model: config.model.clone(),
            patience: config.patience,
            title,
            http,
            base: url.as_str().trim_end_matches('/').to_owned(),
            plain,
            here,
            breaker: Breaker::new(config.patience.breaker),
            config,
        })
    }

    /// Returns the server's name for people.
    pub(crate) fn name(&self) -> String {
        format!("{} at {}", self.title, self.base)
    }

    /// Returns the address with the path of the API.
    pub(crate) fn base(&self) -> &str {
        &self.base
    }

    /// Returns true if the connection is not encrypted.
    pub(crate) fn is_plain(&self) -> bool {
        self.plain
    }

    /// Returns true if the server runs on this machine.
    pub(crate) fn is_here(&self) -> bool {
        self.here
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> RequestBuilder {
        self.http.post(format!("{}{path}", self.base)).json(body)
    }

    pub(crate) fn get(&self, path: &str) -> RequestBuilder {
        self.http.get(format!("{}{path}", self.base))
    }

    /// Creates a request for a path outside the API.
    pub(crate) fn get_outside(&self, path: &str) -> RequestBuilder {
        self.http.get(format!("{}{path}", self.base.strip_suffix("/v1").unwrap_or(&self.base)))
    }

    /// Sends a request. Returns the response after a successful status.
    pub(crate) async fn send(&self, request: RequestBuilder, wait: Duration) -> Result<Response, Error> {
        let request = match &self.config.key {
            Some(key) => request.bearer_auth(key.expose()),
            None => request,
        };
        let request = request.build().map_err(|error| self.network(error))?;
        let sent = request.body().and_then(|body| body.as_bytes()).map(<[u8]>::to_vec);
        let response = timeout(wait, self.http.execute(request)).await.map_err(|_| self.silent(wait))?;
        let response = response.map_err(|error| self.network(error))?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        if status.is_redirection() {
            let target =
                response.headers().get(LOCATION).and_then(|target| target.to_str().ok()).unwrap_or("elsewhere");
            return Err(Error::Moved {
                server: self.name(),
                target: target.to_owned(),
                config_key: self.config_key("url"),
            });
        }
        let retry_after = response.headers().get(RETRY_AFTER).and_then(|wait| wait.to_str().ok());
        let retry_after = retry_after.and_then(|wait| Duration::try_from_secs_f64(wait.trim().parse().ok()?).ok());
        let path = response.url().path().to_owned();
        // Read as much of the reason as possible; without it, the status says enough.
        let body = self.read(response, MAX_ERROR_BYTES, self.patience.about).await.unwrap_or_default();
        let sent = sent.map(|sent| SentTexts::read(&sent)).unwrap_or_default();
        Err(self.refusal(status, ServerMessage::read(&body, self.key(), &sent), retry_after, &path))
    }

    /// Sends a request and reads the whole response.
    pub(crate) async fn ask<T: DeserializeOwned>(&self, request: RequestBuilder, wait: Duration) -> Result<T, Error> {
        let response = self.send(request, wait).await?;
        let body = self.read(response, MAX_ANSWER_BYTES, wait).await?;
        serde_json::from_slice(&body).map_err(|error| {
            let reason = match error.classify() {
                serde_json::error::Category::Data => "the JSON has an unexpected structure",
                _ => "it is not valid JSON",
            };
            self.protocol(reason.to_owned())
        })
    }

    async fn read(&self, mut response: Response, limit: usize, wait: Duration) -> Result<Vec<u8>, Error> {
        let mut body = Vec::new();
        let whole = timeout(wait, async {
            while let Some(chunk) = response.chunk().await.map_err(|error| self.network(error))? {
                if body.len() + chunk.len() > limit {
                    return Err(Error::TooMuch { server: self.name(), what: "an answer", limit });
                }
                body.extend_from_slice(&chunk);
            }
            Ok(())
        });
        whole.await.map_err(|_| self.silent(wait))??;
        Ok(body)
    }

    /// Runs `work`, which sends one request, unless the breaker is open, and reports the result to the breaker. Only
    /// the beginning of a stream counts: a stream that breaks later does not mean that every request would fail.
    pub(crate) async fn guarded<T>(&self, work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        let pass = self.breaker.admit(now()).map_err(|refused| self.left_alone(refused.retry_in))?;
        let result = work.await;
        match &result {
            Err(error) if error.is_failure() => pass.failed(now()),
            _ => pass.succeeded(),
        }
        result
    }

    /// Returns an error at once if the breaker is open.
    pub(crate) fn check(&self) -> Result<(), Error> {
        match self.breaker.waits(now()) {
            Some(retry_in) => Err(self.left_alone(retry_in)),
            None => Ok(()),
        }
    }

    /// Retries `work` after temporary failures, as often as the policy says. `work` must be safe to repeat.
    pub(crate) async fn retrying<T, F>(&self, work: impl FnMut() -> F) -> Result<T, Error>
    where
        F: Future<Output = Result<T, Error>>,
    {
        let RetryPolicy { retries, retry_delay, longest_retry_after, .. } = self.patience;
        let backoff = ExponentialBuilder::default().with_jitter().with_min_delay(retry_delay).with_max_times(retries);
        work.retry(backoff)
            .when(Error::is_retryable)
            .adjust(|error: &Error, delay| match error {
                Error::Trouble { retry_after: Some(wanted), .. } if *wanted > longest_retry_after => None,
                Error::Trouble { retry_after: Some(wanted), .. } => delay.map(|delay| delay.max(*wanted)),
                _ => delay,
            })
            .notify(|error, delay| tracing::info!(%error, delay_ms = delay.as_millis(), "retrying a request"))
            .await
    }

    /// Converts an error status to an error.
    pub(crate) fn refusal(
        &self,
        status: StatusCode,
        says: ServerMessage,
        retry_after: Option<Duration>,
        path: &str,
    ) -> Error {
        let (server, code) = (self.name(), status.as_u16());
        match code {
            413 => Error::TooLong { server, message: says.message },
            // With other statuses, such words are about a rate, a quota or a key.
            400 | 422 | 500 if says.is_too_long() => Error::TooLong { server, message: says.message },
            401 | 403 => Error::Key {
                server,
                had_key: self.config.key.is_some(),
                config_key: format!(
                    "{}.key, or AZERA__{}__KEY in the environment",
                    self.config.section,
                    self.config.section.to_uppercase()
                ),
                message: says.message,
            },
            400 | 404 if says.is_no_model() => Error::NoModel { server, model: self.model.clone(), known: Vec::new() },
            404 | 405 => self.protocol(format!("there is nothing at {path} (status {code})")),
            // The account has no money left, so waiting does not help.
            429 if says.code.as_deref() == Some("insufficient_quota") => {
                Error::Refused { server, status: code, message: says.message, parameter: None }
            }
            501 => Error::Refused { server, status: code, message: says.message, parameter: None },
            408 | 425 | 429 | 500.. => Error::Trouble { server, status: code, message: says.message, retry_after },
            _ => {
                let parameter = says.unknown_parameter().map(str::to_owned);
                Error::Refused { server, status: code, message: says.message, parameter }
            }
        }
    }

    /// Converts an error in the middle of a stream that answers `sent`.
    pub(crate) fn error_in(&self, value: &Value, sent: &SentTexts) -> Error {
        let says = ServerMessage::of(value, self.key(), sent);
        let status = value["error"]["code"].as_u64().and_then(|code| u16::try_from(code).ok());
        match status.and_then(|code| StatusCode::from_u16(code).ok()).filter(|status| status.as_u16() >= 400) {
            Some(status) => self.refusal(status, says, None, "its stream"),
            None if says.is_too_long() => Error::TooLong { server: self.name(), message: says.message },
            None => Error::BrokeOff { server: self.name(), reason: says.message },
        }
    }

    pub(crate) fn network(&self, error: reqwest::Error) -> Error {
        let connecting = error.is_connect();
        let reason = cause(error);
        if connecting {
            return Error::Unreachable { server: self.name(), reason, config_key: self.config_key("url") };
        }
        Error::BrokeOff { server: self.name(), reason }
    }

    pub(crate) fn silent(&self, after: Duration) -> Error {
        Error::Silent { server: self.name(), after }
    }

    pub(crate) fn protocol(&self, reason: String) -> Error {
        let config_key = format!("{0}.api and {0}.url", self.config.section);
        Error::Protocol { server: self.name(), reason, config_key }
    }

    fn left_alone(&self, retry_in: Duration) -> Error {
        Error::LeftAlone { server: self.name(), retry_in }
    }

    fn config_key(&self, key: &str) -> String {
        format!("{}.{key}", self.config.section)
    }

    fn key(&self) -> Option<&str> {
        self.config.key.as_ref().map(|key| key.expose())
    }
}

/// Returns the content type of a response, such as `text/event-stream`; `None` if it has none.
pub(crate) fn content_type(response: &Response) -> Option<&str> {
    let value = response.headers().get(CONTENT_TYPE)?.to_str().ok()?;
    Some(value.split(';').next().unwrap_or(value).trim())
}

fn now() -> std::time::Instant {
    // tokio's clock is the system clock, and stands still if a test paused it.
    Instant::now().into_std()
}

/// Returns the innermost cause without the address, which the error names anyway.
fn cause(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut cause: &dyn std::error::Error = &error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
