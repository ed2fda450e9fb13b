//! Training examples that teach a small model its job as a persona. They are generated from the seeds and templates in
//! `seeds/`, in exactly the prompts that the product makes.
//!
//! This crate does not train. Start with [`synthetic_examples`]; `example.rs` has one function per [`Kind`].
//!
//! Invariants:
//! - The prompts come from the product's own code: `azera-prompt` for turns, `azera-engine` for texts between them.
//!   There is no copy of it here.
//! - The same family, seed, count and shares give the same examples.
//! - No example contains a name or a wording of `eval/`; a test compares them.
//! - The prose in `seeds/held_out.txt` is no training example either, because it evaluates the training.

mod example;
mod perspective;
mod sampler;
mod scene;
mod seeds;
mod writings;

pub use example::{Kind, SHARES, SyntheticExample, prose_held_out, synthetic_examples};

#[cfg(test)]
mod tests;
