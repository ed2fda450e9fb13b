//! The mind through its public door.

mod bonds;
mod life;
mod many;
mod rules;
mod senses;
mod style;
mod worth;
