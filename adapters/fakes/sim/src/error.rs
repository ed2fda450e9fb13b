use thiserror::Error;

use crate::{LineError, SessionError};

/// An error of reading or playing a timeline.
#[derive(Debug, Error)]
pub enum Error {
    /// A line has a wrong format; nothing was played.
    #[error("line {number}: {what}")]
    Line {
        /// Number of the line, from 1.
        number: usize,
        /// The fault.
        what: LineError,
    },
    /// Reading the timeline failed.
    #[error("the timeline cannot be read: {0}")]
    Read(#[source] std::io::Error),
    /// Writing the output failed.
    #[error("the output cannot be written: {0}")]
    Write(#[source] std::io::Error),
    /// The session could not advance the time or reopen.
    #[error("line {number}: {source}")]
    Session {
        /// Number of the line being played, from 1.
        number: usize,
        /// The cause.
        source: SessionError,
    },
}
