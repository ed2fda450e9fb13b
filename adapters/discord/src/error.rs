use azera_adapter::PlatformError;
use serenity::all::ModelError;
use serenity::http::{HttpError, StatusCode};
use thiserror::Error as ThisError;

/// Why the bot could not be connected to Discord, or not stay so.
#[derive(Debug, ThisError)]
pub enum Error {
    /// Discord does not know the token.
    #[error(
        "Discord refuses the token: copy it anew from the Bot page of the developer portal (Reset Token) into \
         AZERA__DISCORD__TOKEN"
    )]
    Token,
    /// The settings cannot be used.
    #[error("{0}")]
    Settings(String),
    /// Discord could not be reached, or had a fault of its own; it may work later.
    #[error("Discord cannot be reached: {0}")]
    Unreachable(String),
    /// Discord closed the connection for good.
    #[error("Discord refuses the connection: {0}")]
    Refused(String),
    /// What was handled could not be kept.
    #[error("{path}: {source}")]
    SyncCursor {
        /// Which file.
        path: String,
        /// Why not.
        source: std::io::Error,
    },
    /// Something that Discord sent cannot be used.
    #[error("what Discord sent cannot be used: {0}")]
    Unusable(String),
}

impl Error {
    /// Whether the same call may succeed later without anybody changing anything.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Unreachable(_))
    }
}

impl From<azera_types::IdError> for Error {
    fn from(error: azera_types::IdError) -> Self {
        Self::Unusable(error.to_string())
    }
}

/// What became of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failure {
    /// Discord does not know the token.
    Token,
    /// What it is about is not there.
    Gone,
    /// Discord will not do it.
    Refused,
    /// Whether it was done is not known; it may work later.
    Unknown,
}

/// JSON error codes of a message and of a webhook that are not there any more, and of a channel that has all the webhooks it can have
/// (<https://discord.com/developers/docs/topics/opcodes-and-status-codes#json>).
const UNKNOWN_MESSAGE: isize = 10_008;
const UNKNOWN_WEBHOOK: isize = 10_015;
const TOO_MANY_WEBHOOKS: isize = 30_007;

/// Sorts a failure by what can be done about it.
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
        // A webhook that the bot cannot speak through any more.
        serenity::Error::Model(ModelError::NoTokenSet) => Failure::Gone,
        serenity::Error::Http(HttpError::Request(_)) => Failure::Unknown,
        serenity::Error::Http(_) | serenity::Error::Model(_) => Failure::Refused,
        _ => Failure::Unknown,
    }
}

/// Whether it failed because the webhook is not there that it had to go through.
pub(crate) fn is_webhook_gone(error: &serenity::Error) -> bool {
    match error {
        serenity::Error::Http(HttpError::UnsuccessfulRequest(response)) => response.error.code == UNKNOWN_WEBHOOK,
        serenity::Error::Model(ModelError::NoTokenSet) => true,
        _ => false,
    }
}

/// Whether a webhook was refused because of the channel, whoever speaks: the bot may make none there, or there are too many.
pub(crate) fn is_of_the_channel(error: &serenity::Error) -> bool {
    match error {
        serenity::Error::Http(HttpError::UnsuccessfulRequest(response)) => {
            response.status_code == StatusCode::FORBIDDEN || response.error.code == TOO_MANY_WEBHOOKS
        }
        _ => false,
    }
}

/// The failure in words. Never the address: that of a webhook holds its secret.
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

/// The failure as the core understands it.
pub(crate) fn refusal(error: &serenity::Error) -> PlatformError {
    match failure(error) {
        Failure::Gone | Failure::Refused => PlatformError::Refused(in_words(error)),
        // A token can be mended; the reply waits for it.
        Failure::Token | Failure::Unknown => PlatformError::Transient(in_words(error)),
    }
}
