//! Reads sound files for recognition: WAV, FLAC, Ogg Vorbis and MP3.
//!
//! [`read`] decodes a file, mixes its channels and resamples the sound to 16 kHz. [`split`] cuts long sound at quiet
//! places. This crate recognises nothing.

mod read;
mod resample;
mod split;

pub use read::{MAX_BYTES, MAX_RATE, MAX_SECONDS, ReadError, read};
pub use resample::Resampler;
pub use split::split;
