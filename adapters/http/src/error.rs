use thiserror::Error;

/// Why the web cannot start or go on.
#[derive(Debug, Error)]
pub enum Error {
    /// Another program uses the address.
    #[error("{address} is used by another program ({source})")]
    Taken {
        /// The address.
        address: std::net::SocketAddr,
        /// The system's error.
        source: std::io::Error,
    },
    /// The address cannot be used.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: std::net::SocketAddr,
        /// The system's error.
        source: std::io::Error,
    },
    /// A setting is wrong.
    #[error("{0}")]
    Setting(String),
    /// The system gave no random bytes.
    #[error("the system gives no random bytes: {0}")]
    Random(String),
    /// A password could not be hashed.
    #[error("cannot hash a password: {0}")]
    Password(String),
    /// The accounts cannot be read or written.
    #[error("cannot read or write the accounts of the web: {0}")]
    Store(#[from] StoreError),
    /// The file with the local token cannot be written.
    #[error("cannot write {path}: {source}")]
    File {
        /// The file.
        path: std::path::PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
}

/// Why the store of accounts failed.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct StoreError(pub String);
