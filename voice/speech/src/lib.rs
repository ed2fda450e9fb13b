//! Hears recordings and speaks texts for the engine, with any speech engine behind.
//!
//! [`RecordingListener`] and [`NoteSpeaker`] implement the contracts that the engine calls. Each opens its speech engine
//! when it is first needed, works on one message at a time on a thread for blocking work, and refuses more than a few
//! waiting ones. Which engine that is decides the caller. [`Precedence`] lets calls go before recordings on one machine.

mod lazy;
mod listener;
mod precedence;
mod slot;
mod speaker;

pub use lazy::Open;
pub use listener::RecordingListener;
pub use precedence::Precedence;
pub use speaker::NoteSpeaker;
