//! Why a server did not serve a request.

use std::time::Duration;

use azera_voice_api::Error;
use thiserror::Error as ThisError;

/// A server, and why it did not serve a request. Neither contains a key or what was said.
#[derive(Debug, ThisError)]
#[error("{server}: {failure}")]
pub struct ServerError {
    /// The kind of server and its address.
    pub server: String,
    /// What happened.
    pub failure: Failure,
}

/// Why a server did not serve a request.
#[derive(Debug, ThisError)]
pub enum Failure {
    /// A configured value is wrong.
    #[error("{0}")]
    Config(String),
    /// Nothing answers at the address.
    #[error("it cannot be reached ({reason}); is it running, and is {config_key} right?")]
    Unreachable {
        /// The error of the connection.
        reason: String,
        /// The configuration key with the address.
        config_key: String,
    },
    /// The server sent nothing for too long.
    #[error("it said nothing for {} ms", .after.as_millis())]
    Silent {
        /// The time waited.
        after: Duration,
    },
    /// The answer broke off.
    #[error("it broke off: {reason}")]
    BrokeOff {
        /// The error of the connection, or what is missing.
        reason: String,
    },
    /// The server is overloaded or failing: status 408, 425, 429, or 500 and above.
    #[error("it cannot answer now (status {status}: {message})")]
    Trouble {
        /// The HTTP status.
        status: u16,
        /// The server's message.
        message: String,
    },
    /// The server failed several times in a row, so the breaker is open.
    #[error("it failed several times and is asked again in {} s", .retry_in.as_secs())]
    LeftAlone {
        /// The time until the next attempt.
        retry_in: Duration,
    },
    /// The server rejects the key, or requires one: status 401 or 403.
    #[error("it {}: set {config_key} ({message})", if *.had_key { "refuses the key" } else { "wants a key" })]
    Key {
        /// True if a key was sent.
        had_key: bool,
        /// Where the key is configured.
        config_key: String,
        /// The server's message.
        message: String,
    },
    /// The server has nothing at a path, so it is of another kind: status 404 or 405.
    #[error("there is nothing at {path}; check {config_key}")]
    NoSuchPath {
        /// The path of the request.
        path: String,
        /// The configuration keys that say what the server is.
        config_key: String,
    },
    /// The server redirects requests. This is not followed, because speech would go to a place that nobody configured.
    #[error("it points to {target}; if that is right, set {config_key} to it")]
    Moved {
        /// The target of the redirect.
        target: String,
        /// The configuration key with the address.
        config_key: String,
    },
    /// The server rejected the request for another reason.
    #[error("it refused the request (status {status}: {message})")]
    Refused {
        /// The HTTP status.
        status: u16,
        /// The server's message.
        message: String,
    },
    /// The answer does not have the expected form.
    #[error("it sent an unexpected answer: {0}")]
    Protocol(String),
    /// The server sent more than the limit.
    #[error("it sent more than {limit} bytes as {what}")]
    TooMuch {
        /// The part that was too large.
        what: &'static str,
        /// The limit, in bytes.
        limit: usize,
    },
}

impl Failure {
    /// Returns true if the server itself failed, and did not merely reject the request or ask to wait.
    pub(crate) fn is_failure(&self) -> bool {
        match self {
            Self::Trouble { status, .. } => *status != 429,
            Self::Unreachable { .. }
            | Self::Silent { .. }
            | Self::BrokeOff { .. }
            | Self::Protocol(_)
            | Self::TooMuch { .. } => true,
            _ => false,
        }
    }
}

impl From<ServerError> for Error {
    fn from(error: ServerError) -> Self {
        Self::Engine { engine: error.server, why: error.failure.to_string() }
    }
}
