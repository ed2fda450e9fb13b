//! Downloads files from the model hub.
//!
//! The hub describes a file in the headers of its own response, before it redirects to the host that stores the file.
//! The headers contain the commit, the ETag and, for large files, an ETag that is the SHA-256.

use std::{path::Path, time::Duration};

use reqwest::{
    Client, RequestBuilder, Response, StatusCode,
    header::{CONTENT_RANGE, ETAG, LOCATION, RANGE},
    redirect::{Action, Attempt, Policy},
};
use tokio::{fs, io::AsyncWriteExt, time::timeout};

use crate::{
    digest::{require_sha256, require_size, sha256_of},
    error::{Error, IoContext},
    progress::{Progress, Step},
    source::is_sha256,
    store::PARTIAL_SUFFIX,
};

/// The default hub.
pub const DEFAULT_HUB_ENDPOINT: &str = "https://huggingface.co";
/// The user agent for hubs.
const USER_AGENT: &str = concat!("azera/", env!("CARGO_PKG_VERSION"));
/// The longest time for the hub to describe a file.
const METADATA_TIMEOUT: Duration = Duration::from_secs(30);
/// The longest time for the hub to say that it has a file, before a model is chosen that needs no hub.
const PRESENCE_TIMEOUT: Duration = Duration::from_secs(5);
/// The time without data after which a transfer counts as broken.
const STALL_TIMEOUT: Duration = Duration::from_secs(60);
/// The bytes that make an attempt worthwhile: the count of failed attempts then starts again.
const WORTHWHILE_BYTES: u64 = 1 << 20;
/// The pause before the second retry. It doubles with each further one, up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The commit of a file. Every hub sends this header, and hardly any other server does.
const COMMIT: &str = "x-repo-commit";
/// The ETag of a large file. The host that stores the file would send another one.
const LINKED_ETAG: &str = "x-linked-etag";
/// The most redirects in a row.
const MAX_REDIRECTS: usize = 10;
/// The longest pause between two attempts.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// A client for a hub.
pub(crate) struct Hub {
    client: Client,
    /// Stops at a redirect to another host, because the headers that describe a file come from the hub itself.
    same_host: Client,
    token: Option<String>,
    endpoint: String,
    attempts: u32,
}

/// A file of a hub repository.
pub(crate) struct HubFile<'a> {
    pub(crate) repo: &'a str,
    pub(crate) revision: &'a str,
    pub(crate) file: &'a str,
    /// The SHA-256 that it must have.
    pub(crate) sha256: Option<&'a str>,
    /// The size in bytes that it must have.
    pub(crate) size: Option<u64>,
}

/// The hub's description of a file.
struct RemoteFile {
    url: String,
    etag: String,
    size: u64,
    /// The SHA-256 of a large file, which is its ETag.
    sha256: Option<String>,
}

impl Hub {
    /// Creates a client for `endpoint`. A broken transfer is resumed at most `attempts` times in a row without success.
    pub(crate) fn new(endpoint: &str, token: Option<&str>, attempts: u32) -> Result<Self, Error> {
        let endpoint = endpoint.trim_end_matches('/').to_owned();
        let client = |policy| Client::builder().user_agent(USER_AGENT).redirect(policy).build();
        let clients = client(Policy::limited(MAX_REDIRECTS))
            .and_then(|follows| Ok((follows, client(Policy::custom(stay_on_host))?)))
            .map_err(|error| Error::HubProtocol { endpoint: endpoint.clone(), reason: reason_of(error) });
        let (client, same_host) = clients?;
        Ok(Self { client, same_host, token: token.map(str::to_owned), endpoint, attempts })
    }

