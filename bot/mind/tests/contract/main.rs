//! The mind through its public door.

mod life;
mod many;
mod senses;
