//! A time as it stands in a text.

use super::span::{Relation, TimeSpan};
use super::{DayPart, Named};

/// What stands before a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Prefix {
    None,
    In,
    On,
    Between,
    Side(Relation),
}

/// A stretch of time with how it is named.
pub(super) struct Span {
    pub(super) span: TimeSpan,
    pub(super) is_vague: bool,
    pub(super) is_relative: bool,
}

/// A time, its part of the day, and the word after it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Read {
    pub(super) named: Named,
    pub(super) part: Option<DayPart>,
    pub(super) end: usize,
}
