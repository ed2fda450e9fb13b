use std::time::Duration;

use thiserror::Error as ThisError;

/// The reasons why a server did not serve a request. `server` is always the kind of server and its address, without a
/// key.
#[derive(Debug, ThisError)]
pub enum Error {
    /// The configuration of the server is invalid.
    #[error("{0}")]
    Config(String),
    /// Nothing answers at the address.
    #[error("{server} cannot be reached ({reason}); is it running, and is {config_key} right?")]
    Unreachable {
        /// The server.
        server: String,
        /// The error of the connection.
        reason: String,
        /// The configuration key with the address.
        config_key: String,
    },
    /// The server accepted the request and then sent nothing for too long.
    #[error("{server} said nothing for {}", waited(*.after))]
    Silent {
        /// The server.
        server: String,
        /// The time waited.
        after: Duration,
    },
    /// The response broke off.
    #[error("{server} broke off: {reason}")]
    BrokeOff {
        /// The server.
        server: String,
        /// The error of the connection or the server.
        reason: String,
    },
    /// The server is overloaded or failing: status 408, 425, 429, or 500 and above.
    #[error("{server} cannot answer now (status {status}: {message})")]
    Trouble {
        /// The server.
        server: String,
        /// The HTTP status.
        status: u16,
        /// The server's message.
        message: String,
        /// How long the server asks clients to wait.
        retry_after: Option<Duration>,
    },
    /// The server failed several times in a row, so the breaker is open.
    #[error("{server} failed several times and is asked again in {} s", .retry_in.as_secs())]
    LeftAlone {
        /// The server.
        server: String,
        /// The time until the next attempt.
        retry_in: Duration,
    },
    /// The server rejects the key, or requires one: status 401 or 403.
    #[error("{server} {}: set {config_key} ({message})", if *.had_key { "refuses the key" } else { "wants a key" })]
    Key {
        /// The server.
        server: String,
        /// True if a key was sent.
        had_key: bool,
        /// Where the key is configured.
        config_key: String,
        /// The server's message.
        message: String,
    },
    /// The server does not have the model.
    #[error("{server} has no model {model}; {}", named(.known))]
    NoModel {
        /// The server.
        server: String,
        /// The requested model.
        model: String,
        /// The server's models, as far as it reports them.
        known: Vec<String>,
    },
    /// The server redirects requests. This is not followed, because messages would go to a place that nobody
    /// configured.
    #[error("{server} points to {target}; if that is right, set {config_key} to it")]
    Moved {
        /// The server.
        server: String,
        /// The target of the redirect.
        target: String,
        /// The configuration key with the address.
        config_key: String,
    },
    /// The prompt or a text is too long for the server's model.
    #[error("that is too long for {server}: {message}")]
    TooLong {
        /// The server.
        server: String,
        /// The server's message.
        message: String,
    },
    /// The server rejected the request for another reason.
    #[error("{server} refused the request (status {status}: {message})")]
    Refused {
        /// The server.
        server: String,
        /// The HTTP status.
        status: u16,
        /// The server's message.
        message: String,
        /// The unsupported field of the request, if the server named one.
        parameter: Option<String>,
    },
    /// The response does not have the expected format.
    #[error("{server} sent an unexpected answer: {reason}; check {config_key}")]
    Protocol {
        /// The server.
        server: String,
        /// What is wrong with the response.
        reason: String,
        /// The configuration keys that say what the server is.
        config_key: String,
    },
    /// The server sent more than the limit.
    #[error("{server} sent more than {limit} bytes as {what}")]
    TooMuch {
        /// The server.
        server: String,
        /// The part that was too large.
        what: &'static str,
        /// The limit, in bytes.
        limit: usize,
    },
    /// The server now returns vectors of another model than before.
    #[error(
        "{server} gives other vectors than before (`{now}` instead of `{was}`); after a restart everything is embedded anew"
    )]
    OtherVectors {
        /// The server.
        server: String,
        /// The identity or size of the earlier vectors.
        was: String,
        /// The identity or size of the present vectors.
        now: String,
    },
    /// This kind of server does not support the request.
    #[error("{0}")]
    Unsupported(String),
}

impl Error {
    /// Returns true if the same request may succeed later with nothing changed.
    pub fn is_transient(&self) -> bool {
        matches!(
            self,
            Self::Unreachable { .. }
                | Self::Silent { .. }
                | Self::BrokeOff { .. }
                | Self::Trouble { .. }
                | Self::LeftAlone { .. }
        )
    }

    /// Returns true if an immediate retry is worthwhile. This is not so while the breaker is open.
    pub(crate) fn is_retryable(&self) -> bool {
        self.is_transient() && !matches!(self, Self::LeftAlone { .. })
    }

    /// Returns true if the server itself failed, and did not merely reject the request or ask to wait.
    pub(crate) fn is_failure(&self) -> bool {
        match self {
            Self::Trouble { status, .. } => *status != 429,
            Self::Protocol { .. } | Self::TooMuch { .. } => true,
            other => other.is_retryable(),
        }
    }
}

impl From<Error> for azera_model_api::Error {
    fn from(error: Error) -> Self {
        match error {
            error if error.is_transient() => Self::Unavailable(error.to_string()),
            Error::TooLong { .. } | Error::Unsupported(_) => Self::Invalid(error.to_string()),
            Error::Config(_) | Error::NoModel { .. } | Error::Key { .. } => Self::Load(error.to_string()),
            error => Self::Engine(error.to_string()),
        }
    }
}

/// The most models that an error lists.
const SHOWN_MODELS: usize = 12;

fn waited(after: Duration) -> String {
    if after < Duration::from_secs(1) { format!("{} ms", after.as_millis()) } else { format!("{} s", after.as_secs()) }
}

fn named(models: &[String]) -> String {
    if models.is_empty() {
        return "it names none".to_owned();
    }
    let names = models.iter().take(SHOWN_MODELS).map(String::as_str).collect::<Vec<_>>().join(", ");
    match models.len().saturating_sub(SHOWN_MODELS) {
        0 => format!("it has {names}"),
        more => format!("it has {names} and {more} more"),
    }
}
