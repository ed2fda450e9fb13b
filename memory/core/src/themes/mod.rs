//! Themes: what is talked about most in a place. In quiet times the memories of a persona in one scope are grouped by the
//! directions of their vectors, and near groups are joined: two levels. The stored rows ([`rows`]) say which memory belongs
//! to which theme and hold no words. Names, examples and counts are made when a theme is shown, from the memories that may be
//! read at that moment. Begin with [`crate::domains::Themes::list`]; [`cluster`] groups, [`build`] stores.

mod build;
mod cluster;
mod label;
mod marks;
mod read;
mod rows;

pub use build::{NextPlace, ThemedPlace};
pub use read::{Theme, ThemePage};

pub(crate) use build::{PROGRESS, begin_anew, is_whole};
pub(crate) use marks::is_mark;
pub(crate) use rows::{change, is_eligible, key, put, remove};
