//! Speech on servers, behind the contracts of `azera-voice-api`.
//!
//! [`ServerRecognizer`] recognises with OpenAI-compatible servers and with whisper.cpp's server. [`ServerVoices`] speaks
//! with OpenAI-compatible servers (OpenAI, Kokoro-FastAPI, openedai-speech, Orpheus-FastAPI) and with both kinds of XTTS
//! server. [`WithFallback`] lets another engine answer while a server does not. Start with `server.rs`, which sends
//! every request.
//!
//! The contracts block. Each call waits for the network with [`tokio::runtime::Handle::block_on`], so call it on a
//! thread for blocking work, such as those of `spawn_blocking`. On a thread that runs asynchronous tasks it panics.
//!
//! Invariants:
//! - Requests go to the configured address and nowhere else. Redirects are not followed, and proxies of the environment
//!   are not used.
//! - No request is repeated, because the fallback answers sooner. A server that keeps failing gets no requests for a
//!   while (`azera-breaker`).
//! - Everything that arrives has a limit: answers, sounds, lists, and the wait for each.
//! - No log, error or `Debug` contains a key or what people say.

mod config;
mod error;
mod fallback;
mod lazy;
mod level;
mod openai;
mod recognizer;
mod samples;
mod server;
mod sound;
mod transcript;
mod voices;
mod wav;
mod xtts;

pub use config::{ApiKey, ServerConfig, Timeouts};
pub use error::{Failure, ServerError};
pub use fallback::WithFallback;
pub use lazy::{LazyRecognizer, LazyVoices};
pub use openai::SoundFormat;
pub use recognizer::{MAX_UTTERANCE_SECONDS, RecognitionApi, RecognizerConfig, ServerRecognizer};
pub use samples::{Numbers, Samples};
pub use server::{MAX_ANSWER_BYTES, MAX_LATENTS_BYTES};
pub use sound::MAX_SOUND_SECONDS;
pub use voices::{SERVER_VOICE_RATE, ServerVoices, SpeechApi, USUAL_VOICE, VoicesConfig};
