//! Recognises speech with Whisper models, on the processor and in process.
//!
//! Start with [`Whisper`]. It reads the GGUF file that the model registry makes from CTranslate2's form of the model.
//! `mel` turns sound into a spectrogram, `encoder` reads the spectrogram, and `decoder` computes the next token.
//! `greedy` picks the tokens and knows when to stop. `verdict` drops transcripts of silence and noise. `align` finds
//! the time of each word.
//!
//! The encoder runs on the utterance and one second more, and not on Whisper's usual 30 seconds. Between two `steps` other calls
//! may go first.

mod align;
mod decoder;
mod encoder;
mod greedy;
mod linear;
mod mel;
mod steps;
mod tokens;
mod verdict;
mod weights;
mod whisper;

pub use verdict::{Evidence, is_speech};
pub use whisper::{MAX_SECONDS, Options, Whisper};
