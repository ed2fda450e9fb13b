//! The crate's public interface: persona files, built-in personas, task behaviours, character cards.

mod builtins;
mod cards;
mod files;
mod hostile_cards;
mod png;
mod round_trip;
mod tasks;
