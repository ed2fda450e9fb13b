//! How commands on this machine find the running web: a file in the data folder that only its owner may read.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use crate::private_file;

/// The file's name.
const FILE: &str = "web.json";

/// Longest wait for an answer of the running web.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Largest answer that is read. Who uses hooks imports thousands of files, and may list them.
const MAX_ANSWER_BYTES: u64 = 64 << 20;

/// What the running web tells commands on this machine.
#[derive(Clone, Serialize, Deserialize)]
pub struct Local {
    /// The address of the web.
    pub address: String,
    /// The link that makes the owner's account; `None` once there is one.
    pub setup: Option<String>,
    /// A key for commands on this machine, which works from there alone and until the web stops. It manages the owner's keys,
    /// and reads and imports for people of the terminal.
    pub key: String,
}

impl std::fmt::Debug for Local {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Local({})", self.address)
    }
}

/// Why the file cannot be read.
#[derive(Debug, Error)]
pub enum LocalError {
    /// There is no file, so no web runs.
    #[error("no web runs here")]
    NotRunning,
    /// The file cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The web does not answer.
    #[error("the web at {address} does not answer: {source}")]
    Silent {
        /// The address.
        address: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// The web takes the question and does not answer in time.
    #[error("the web at {address} did not answer in time: Azera is busy or stops; try again later")]
    Busy {
        /// The address.
        address: String,
    },
    /// The web has no such thing.
    #[error("{0}")]
    Missing(String),
    /// The web answers that it does not work.
    #[error("{0}")]
    Refused(String),
}

impl Local {
    fn path(folder: &Path) -> PathBuf {
        folder.join(FILE)
    }

    /// Reads what the running web wrote.
    ///
    /// # Errors
    /// No web runs, or the file cannot be read.
    pub fn read(folder: &Path) -> Result<Self, LocalError> {
        let path = Self::path(folder);
        match std::fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes)
                .map_err(|error| LocalError::Read { path, source: std::io::Error::other(error) }),
            Err(error) if error.kind() == ErrorKind::NotFound => Err(LocalError::NotRunning),
            Err(source) => Err(LocalError::Read { path, source }),
        }
    }

    /// Returns true if the web still runs. A file may be left of one that was killed.
    pub fn is_running(&self) -> bool {
        TcpStream::connect(self.host()).is_ok()
    }

    /// Returns true if the address is one of this machine alone. Commands send their key nowhere else.
    pub fn is_here(&self) -> bool {
        self.host().parse::<SocketAddr>().is_ok_and(|address| address.ip().is_loopback())
    }

    fn host(&self) -> &str {
        self.address.strip_prefix("http://").unwrap_or(&self.address)
    }

    /// Calls the running web with the rights of its owner. Blocks until it answers.
    ///
    /// # Errors
    /// The web does not answer, or refuses.
    pub fn call(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Value, LocalError> {
        self.call_for(method, path, body, Some(TIMEOUT))
    }

    /// Does the same, and waits at most so long for each part of the answer; without a limit if there is none.
    ///
    /// # Errors
    /// The web does not answer, or refuses.
    pub fn call_for(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
        wait: Option<Duration>,
    ) -> Result<Value, LocalError> {
        let silent = |source: std::io::Error| {
            let address = self.address.clone();
            match source.kind() {
                ErrorKind::WouldBlock | ErrorKind::TimedOut => LocalError::Busy { address },
                _ => LocalError::Silent { address, source },
            }
        };
        let (status, answer) = self.exchange(method, path, body, wait).map_err(silent)?;
        let value: Value = serde_json::from_str(&answer).map_err(|error| silent(std::io::Error::other(error)))?;
        if status == 200 {
            return Ok(value);
        }
        let text = |name: &str| value.get(name).and_then(Value::as_str);
        let detail = text("error").unwrap_or("it refuses").to_owned();
        Err(if text("code") == Some("not_found") { LocalError::Missing(detail) } else { LocalError::Refused(detail) })
    }

    fn exchange(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
        wait: Option<Duration>,
    ) -> std::io::Result<(u16, String)> {
        let host = self.host();
        let body = body.map(Value::to_string).unwrap_or_default();
        let mut stream = TcpStream::connect(host)?;
        stream.set_read_timeout(wait)?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            self.key,
            body.len()
        )?;
        let mut answer = String::new();
        stream.take(MAX_ANSWER_BYTES).read_to_string(&mut answer)?;
        let wrong = || std::io::Error::other("this is no answer of the web");
        let (head, body) = answer.split_once("\r\n\r\n").ok_or_else(wrong)?;
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).ok_or_else(wrong)?;
        Ok((status, body.to_owned()))
    }

    /// Writes the file, which is never readable for others.
    pub(crate) fn write(&self, folder: &Path) -> Result<(), crate::Error> {
        let path = Self::path(folder);
        let content = serde_json::to_vec(self);
        let content = content.map_err(|error| crate::Error::File { path: path.clone(), source: error.into() })?;
        private_file::write(&path, &content)
    }

    /// Removes the file.
    pub(crate) fn remove(folder: &Path) {
        if let Err(error) = std::fs::remove_file(Self::path(folder)) {
            tracing::debug!(%error, "there is no file of the web to remove");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_web_that_does_not_answer_is_busy() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let local = Local { address, setup: None, key: "azl_1".to_owned() };
        let answer = local.call_for("GET", "/", None, Some(Duration::from_millis(1)));
        assert!(matches!(answer, Err(LocalError::Busy { .. })));
    }
}
