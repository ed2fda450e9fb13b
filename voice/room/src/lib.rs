//! Listening and turn-taking in a voice channel, as a state machine: events in, actions out, time by values. It decodes
//! nothing, computes nothing heavy, and does no I/O, so a made-up room with its own clock can drive it.
//!
//! - [`Gate`] lets packets of people pass only with their consent. It opens a [`SealedPacket`] into a [`Sound`], and a
//!   decoder takes only that.
//! - [`JitterBuffer`] puts the packets of one stream in order, and marks losses and pauses.
//! - [`Room`] finds the ends of utterances, decides whom to answer, and gives way to people who talk.
//! - [`Script`] knows which words of a reply were heard.

mod alignment;
mod endpoint;
mod gate;
mod jitter;
mod opus_packet;
mod room;
mod script;
mod turns;
mod words;

pub use gate::{Gate, SealedPacket, Sound};
pub use jitter::{Frame, JitterBuffer};
pub use room::{Action, Event, Expected, RecognitionId, Room, Said, Settings, StreamId};
pub use script::{Heard, Script};