    /// Creates a request to the hub. The token does not follow a redirect to another host.
    fn get(&self, client: &Client, url: &str) -> RequestBuilder {
        let request = client.get(url);
        match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    /// Downloads a file to `target` and resumes what an earlier call left there. Returns the file's SHA-256, and true
    /// if the hub itself vouched for it.
    ///
    /// A file whose SHA-256 or size differs from that of the hub or of `file` is deleted.
    pub(crate) async fn fetch(
        &self,
        file: &HubFile<'_>,
        target: &Path,
        progress: Progress<'_>,
    ) -> Result<(String, bool), Error> {
        let remote = self.describe(file).await?;
        // Compare before gigabytes are transferred.
        let what = format!("{}/{}", file.repo, file.file);
        if let Some(size) = file.size {
            require_size(&what, size, remote.size)?;
        }
        if let (Some(wanted), Some(served)) = (file.sha256, &remote.sha256) {
            require_sha256(&what, wanted, served)?;
        }
        let partial = with_suffix(target, PARTIAL_SUFFIX);
        let origin = with_suffix(target, ".etag");
        if fs::read_to_string(&origin).await.ok().as_deref() != Some(remote.etag.as_str()) {
            // The partial file belongs to another version, or to none.
            remove_file(&partial).await?;
            fs::write(&origin, &remote.etag).await.at(&origin)?;
        }
        self.transfer(file.file, &remote, &partial, progress).await?;
        let checked = async {
            let (sha256, size) = sha256_of(&partial, progress).await?;
            require_size(&what, remote.size, size)?;
            if let Some(expected) = file.sha256.or(remote.sha256.as_deref()) {
                require_sha256(&what, expected, &sha256)?;
            }
            Ok(sha256)
        };
        let sha256 = match checked.await {
            Ok(sha256) => sha256,
            Err(error) => {
                remove_file(&partial).await?;
                remove_file(&origin).await?;
                return Err(error);
            }
        };
        fs::rename(&partial, target).await.at(target)?;
        remove_file(&origin).await?;
        Ok((sha256, remote.sha256.is_some()))
    }

    /// Returns true if the hub has the file and says so soon.
    pub(crate) async fn has(&self, file: &HubFile<'_>) -> bool {
        matches!(timeout(PRESENCE_TIMEOUT, self.ask(file)).await, Ok(Ok(_)))
    }

    async fn describe(&self, file: &HubFile<'_>) -> Result<RemoteFile, Error> {
        let remote = timeout(METADATA_TIMEOUT, self.ask(file)).await;
        remote.unwrap_or_else(|_| Err(self.unreachable("no answer in time".to_owned())))
    }

    async fn ask(&self, file: &HubFile<'_>) -> Result<RemoteFile, Error> {
        let revision = file.revision.replace('/', "%2F");
        let url = format!("{}/{}/resolve/{revision}/{}", self.endpoint, file.repo, file.file);
        // A range of one byte is enough: the response contains the total size.
        let described = self.describing(file, self.get(&self.same_host, &url)).await?;
        let etag = self.header(&described, LINKED_ETAG).or_else(|_| self.header(&described, ETAG.as_str()))?;
        let etag = etag.replace('"', "");
        self.header(&described, COMMIT)?;
        let sized = if described.status().is_redirection() {
            let stored_at = self.header(&described, LOCATION.as_str())?;
            self.describing(file, self.client.get(stored_at)).await?
        } else {
            described
        };
        let range = self.header(&sized, CONTENT_RANGE.as_str())?;
        let size = range.rsplit('/').next().and_then(|total| total.parse().ok());
        let size = size.ok_or_else(|| self.not_a_hub(format!("the header {CONTENT_RANGE} says {range}")))?;
        let sha256 = is_sha256(&etag).then(|| etag.clone());
        Ok(RemoteFile { url, etag, size, sha256 })
    }

    async fn describing(&self, file: &HubFile<'_>, request: RequestBuilder) -> Result<Response, Error> {
        let answer = request.header(RANGE, "bytes=0-0").send().await.and_then(Response::error_for_status);
        answer.map_err(|error| self.request_failed(file, error))
    }

    fn header<'a>(&self, response: &'a Response, name: &str) -> Result<&'a str, Error> {
        let value = response.headers().get(name).and_then(|value| value.to_str().ok());
        value.ok_or_else(|| self.not_a_hub(format!("the header {name} is missing")))
    }

    /// Downloads the rest of `partial`, and resumes broken transfers.
    async fn transfer(
        &self,
        file: &str,
        remote: &RemoteFile,
        partial: &Path,
        progress: Progress<'_>,
    ) -> Result<(), Error> {
        let mut fruitless = 0;
        let mut pause = Duration::ZERO;
        loop {
            let before = length_of(partial).await?;
            if before >= remote.size && partial.exists() {
                return Ok(());
            }
            let broken = match self.receive(file, remote, partial, before, progress).await {
                Ok(()) => "the connection was closed".to_owned(),
                Err(Broken::Network(reason)) => reason,
                Err(Broken::Failed(error)) => return Err(error),
            };
            let received = length_of(partial).await?;
            if received >= remote.size {
                continue;
            }
            if received.saturating_sub(before) >= WORTHWHILE_BYTES {
                (fruitless, pause) = (0, Duration::ZERO);
            }
            if fruitless >= self.attempts {
                return Err(Error::Interrupted { file: file.to_owned(), received, total: remote.size, reason: broken });
            }
            fruitless += 1;
            tracing::info!(file, received, total = remote.size, reason = %broken, "resuming a broken transfer");
            tokio::time::sleep(pause).await;
            pause = (pause * 2).clamp(FIRST_PAUSE, LONGEST_PAUSE);
        }
    }

    /// Sends one request, and appends to `partial` what arrives until the server ends the response.
    async fn receive(
        &self,
        file: &str,
        remote: &RemoteFile,
        partial: &Path,
        start: u64,
        progress: Progress<'_>,
    ) -> Result<(), Broken> {
        let mut request = self.get(&self.client, &remote.url);
        if start > 0 {
            request = request.header(RANGE, format!("bytes={start}-"));
        }
        let mut response = timeout(STALL_TIMEOUT, request.send()).await.map_err(|_| Broken::stalled())??;
        let mut received = start;
        match response.status() {
            StatusCode::OK => received = 0,
            StatusCode::PARTIAL_CONTENT => {
                let range = response.headers().get(CONTENT_RANGE).and_then(|range| range.to_str().ok());
                if !range.is_some_and(|range| range.starts_with(&format!("bytes {start}-"))) {
                    return Err(self.not_a_hub(format!("asked for bytes from {start} on, it sent others")).into());
                }
            }
            status if status.is_server_error() => return Err(Broken::Network(format!("status {}", status.as_u16()))),
            status => {
                return Err(Error::HubStatus { endpoint: self.endpoint.clone(), status: status.as_u16() }.into());
            }
        }
        let mut out = fs::OpenOptions::new().create(true).append(true).open(partial).await.at(partial)?;
        // A server without ranges starts from the beginning, so the file does too.
        out.set_len(received).await.at(partial)?;
        let outcome = loop {
            progress(Step::Receiving { file, received, total: Some(remote.size) });
            let chunk = match timeout(STALL_TIMEOUT, response.chunk()).await {
                Ok(Ok(Some(chunk))) => chunk,
                Ok(Ok(None)) => break Ok(()),
                Ok(Err(error)) => break Err(Broken::from(error)),
                Err(_) => break Err(Broken::stalled()),
            };
            received += chunk.len() as u64;
            if received > remote.size {
                drop(out);
                remove_file(partial).await?;
                let what = format!("what {} sent as {file}", self.endpoint);
                return Err(Error::WrongSize { what, expected: remote.size, actual: received }.into());
            }
            out.write_all(&chunk).await.at(partial)?;
        };
        // Keep the bytes that arrived before a break.
        out.flush().await.at(partial)?;
        out.sync_all().await.at(partial)?;
        outcome
    }

    fn request_failed(&self, file: &HubFile<'_>, error: reqwest::Error) -> Error {
        let endpoint = self.endpoint.clone();
        let repo = file.repo.to_owned();
        match error.status() {
            Some(StatusCode::NOT_FOUND) => {
                Error::HubNotFound { endpoint, repo, revision: file.revision.to_owned(), file: file.file.to_owned() }
            }
            Some(StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => Error::HubForbidden { endpoint, repo },
            Some(status) => Error::HubStatus { endpoint, status: status.as_u16() },
            None => self.unreachable(reason_of(error)),
        }
    }

    fn not_a_hub(&self, reason: String) -> Error {
        Error::HubProtocol { endpoint: self.endpoint.clone(), reason }
    }

    fn unreachable(&self, reason: String) -> Error {
        Error::HubUnreachable { endpoint: self.endpoint.clone(), reason }
    }
}

