use azera_adapter::HostError;
use azera_types::IdError;
use thiserror::Error;

/// Why the console cannot go on. What goes wrong with a single message is shown there and counted instead.
#[derive(Debug, Error)]
pub enum Error {
    /// What is typed cannot be read.
    #[error("the input cannot be read: {0}")]
    Input(#[source] std::io::Error),
    /// What is said cannot be shown.
    #[error("the output cannot be written: {0}")]
    Output(#[source] std::io::Error),
    /// The line editor gave up.
    #[error("the terminal does not answer: {0}")]
    Editor(String),
    /// The chat to begin in is somebody else's, or no chat of the console.
    #[error("{0} is no chat of the person at the terminal")]
    NotYours(azera_types::ChatId),
    /// A name cannot be made an id.
    #[error("that cannot be a person's name: {0}")]
    Name(#[from] IdError),
    /// The core does not open the chat to begin in.
    #[error(transparent)]
    Host(#[from] HostError),
}
