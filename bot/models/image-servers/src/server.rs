use std::future::Future;
use std::time::{Duration, Instant};

use azera_breaker::Breaker;
use azera_model_image::{ImageError, ImageRequest, Outage};
use reqwest::{Client, Method, RequestBuilder, Response, StatusCode, Url};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::timeout;

use crate::address::{cause, checked, client};
use crate::config::{ImageServerConfig, ImageServerKind, Timeouts};

/// The largest picture that is accepted, in bytes.
pub(crate) const MAX_PICTURE_BYTES: usize = 24 << 20;

/// The largest answer: a picture in base64, with what stands around it.
pub(crate) const MAX_ANSWER_BYTES: usize = 40 << 20;

/// The largest preview, in bytes.
pub(crate) const MAX_PREVIEW_BYTES: usize = 2 << 20;

/// The most bytes of an error body that are read.
const MAX_ERROR_BYTES: usize = 16 << 10;

/// The most characters of a server's own words that an error shows.
pub(crate) const MAX_WORDS: usize = 160;

/// The most models that an error lists.
const MAX_LISTED: usize = 20;

/// What stands for all models of the server in `images.models`.
const ALL: &str = "*";

/// Fields of an error body that hold the server's words.
const WORD_FIELDS: [&str; 5] = ["message", "detail", "error", "errors", "details"];

/// A server that draws pictures: sends requests, reads answers within limits, and keeps its breaker.
#[derive(Debug)]
pub(crate) struct Server {
    http: Client,
    base: Url,
    config: ImageServerConfig,
    breaker: Breaker,
    name: String,
}

impl Server {
    /// Makes the client of a server.
    pub(crate) fn new(config: ImageServerConfig) -> Result<Self, ImageError> {
        let base = checked("images", &config.url, config.key.as_ref()).map_err(ImageError::Configuration)?;
        let http = client(config.timeouts.connect).map_err(ImageError::Configuration)?;
        let name = format!("{} at {}", config.kind.title(), base.as_str().trim_end_matches('/'));
        Ok(Self { http, base, breaker: Breaker::new(config.timeouts.breaker), config, name })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn config(&self) -> &ImageServerConfig {
        &self.config
    }

    pub(crate) fn timeouts(&self) -> &Timeouts {
        &self.config.timeouts
    }

    /// Returns the address of the server's root.
    pub(crate) fn base(&self) -> &Url {
        &self.base
    }

    /// Creates a request with the key.
    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.http.request(method, format!("{}{path}", self.base));
        match (&self.config.key, self.config.kind) {
            (None, _) => request,
            (Some(key), ImageServerKind::Automatic1111) => {
                let (user, password) = key.expose().split_once(':').unwrap_or((key.expose(), ""));
                request.basic_auth(user, Some(password))
            }
            (Some(key), _) => request.bearer_auth(key.expose()),
        }
    }

