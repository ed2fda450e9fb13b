//! The mind through its public door.

mod bonds;
mod classifiers;
mod life;
mod many;
mod rules;
mod salience;
mod style;
