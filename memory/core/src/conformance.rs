//! What every implementation of a contract must do, written once and run on each of them.
//!
//! A suite takes a closure that gives a new, empty place each time, as a second closure that opens it. Opening it
//! again after the first one was dropped must find what was durable. A suite panics with what went wrong.

mod place;
mod record;
mod store;
mod text;
mod vector;
mod working;

pub use place::{assert_no_bytes, copy_dir};
pub use record::{record, settings};
pub use store::{store, store_against_map};
pub use text::text;
pub use vector::{DIMENSION, vector};
pub use working::{sweeping, working};