    pub(crate) fn get(&self, path: &str) -> RequestBuilder {
        self.request(Method::GET, path)
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> RequestBuilder {
        self.request(Method::POST, path).json(body)
    }

    /// Sends a request. Returns the response after a successful status. `private` must not stand in an error.
    pub(crate) async fn send(
        &self,
        request: RequestBuilder,
        wait: Duration,
        private: &str,
    ) -> Result<Response, ImageError> {
        let response = timeout(wait, request.send()).await.map_err(|_| self.silent(wait))?;
        let response = response.map_err(|error| self.network(error))?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        if status.is_redirection() {
            return Err(ImageError::Configuration(format!("{} points elsewhere; set images.url to that", self.name)));
        }
        let path = response.url().path().to_owned();
        let body = self.read(response, MAX_ERROR_BYTES, self.timeouts().about).await.unwrap_or_default();
        Err(self.refusal(status, &self.words(&body, private), &path))
    }

    /// Sends a request and reads the whole answer as JSON.
    pub(crate) async fn ask<T: DeserializeOwned>(
        &self,
        request: RequestBuilder,
        wait: Duration,
        private: &str,
    ) -> Result<T, ImageError> {
        let response = self.send(request, wait, private).await?;
        let body = self.read(response, MAX_ANSWER_BYTES, wait).await?;
        serde_json::from_slice(&body).map_err(|_| self.protocol("the JSON has an unexpected structure"))
    }

    /// Reads a response of at most `limit` bytes.
    pub(crate) async fn read(
        &self,
        mut response: Response,
        limit: usize,
        wait: Duration,
    ) -> Result<Vec<u8>, ImageError> {
        let mut body = Vec::new();
        let whole = timeout(wait, async {
            while let Some(chunk) = response.chunk().await.map_err(|error| self.network(error))? {
                if body.len() + chunk.len() > limit {
                    return Err(self.protocol("it sent more than the limit"));
                }
                body.extend_from_slice(&chunk);
            }
            Ok(())
        });
        whole.await.map_err(|_| self.silent(wait))??;
        Ok(body)
    }

    /// Fails if the configuration names a model that the server does not have. `has` are the names that it goes by.
    pub(crate) fn check_model(&self, has: &[String]) -> Result<(), ImageError> {
        let wanted = self.config.model.as_str();
        if wanted.is_empty() || has.iter().any(|name| name == wanted) {
            return Ok(());
        }
        let listed: Vec<&str> = has.iter().map(String::as_str).take(MAX_LISTED).collect();
        let has = if listed.is_empty() { "none".to_owned() } else { listed.join(", ") };
        Err(ImageError::Configuration(format!("{} has no model {wanted} (images.model); it has {has}", self.name)))
    }

    /// Returns the model of a request: the one that it chooses, or else the configured one; empty for the server's choice.
    pub(crate) fn model_of<'a>(&'a self, request: &'a ImageRequest) -> &'a str {
        self.model_named(request.model.as_deref())
    }

    /// Returns the model of this name as the configuration writes it, if requests may choose it; otherwise the usual one.
    pub(crate) fn model_named<'a>(&'a self, name: Option<&'a str>) -> &'a str {
        name.and_then(|name| self.permitted(name)).unwrap_or(&self.config.model)
    }

    /// Returns true if requests may choose every model of the server.
    pub(crate) fn permits_all(&self) -> bool {
        // An OpenAI-style server has models for talk, too.
        self.config.kind != ImageServerKind::OpenAi && self.config.models.iter().any(|name| name == ALL)
    }

    fn permitted<'a>(&'a self, name: &'a str) -> Option<&'a str> {
        let (named, lower) = (self.named(), name.to_lowercase());
        let exactly = named.iter().copied().find(|known| *known == name);
        let nearly = || named.iter().copied().find(|known| known.to_lowercase() == lower);
        exactly.or_else(|| self.permits_all().then_some(name)).or_else(nearly)
    }

    /// Refuses a request that chooses a model which the configuration does not permit. It may have been queued before the
    /// configuration changed, or while the server did not say what it has.
    pub(crate) fn check_choice(&self, request: &ImageRequest) -> Result<(), ImageError> {
        match &request.model {
            Some(model) if self.permitted(model).is_none() => {
                let why = format!("{} lets nobody choose the model {model}", self.config.kind.title());
                Err(ImageError::Refused(why))
            }
            _ => Ok(()),
        }
    }

    /// Returns which of a server's models requests may choose. Each model goes by several names, the one to list first.
    pub(crate) fn choice(&self, has: Vec<Vec<String>>) -> Vec<String> {
        if self.permits_all() {
            return has
                .into_iter()
                .filter_map(|names| names.into_iter().next())
                .filter(|name| !name.is_empty())
                .collect();
        }
        let mut wanted = self.allowed();
        wanted.retain(|name| has.iter().flatten().any(|has| has == name));
        wanted
    }

    /// Returns the models that the configuration names: the usual one, then those that requests may choose besides.
    pub(crate) fn allowed(&self) -> Vec<String> {
        self.named().into_iter().map(str::to_owned).collect()
    }

    fn named(&self) -> Vec<&str> {
        let mut named: Vec<&str> = Vec::new();
        for name in std::iter::once(&self.config.model).chain(&self.config.models) {
            if !name.is_empty() && name != ALL && !named.contains(&name.as_str()) {
                named.push(name);
            }
        }
        named
    }

    /// Returns a picture whose address an answer names. Only the server's own files are fetched: an address elsewhere would
    /// let it send requests, and the key, to whatever it likes.
    pub(crate) async fn own_file(&self, address: &str) -> Result<Vec<u8>, ImageError> {
        let url = self.base.join(address).map_err(|_| self.protocol("the address of the picture is malformed"))?;
        if url.origin() != self.base.origin() {
            return Err(self.protocol("the picture is on another server, and only this one is asked"));
        }
        let get = self.http.get(url);
        let get = match &self.config.key {
            Some(key) => get.bearer_auth(key.expose()),
            None => get,
        };
        let response = self.send(get, self.timeouts().about, "").await?;
        self.read(response, MAX_PICTURE_BYTES, self.timeouts().about).await
    }

    /// Runs `work`, which asks for one picture, unless the breaker is open, and reports the result to the breaker.
    pub(crate) async fn guarded<T>(&self, work: impl Future<Output = Result<T, ImageError>>) -> Result<T, ImageError> {
        let pass = self.breaker.admit(Instant::now()).map_err(|refused| ImageError::Unavailable {
            why: format!("{} failed several times and is left alone for a while", self.name),
            outage: Outage::Away,
            retry_in: Some(refused.retry_in),
        })?;
        let result = work.await;
        match &result {
            Err(ImageError::Unavailable { .. } | ImageError::Protocol(_)) => pass.failed(Instant::now()),
            Err(ImageError::Cancelled) => drop(pass),
            _ => pass.succeeded(),
        }
        result
    }

    /// Returns the server's words for an error; empty if they repeat what must not be shown.
    fn words(&self, body: &[u8], private: &str) -> String {
        let words = match serde_json::from_slice::<Value>(body) {
            Ok(value) => said(&value).unwrap_or_default(),
            Err(_) => String::new(),
        };
        let words: String = words.chars().filter(|c| !c.is_control()).take(MAX_WORDS).collect();
        if self.is_safe(&words, private) { words } else { String::new() }
    }

    /// Returns true if a text repeats neither the key nor two words of `private` in a row, or its only word.
    pub(crate) fn is_safe(&self, text: &str, private: &str) -> bool {
        let has_key = self.config.key.as_ref().is_some_and(|key| text.contains(key.expose()));
        let words: Vec<&str> = private.split_whitespace().collect();
        let repeats = |run: &[&str]| text.contains(&run.join(" "));
        !has_key && (words.is_empty() || !words.windows(words.len().min(2)).any(repeats))
    }

    fn refusal(&self, status: StatusCode, words: &str, path: &str) -> ImageError {
        let said = if words.is_empty() { String::new() } else { format!(": {words}") };
        let (name, code) = (&self.name, status.as_u16());
        match code {
            401 | 403 if self.config.key.is_some() => {
                ImageError::Configuration(format!("{name} refuses the key; set AZERA__IMAGES__KEY"))
            }
            401 | 403 => ImageError::Configuration(format!("{name} wants a key; set AZERA__IMAGES__KEY")),
            404 | 405 => ImageError::Configuration(format!(
                "{name} has nothing at {path} (status {code}); check images.kind and images.url"
            )),
            408 | 425 | 429 | 500.. => {
                let outage = match code {
                    // A proxy answers for a server that is away.
                    502 | 503 => Outage::Away,
                    // A proxy waited for a server that was there.
                    504 => Outage::Slow,
                    _ => Outage::of_words(words),
                };
                ImageError::outage(outage, format!("{name} cannot draw now (status {code}{said})"))
            }
            _ => ImageError::Refused(format!("{name} refused the request (status {code}{said})")),
        }
    }

    pub(crate) fn network(&self, error: reqwest::Error) -> ImageError {
        // What broke off may have been begun, so it counts as a try.
        let (outage, what) = match error.is_connect() {
            true => (Outage::Away, "cannot be reached"),
            false => (Outage::Failed, "broke off"),
        };
        ImageError::outage(outage, format!("{} {what} ({})", self.name, cause(error)))
    }

    pub(crate) fn silent(&self, wait: Duration) -> ImageError {
        ImageError::outage(Outage::Slow, format!("{} gave no picture within {} s", self.name, wait.as_secs()))
    }

    pub(crate) fn protocol(&self, reason: &str) -> ImageError {
        ImageError::Protocol(format!("{} sent an unexpected answer: {reason}; check images.kind", self.name))
    }

    /// Decodes a picture in base64, with or without a `data:` prefix.
    pub(crate) fn base64(&self, text: &str) -> Result<Vec<u8>, ImageError> {
        use base64::Engine;
        let data = text.split_once("base64,").map_or(text, |(_, data)| data);
        if data.len() / 4 * 3 > MAX_PICTURE_BYTES {
            return Err(self.protocol("the picture is too large"));
        }
        base64::engine::general_purpose::STANDARD
            .decode(data.trim())
            .map_err(|_| self.protocol("the picture is no base64"))
    }
}

/// Returns the first words in an error body.
fn said(value: &Value) -> Option<String> {
    match value {
        Value::String(words) if !words.trim().is_empty() => Some(words.trim().to_owned()),
        Value::Array(all) => all.iter().find_map(said),
        Value::Object(fields) => {
            fields.get("msg").and_then(said).or_else(|| WORD_FIELDS.iter().find_map(|field| said(fields.get(*field)?)))
        }
        _ => None,
    }
}
