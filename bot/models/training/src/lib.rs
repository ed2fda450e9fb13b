//! The trainer of the Hearth: learning in the weights. It trains LoRAs on all linear projections of a frozen model, on
//! the processor or a GPU. The model is read from the same GGUF file that serves chats, and the result is a LoRA file
//! of llama.cpp.
//!
//! The backward pass through each layer is written by hand (`layer.rs`). So values that are cheap to recompute are not
//! kept, the quantized weights are dequantized one projection at a time, and a beginning that many examples share is
//! computed once.
//!
//! This crate does not choose or generate examples. Start with [`Training`], [`Recipe`] and [`TokenizedExample`].
//!
//! Invariants:
//! - The base never changes, and no part of it is held as plain floats for longer than one product takes.
//! - A training is a function of base, examples, recipe and frozen LoRAs. On the processor, pauses, threads and time do
//!   not change a bit of its result.
//! - A LoRA that is trained beside frozen ones reads nothing that they read: the rows of its `A` are orthogonal to all
//!   of theirs.

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
