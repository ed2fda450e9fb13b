//! Voice notes: Opus sound in an Ogg file, as Discord and Matrix send it.
//!
//! [`NoteWriter`] makes such a file from mono sound at [`NOTE_RATE`], [`Waveform`] shows its loudness, and
//! [`PacketDecoder`] turns Opus packets of any container into mono sound. Resampling and containers are elsewhere.

mod decode;
mod encode;
mod waveform;

use azera_voice_api::SampleRate;
use thiserror::Error;

pub use decode::PacketDecoder;
pub use encode::NoteWriter;
pub use waveform::Waveform;

/// The rate of Opus sound, in and out.
pub const NOTE_RATE: SampleRate = SampleRate(48_000);

/// Why sound could not be encoded or decoded.
#[derive(Debug, Error)]
pub enum OpusError {
    /// The header of the stream is not one that RFC 7845 allows, or has more than 8 channels.
    #[error("its Opus header is damaged")]
    Header,
    /// A packet is damaged.
    #[error("an Opus packet is damaged")]
    Packet,
    /// The encoder failed, or the file could not be written.
    #[error("the Opus encoder failed: {0}")]
    Encoder(String),
}
