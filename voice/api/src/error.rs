//! Why speech could not be recognised or made.

use thiserror::Error;

use crate::audio::SampleRate;

/// Why an engine could not do its work. No text of an error contains what was said.
#[derive(Debug, Error)]
pub enum Error {
    /// The sound has another rate than the engine takes.
    #[error("the sound has {} samples a second, and {} are needed", .found.0, .wanted.0)]
    WrongRate {
        /// Rate of the sound.
        found: SampleRate,
        /// Rate that the engine takes.
        wanted: SampleRate,
    },
    /// The sound is longer than the engine takes at once.
    #[error("the sound lasts {seconds:.0} s; at most {most:.0} s are recognised at once")]
    TooLong {
        /// Seconds of the sound.
        seconds: f32,
        /// Most seconds.
        most: f32,
    },
    /// The engine does not have this voice.
    #[error("there is no voice `{voice}`; there is {}", .known.join(", "))]
    UnknownVoice {
        /// The id that was asked for.
        voice: String,
        /// Ids of the voices there are.
        known: Vec<String>,
    },
    /// The caller no longer wants the result.
    #[error("the call was cancelled")]
    Cancelled,
    /// A model file cannot be read.
    #[error("cannot read {file}: {why}")]
    Model {
        /// What the file is.
        file: String,
        /// What is wrong with it.
        why: String,
    },
    /// The engine failed.
    #[error("{engine} failed: {why}")]
    Engine {
        /// The engine's name.
        engine: String,
        /// What happened.
        why: String,
    },
}
