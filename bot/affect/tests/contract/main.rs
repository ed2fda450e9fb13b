//! Tests of the crate through its public interface.

mod bonds;
mod classifiers;
mod danger;
mod life;
mod many;
mod rules;
mod salience;
mod style;
