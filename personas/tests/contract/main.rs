//! The crate's public interface: persona files, built-in personas, task behaviours, character cards.

mod builtins;
mod cards;
mod export;
mod files;
mod hostile_cards;
mod lorebooks;
mod mutated;
mod png;
mod readers;
mod round_trip;
mod tasks;
