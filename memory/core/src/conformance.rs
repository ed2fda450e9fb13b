//! Conformance suites: tests that every implementation of a trait of this crate must pass.
//!
//! A suite takes a closure that creates a new, empty place and returns a second closure, which opens that place. After
//! the first handle is dropped, opening the place again must find all durable data. A suite panics with a description
//! of the fault.

mod place;
mod record;
mod staged;
mod store;
mod talk;
mod text;
mod vector;
mod working;

pub use crate::graph::{MentionOf, mentions};

pub use place::{assert_no_bytes, copy_dir};
pub use record::{record, record_with_files, record_with_vectors, settings};
pub use staged::StagedStore;
pub use store::{store, store_against_map};
pub use talk::{inbound, reply};
pub use text::text;
pub use vector::{DIMENSION, vector};
pub use working::{sweeping, working};
