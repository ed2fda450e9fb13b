use azera_adapter::HostError;
use azera_types::IdError;
use thiserror::Error;

/// An error that ends the console. Errors of single messages are shown and counted instead.
#[derive(Debug, Error)]
pub enum Error {
    /// Reading the input failed.
    #[error("the input cannot be read: {0}")]
    Input(#[source] std::io::Error),
    /// Writing the output failed.
    #[error("the output cannot be written: {0}")]
    Output(#[source] std::io::Error),
    /// The line editor failed.
    #[error("the terminal does not answer: {0}")]
    Editor(String),
    /// The chat to begin in belongs to somebody else, or is not a chat of the console.
    #[error("{0} is no chat of the person at the terminal")]
    NotYours(azera_types::ChatId),
    /// A name cannot be converted to an id.
    #[error("that cannot be a person's name: {0}")]
    Name(#[from] IdError),
    /// The engine does not open the chat to begin in.
    #[error(transparent)]
    Host(#[from] HostError),
}
