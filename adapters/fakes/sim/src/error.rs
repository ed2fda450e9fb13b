use thiserror::Error;

use crate::{LineError, SessionError};

/// Why a timeline could not be played.
#[derive(Debug, Error)]
pub enum Error {
    /// A line is not what the format says; nothing was played.
    #[error("line {number}: {what}")]
    Line {
        /// Which line, counted from 1.
        number: usize,
        /// What is wrong with it.
        what: LineError,
    },
    /// The timeline could not be read.
    #[error("the timeline cannot be read: {0}")]
    Read(#[source] std::io::Error),
    /// What happened could not be written.
    #[error("the output cannot be written: {0}")]
    Write(#[source] std::io::Error),
    /// The session could not let time pass or open again.
    #[error("line {number}: {source}")]
    Session {
        /// The line being played, counted from 1.
        number: usize,
        /// What failed.
        source: SessionError,
    },
}
