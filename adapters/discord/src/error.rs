use azera_adapter::PlatformError;
use serenity::all::ModelError;
use serenity::http::{HttpError, StatusCode};
use thiserror::Error as ThisError;

/// An error of connecting to Discord or of staying connected.
#[derive(Debug, ThisError)]
pub enum Error {
    /// Discord does not know the token.
    #[error(
        "Discord refuses the token: copy it anew from the Bot page of the developer portal (Reset Token) into \
         AZERA__DISCORD__TOKEN"
    )]
    Token,
    /// The settings are invalid.
    #[error("{0}")]
    Settings(String),
    /// Discord cannot be reached, or has a fault; it may work later.
    #[error("Discord cannot be reached: {0}")]
    Unreachable(String),
    /// Discord closed the connection for good.
    #[error("Discord refuses the connection: {0}")]
    Refused(String),
    /// The sync cursor could not be read or written.
    #[error("{path}: {source}")]
    SyncCursor {
        /// The file.
        path: String,
        /// The cause.
        source: std::io::Error,
    },
    /// Discord sent something that cannot be used.
    #[error("what Discord sent cannot be used: {0}")]
    Unusable(String),
}

impl Error {
    /// Returns true if the same call may succeed later without anyone changing anything.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Unreachable(_))
    }
}

impl From<azera_types::IdError> for Error {
    fn from(error: azera_types::IdError) -> Self {
        Self::Unusable(error.to_string())
    }
}

/// The kind of a failed request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failure {
    /// Discord does not know the token.
    Token,
    /// The object of the request does not exist.
    Gone,
    /// Discord refuses the request.
    Refused,
    /// The result is unknown; the request may succeed later.
    Unknown,
}

/// JSON error codes: unknown message, unknown webhook, and a channel with the maximum number of webhooks
/// (<https://discord.com/developers/docs/topics/opcodes-and-status-codes#json>).
const UNKNOWN_MESSAGE: isize = 10_008;
const UNKNOWN_WEBHOOK: isize = 10_015;
const TOO_MANY_WEBHOOKS: isize = 30_007;

/// Classifies a failed request.
pub(crate) fn failure(error: &serenity::Error) -> Failure {
    match error {
        serenity::Error::Http(HttpError::UnsuccessfulRequest(response)) => match response.status_code {
            StatusCode::UNAUTHORIZED => Failure::Token,
            StatusCode::NOT_FOUND => Failure::Gone,
            _ if response.error.code == UNKNOWN_MESSAGE => Failure::Gone,
            StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT => Failure::Unknown,
            status if status.is_client_error() => Failure::Refused,
            _ => Failure::Unknown,
        },
        // The bot has no token for this webhook any more.
        serenity::Error::Model(ModelError::NoTokenSet) => Failure::Gone,
        serenity::Error::Http(HttpError::Request(_)) => Failure::Unknown,
        serenity::Error::Http(_) | serenity::Error::Model(_) => Failure::Refused,
        _ => Failure::Unknown,
    }
}

/// Returns true if the request failed because its webhook does not exist.
pub(crate) fn is_webhook_gone(error: &serenity::Error) -> bool {
    match error {
        serenity::Error::Http(HttpError::UnsuccessfulRequest(response)) => response.error.code == UNKNOWN_WEBHOOK,
        serenity::Error::Model(ModelError::NoTokenSet) => true,
        _ => false,
    }
}

/// Returns true if a webhook was refused because of the channel: the bot lacks the permission, or there are too many
/// webhooks.
pub(crate) fn is_of_the_channel(error: &serenity::Error) -> bool {
    match error {
        serenity::Error::Http(HttpError::UnsuccessfulRequest(response)) => {
            response.status_code == StatusCode::FORBIDDEN || response.error.code == TOO_MANY_WEBHOOKS
        }
        _ => false,
    }
}

/// Describes the failure without the URL, which for a webhook contains its secret.
pub(crate) fn in_words(error: &serenity::Error) -> String {
    match error {
        serenity::Error::Http(HttpError::UnsuccessfulRequest(response)) => {
            format!("{}: {} ({})", response.status_code, response.error.message, response.error.code)
        }
        serenity::Error::Http(HttpError::Request(error)) => {
            if error.is_timeout() {
                "no answer in time".to_owned()
            } else if error.is_connect() {
                "no connection".to_owned()
            } else {
                "the connection broke".to_owned()
            }
        }
        serenity::Error::Model(error) => error.to_string(),
        serenity::Error::Json(_) => "an answer that is not what Discord describes".to_owned(),
        _ => "the connection failed".to_owned(),
    }
}

/// Converts the failure to the engine's error.
pub(crate) fn refusal(error: &serenity::Error) -> PlatformError {
    match failure(error) {
        Failure::Gone | Failure::Refused => PlatformError::Refused(in_words(error)),
        // The operator can replace the token; the reply waits for that.
        Failure::Token | Failure::Unknown => PlatformError::Transient(in_words(error)),
    }
}
