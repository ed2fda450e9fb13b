//! The address of a server, its key, and how long to wait for it.

use std::fmt;
use std::time::Duration;

use azera_breaker::Limits;

/// A key for a server. `Debug` hides it.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

impl ApiKey {
    /// Wraps a key.
    pub fn new(key: impl Into<String>) -> Self {
        Self(key.into())
    }

    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

/// How long to wait for a server, and when to leave it alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// The timeout of the connection.
    pub connect: Duration,
    /// The timeout of a transcript, and of the first sound of a sentence.
    pub first: Duration,
    /// The timeout between two pieces of a sound.
    pub idle: Duration,
    /// The timeout of questions about the server itself, and of a cloned voice.
    pub about: Duration,
    /// The limits of the circuit breaker.
    pub breaker: Limits,
}

impl Default for Timeouts {
    /// Somebody waits for each answer, and a fallback is there: two failures open the breaker.
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(3),
            first: Duration::from_secs(20),
            idle: Duration::from_secs(10),
            about: Duration::from_secs(20),
            breaker: Limits { failures: 2, ..Limits::default() },
        }
    }
}

/// A server.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// The address. For an OpenAI-compatible server it includes the path, such as `https://host/v1`; without a path,
    /// `/v1` is added.
    pub url: String,
    /// The key, which is sent as a bearer token.
    pub key: Option<ApiKey>,
    /// The configuration section of these values, for messages that say what to change.
    pub section: String,
    /// How long to wait.
    pub timeouts: Timeouts,
}
