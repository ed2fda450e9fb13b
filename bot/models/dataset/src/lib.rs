//! What a small model is taught so that it knows its job as a persona: lessons drawn from the seeds and templates in
//! `lessons/`, in exactly the prompts the product makes.
//!
//! Invariants:
//! - A lesson's prompt comes from the product's own code: `azera-prompt` for turns, `azera-engine` for what is written between
//!   them. There is no second form of it here.
//! - The same family, seed, count and shares give the same lessons.
//! - No name and no wording of `eval/` stands in a lesson; a test holds them against each other.
//! - What stands in `lessons/held_out.txt` is no lesson either: learning is examined by it.

mod example;
mod perspective;
mod sampler;
mod scene;
mod seeds;
mod writings;

pub use example::{Kind, SHARES, SyntheticExample, prose_held_out, synthetic_examples};

#[cfg(test)]
mod tests;
