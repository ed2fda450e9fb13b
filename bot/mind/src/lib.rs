//! What a persona feels and notices. Pure: texts, vectors and times go in, states and labels come out.
//!
//! So far: the mood in what the persona says ([`MoodSense`]) and the tags of what people say ([`TagSense`]). Both are linear
//! classifiers over a sentence's embedding, its words and its letters, learned from the sentences in `examples/` with the
//! embedding model that is in use ([`Senses`]), so that they cost no call of a chat model.
//!
//! Invariants:
//! - No I/O, no clock, no model: whoever calls brings the vectors.
//! - The same examples and vectors give the same sense.
//! - `Debug` shows no text.

mod classify;
mod examples;
mod features;
mod mood;
mod senses;
mod tags;

pub use classify::Error;
pub use examples::{Labelled, labelled};
pub use mood::{Felt, Mood, MoodSense};
pub use senses::Senses;
pub use tags::{Tag, TagSense};
