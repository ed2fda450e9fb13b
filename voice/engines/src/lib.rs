//! Engines of speech that run in this process, on the processor: [`PiperVoice`] speaks, [`LocalVoices`] speaks with all
//! voices of the machine, those of Piper and of Kokoro, and [`SileroVad`] tells speech from other sounds. All implement
//! the contracts of `azera-voice-api` and run ONNX models with rten. [`Espeak`] alone is a program of its own, for
//! machines without a voice.
//!
//! `pronounce` turns words into phonemes, `pieces` cuts a sentence where a speaker would pause, `piper` and `kokoro` make
//! sound of each piece, `sentence` is what these two have in common, and `level` brings each piece to an even loudness.
//! Text comes in as plain words; nothing here reads numbers, markup or links.

mod espeak;
mod graph;
mod kokoro;
mod level;
mod pieces;
mod piper;
mod pronounce;
mod sentence;
mod silero;
mod voices;

pub use espeak::{ESPEAK, Espeak, EspeakLimits};
pub use piper::PiperVoice;
pub use sentence::{MAX_PACE, MIN_PACE};
pub use silero::SileroVad;
pub use voices::{LocalVoices, VoiceFile};
