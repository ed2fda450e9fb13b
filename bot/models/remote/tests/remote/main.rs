//! Tests of remote models through their interfaces, against a fake server on loopback that writes the real formats.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod about;
mod chat;
mod embed;
mod fake;
mod odd;
mod refusals;
mod rerank;
mod trouble;
