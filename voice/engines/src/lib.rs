//! Engines of speech that run in this process, on the processor: [`PiperVoice`] speaks,
//! [`LocalVoices`] speaks with several of them, [`SileroVad`] tells speech from
//! other sounds. All implement the contracts of `azera-voice-api` and run ONNX models with rten. [`Espeak`] alone is a
//! program of its own, for machines without a voice.
//!
//! `pronounce` turns words into phonemes, `pieces` cuts a sentence where a speaker would pause, `piper` makes sound of
//! each piece, and `level` brings it to an even loudness. Text comes in as plain words; nothing here reads numbers,
//! markup or links.

mod espeak;
mod graph;
mod level;
mod pieces;
mod piper;
mod pronounce;
mod silero;
mod voices;

pub use espeak::{ESPEAK, Espeak, EspeakLimits};
pub use piper::{MAX_PACE, MIN_PACE, PiperVoice};
pub use silero::SileroVad;
pub use voices::{LocalVoices, VoiceFile};
