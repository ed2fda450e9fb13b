use std::time::Duration;

use thiserror::Error as ThisError;

/// Why a server did not do what it was asked. `server` is always the kind of server and its address, without a key.
#[derive(Debug, ThisError)]
pub enum Error {
    /// What the configuration says of the server cannot be.
    #[error("{0}")]
    Config(String),
    /// Nothing answers at its address.
    #[error("{server} cannot be reached ({reason}); is it running, and is {config_key} right?")]
    Unreachable {
        /// Which server.
        server: String,
        /// What the connection said.
        reason: String,
        /// The key of the configuration that holds its address.
        config_key: String,
    },
    /// It took the request and then said nothing for too long.
    #[error("{server} said nothing for {} s", .after.as_secs())]
    Silent {
        /// Which server.
        server: String,
        /// How long it was waited for.
        after: Duration,
    },
    /// It broke off in the middle.
    #[error("{server} broke off: {reason}")]
    BrokeOff {
        /// Which server.
        server: String,
        /// What the connection, or the server, said.
        reason: String,
    },
    /// It has too much to do or is in trouble: status 408, 425, 429, or 500 and above.
    #[error("{server} cannot answer now (status {status}: {message})")]
    Trouble {
        /// Which server.
        server: String,
        /// The HTTP status.
        status: u16,
        /// What it said.
        message: String,
        /// How long it asks to be left alone.
        retry_after: Option<Duration>,
    },
    /// It failed several times in a row, and is left alone for a while.
    #[error("{server} failed several times and is asked again in {} s", .retry_in.as_secs())]
    LeftAlone {
        /// Which server.
        server: String,
        /// How long.
        retry_in: Duration,
    },
    /// It does not take the key, or wants one: status 401 or 403.
    #[error("{server} {}: set {config_key} ({message})", if *.had_key { "refuses the key" } else { "wants a key" })]
    Key {
        /// Which server.
        server: String,
        /// Whether a key was sent.
        had_key: bool,
        /// Where the key is set.
        config_key: String,
        /// What the server said.
        message: String,
    },
    /// It does not have the model.
    #[error("{server} has no model {model}; {}", named(.known))]
    NoModel {
        /// Which server.
        server: String,
        /// Which model was asked for.
        model: String,
        /// Models it has, as far as it tells.
        known: Vec<String>,
    },
    /// It sends requests elsewhere, which is not followed: what was said would go to a place nobody configured.
    #[error("{server} points to {target}; if that is right, set {config_key} to it")]
    Moved {
        /// Which server.
        server: String,
        /// Where it points.
        target: String,
        /// The key of the configuration that holds its address.
        config_key: String,
    },
    /// The prompt or a text is longer than the server's model can read.
    #[error("that is too long for {server}: {message}")]
    TooLong {
        /// Which server.
        server: String,
        /// What it said.
        message: String,
    },
    /// It refused the request for another reason.
    #[error("{server} refused the request (status {status}: {message})")]
    Refused {
        /// Which server.
        server: String,
        /// The HTTP status.
        status: u16,
        /// What it said.
        message: String,
        /// The field of the request it does not know or like, if it named one.
        parameter: Option<String>,
    },
    /// Its answer is not what such a server says.
    #[error("{server} does not answer as such a server does: {reason}; is {config_key} right?")]
    Protocol {
        /// Which server.
        server: String,
        /// What is wrong with the answer.
        reason: String,
        /// The keys of the configuration that say what server it is.
        config_key: String,
    },
    /// It sent more than is taken in.
    #[error("{server} sent more than {limit} bytes as {what}")]
    TooMuch {
        /// Which server.
        server: String,
        /// What was too large.
        what: &'static str,
        /// How much is taken.
        limit: usize,
    },
    /// It now gives vectors of another model than those already stored.
    #[error(
        "{server} gives other vectors than before (`{now}` instead of `{was}`); after a restart everything is embedded anew"
    )]
    OtherVectors {
        /// Which server.
        server: String,
        /// Identity or size of the vectors known so far.
        was: String,
        /// Identity or size of those it gives now.
        now: String,
    },
    /// What was asked cannot be asked of such a server.
    #[error("{0}")]
    Unsupported(String),
}

impl Error {
    /// Whether the same request may succeed later without anyone changing anything.
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

    /// Whether it is worth asking again at once: not while the server is being left alone.
    pub(crate) fn is_retryable(&self) -> bool {
        self.is_transient() && !matches!(self, Self::LeftAlone { .. })
    }

    /// Whether the server itself failed, as opposed to refusing for a reason or asking for patience.
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

/// Models an error names at most.
const SHOWN_MODELS: usize = 12;

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
