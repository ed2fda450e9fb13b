//! Models on servers, through their contracts, against a peer on loopback that writes the real formats.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod about;
mod chat;
mod embed;
mod fake;
mod refusals;
mod trouble;
