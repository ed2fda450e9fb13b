//! The models ledger as its callers see it: pulls from a local hub and from local wheels, imports, choices, removals.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::string_slice)]

mod fixtures;
mod folder;
mod hub;
mod hub_server;
mod wheel;