/// Follows only redirects to the same scheme, host and port.
fn stay_on_host(attempt: Attempt<'_>) -> Action {
    if attempt.previous().len() > MAX_REDIRECTS {
        return attempt.error("too many redirects");
    }
    let leaves = attempt.previous().last().is_some_and(|last| last.origin() != attempt.url().origin());
    if leaves { attempt.stop() } else { attempt.follow() }
}

/// The reasons why a request did not bring the rest of a file.
enum Broken {
    /// Another attempt is worthwhile.
    Network(String),
    /// Another attempt is pointless.
    Failed(Error),
}

impl Broken {
    fn stalled() -> Self {
        Self::Network(format!("nothing came for {} s", STALL_TIMEOUT.as_secs()))
    }
}

impl From<reqwest::Error> for Broken {
    fn from(error: reqwest::Error) -> Self {
        Self::Network(reason_of(error))
    }
}

impl From<Error> for Broken {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// Returns the innermost cause without the address, which may contain a signature.
fn reason_of(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut cause: &dyn std::error::Error = &error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

fn with_suffix(path: &Path, suffix: &str) -> std::path::PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

async fn length_of(path: &Path) -> Result<u64, Error> {
    match fs::metadata(path).await {
        Ok(metadata) => Ok(metadata.len()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(error).at(path),
    }
}

async fn remove_file(path: &Path) -> Result<(), Error> {
    match fs::remove_file(path).await {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error).at(path),
        _ => Ok(()),
    }
}
