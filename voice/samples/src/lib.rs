//! Recordings of a voice, from which an XTTS server clones it.
//!
//! [`prepare`] checks an uploaded file and brings it into the form that such a server takes; it is pure. [`SampleFolder`]
//! keeps prepared samples, each with
//! the name of the person whose voice it is and who agreed. [`GivenFolder`] keeps those that people give in chats.

mod files;
mod folder;
mod given;
mod prepare;

pub use folder::{FolderError, MAX_SAMPLES, SampleFolder, StoredSample};
pub use given::{GivenFolder, GivenSample, MAX_GIVEN_SAMPLES};
pub use prepare::{
    LONGEST_SECONDS, MAX_SAMPLE_BYTES, PreparedSample, SAMPLE_RATE, SHORTEST_SECONDS, SampleError, TARGET_LUFS, prepare,
};
