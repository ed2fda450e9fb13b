//! The Hearth: learning in the weights. A frozen model, read from the very GGUF file that serves, learns by low-rank adapters
//! on all its linear projections, with the processor or a GPU; what comes out is llama.cpp's own adapter file.
//!
//! The way back through each layer is written by hand (`layer`), so that what is cheap to compute again is not kept, the
//! quantized weights are made plain one projection at a time, and a beginning that many examples share is computed once.
//!
//! Invariants:
//! - The base never changes, and nothing of it is held as plain floats for longer than a product with it takes.
//! - A training is a function of base, examples, recipe and the adapters it stands beside: with the processor, pauses, threads and
//!   time change no bit of its result.
//! - What is learnt beside other adapters reads nothing that they read: the rows of its `A` are orthogonal to all of theirs.

mod adamw;
mod attention;
mod base;
mod checkpoint;
mod device;
mod error;
mod frozen;
mod layer;
mod lora;
mod loss;
mod merge;
mod pack;
mod pass;
mod rope;
mod slice;
mod span;
mod train;

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tiny;

pub use adamw::Recipe;
pub use base::{BaseModel, PROJECTIONS, Rope, Shape};
pub use device::ComputeDevice;
pub use error::{Error, Result};
pub use lora::Lora;
pub use loss::{mean_loss, mean_loss_while};
pub use merge::Compressed;
pub use pack::TokenizedExample;
pub use pass::logits;
pub use train::{NextStep, Progress, Training, Watch};
