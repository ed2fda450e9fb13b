//! The crate's public contracts: persona files, built-ins, task behaviours, character cards.

mod builtins;
mod cards;
mod files;
mod hostile_cards;
mod png;
mod round_trip;
mod tasks;
