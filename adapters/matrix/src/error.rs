use std::path::PathBuf;

use azera_adapter::{HostError, PlatformError};
use azera_types::IdError;
use matrix_sdk::ruma::api::error::ErrorKind;
use thiserror::Error;

/// An error of the Matrix adapter.
#[derive(Debug, Error)]
pub enum Error {
    /// A file of the session could not be read or written.
    #[error("{path}: {source}", path = path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// A file of the session is damaged.
    #[error("{path} is damaged: {why}", path = path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The fault.
        why: String,
    },
    /// The system provides no random numbers.
    #[error("no random numbers for a key: {0}")]
    Random(getrandom::Error),
    /// The homeserver cannot be used: a wrong address, or no Matrix server.
    #[error("the homeserver cannot be used: {0}")]
    Homeserver(Box<matrix_sdk::ClientBuildError>),
    /// There is neither a session nor a way to log in.
    #[error(
        "there is no session for Matrix yet: set AZERA__MATRIX__PASSWORD, or AZERA__MATRIX__TOKEN with an access token of the \
         bot's account"
    )]
    NoCredentials,
    /// The homeserver refused the user, password or token.
    #[error("the homeserver refused the login: {0}")]
    Login(String),
    /// The session ended: it was logged out elsewhere, or the device was removed.
    #[error("the homeserver ended the session: log in again with the password (the old session was put aside)")]
    LoggedOut,
    /// The session belongs to another account.
    #[error("{folder} holds the session of {found}, and the configuration names {wanted}", folder = folder.display())]
    AnotherAccount {
        /// The folder of the session.
        folder: PathBuf,
        /// The session's account.
        found: String,
        /// The configured account.
        wanted: String,
    },
    /// A call failed.
    #[error(transparent)]
    Sdk(#[from] matrix_sdk::Error),
    /// The store of rooms and keys failed.
    #[error("the store of rooms and keys: {0}")]
    Store(#[from] matrix_sdk::StoreError),
    /// A row of the adapter's own state is damaged.
    #[error("a note in the store is damaged: {0}")]
    Note(#[from] serde_json::Error),
    /// An id is too long for Azera, or contains control characters.
    #[error(transparent)]
    Id(#[from] IdError),
    /// The engine returned an error.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The room does not exist, or the bot is not in it.
    #[error("the bot is not in {0}")]
    NoRoom(String),
}

impl Error {
    /// Returns true if the same call may succeed later: a lost connection, a rate limit, a fault of the server.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Sdk(error) => sdk_is_transient(error),
            Self::Store(_) => true,
            Self::Host(error) => error.is_temporary(),
            Self::Homeserver(error) => matches!(&**error, matrix_sdk::ClientBuildError::Http(_)),
            _ => false,
        }
    }

    /// Returns true if the homeserver no longer knows the session.
    pub(crate) fn is_logged_out(&self) -> bool {
        match self {
            Self::Sdk(error) => matches!(error.client_api_error_kind(), Some(ErrorKind::UnknownToken { .. })),
            _ => false,
        }
    }
}

/// Returns true unless the homeserver refused the call.
fn sdk_is_transient(error: &matrix_sdk::Error) -> bool {
    match error {
        matrix_sdk::Error::Http(http) => match http.as_client_api_error() {
            Some(refusal) => {
                refusal.status_code.is_server_error()
                    || matches!(http.client_api_error_kind(), Some(ErrorKind::LimitExceeded { .. }))
            }
            None => true,
        },
        matrix_sdk::Error::AuthenticationRequired | matrix_sdk::Error::WrongRoomState(_) => false,
        _ => true,
    }
}

impl From<matrix_sdk::HttpError> for Error {
    fn from(error: matrix_sdk::HttpError) -> Self {
        Self::Sdk(error.into())
    }
}

impl From<Error> for PlatformError {
    fn from(error: Error) -> Self {
        if error.is_transient() { Self::Transient(error.to_string()) } else { Self::Refused(error.to_string()) }
    }
}
