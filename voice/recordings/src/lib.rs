//! Reads sound files for recognition: WAV, FLAC, MP3, and Ogg with Opus or Vorbis.
//! WebM and MP4 are left out: their readers allocate as much as a damaged file asks for.
//!
//! [`read`] decodes a file, mixes its channels and resamples the sound to 16 kHz; [`read_bytes`] does so with a file in
//! memory, and [`read_as_recorded`] keeps the rate. [`wav_file`] writes a file,
//! and [`Pitch`] changes the pitch of a voice. [`split`] cuts long sound at quiet places. This crate recognises nothing.

mod decode;
mod pitch;
mod read;
mod resample;
mod split;
mod wav;

pub use decode::MAX_RATE;
pub use pitch::Pitch;
pub use read::{MAX_BYTES, MAX_SECONDS, ReadError, read, read_as_recorded, read_bytes};
pub use resample::Resampler;
pub use split::split;
pub use wav::wav_file;
