//! Time in texts: the dates, weekdays and relative times that a text names, and the stretch of time that they mean.
//!
//! `lexicon.txt` holds the words of eight languages, `grammar` puts them together, `numeric` reads dates in digits, and
//! `calendar` finds the days. `clause` reads the events and the words by which a question asks for now or for then.
//! Nothing here reads the record. Begin with [`find`].

mod calendar;
mod clause;
mod grammar;
mod lexicon;
mod numeric;
mod reading;
mod since;
mod span;
#[cfg(test)]
mod tests;
mod words;

use std::ops::Range;

use azera_types::Timestamp;
use jiff::fmt::temporal::Pieces;
use jiff::tz::TimeZone;

pub use clause::{Era, EventClause};
pub use span::{Relation, TimeSpan};

pub(crate) use clause::{era, event_clause};
pub(crate) use since::holds_since;
pub(crate) use words::shows_person;

/// The moment and the place in which a text is read.
#[derive(Debug, Clone, PartialEq)]
pub struct Calendar {
    /// The moment to which relative times refer.
    pub now: Timestamp,
    /// The time zone whose days count.
    pub zone: TimeZone,
    /// True where people write the month before the day.
    pub month_first: bool,
}

impl Calendar {
    /// Returns a calendar for a place whose people write the day before the month.
    pub fn new(now: Timestamp, zone: TimeZone) -> Self {
        Self { now, zone, month_first: false }
    }

    /// Returns the same place at another moment.
    pub(crate) fn at(&self, now: Timestamp) -> Self {
        Self { now, ..self.clone() }
    }
}

/// A time that a text names.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Found {
    /// The stretch of time.
    pub(crate) span: TimeSpan,
    /// Where it stands in the text, with the preposition before it.
    pub(crate) range: Range<usize>,
    /// True if it counts from now, such as `last weekend`.
    pub(crate) is_relative: bool,
    /// True for a bare weekday or day of the month. In a statement, such a day can lie on either side.
    pub(crate) is_vague: bool,
}

/// Returns the first time that a text names. `is_person` says whether a folded word is the name of somebody known, who
/// then wins over the month of that name.
pub(crate) fn find(text: &str, calendar: &Calendar, is_person: &dyn Fn(&str) -> bool) -> Option<Found> {
    grammar::Reader::new(text, calendar, is_person).find()
}

/// Returns the moment by which something was known at a time that people write: a date, `June`, `last month`, or a date
/// with a time of day. A time of day without an offset from UTC is that of the place. `A year ago` ends with that day.
/// Returns `None` for a text that names no time, or one with an open end.
pub fn known_by(text: &str, calendar: &Calendar) -> Option<Timestamp> {
    let text = text.trim();
    let moment = text.parse::<Timestamp>().ok().or_else(|| local_moment(text, &calendar.zone));
    if moment.is_some() {
        return moment;
    }
    // A bare month is one behind a preposition.
    let found = find(text, calendar, &|_| false).or_else(|| find(&format!("in {text}"), calendar, &|_| false));
    found?.span.known_by()
}

/// Returns the moment of a date with a time of day, in the zone that stands behind it or else in `zone`. Returns `None`
/// for any other text, such as a date alone.
fn local_moment(text: &str, zone: &TimeZone) -> Option<Timestamp> {
    let pieces = Pieces::parse(text).ok()?;
    let zone = pieces.to_time_zone().ok()?.unwrap_or_else(|| zone.clone());
    let at = pieces.date().to_datetime(pieces.time()?);
    Some(at.to_zoned(zone).ok()?.timestamp())
}

/// A part of a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DayPart {
    Morning,
    Noon,
    Afternoon,
    Evening,
    Night,
}

impl DayPart {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "morning" => Self::Morning,
            "noon" => Self::Noon,
            "afternoon" => Self::Afternoon,
            "evening" => Self::Evening,
            "night" => Self::Night,
            _ => return None,
        })
    }

    /// Returns the first hour, and the hour after the last one, from midnight on. An evening lasts into the night.
    fn hours(self) -> (i64, i64) {
        match self {
            Self::Morning => (5, 12),
            Self::Noon => (11, 15),
            Self::Afternoon => (12, 18),
            Self::Evening => (17, 27),
            Self::Night => (20, 30),
        }
    }
}

/// A unit of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Hour,
    Day,
    Week,
    Fortnight,
    Month,
    Year,
}

impl Unit {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "hour" => Self::Hour,
            "day" => Self::Day,
            "week" => Self::Week,
            "fortnight" => Self::Fortnight,
            "month" => Self::Month,
            "year" => Self::Year,
            _ => return None,
        })
    }
}

/// Which one of the days, weeks or months of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Which {
    /// Nothing is said.
    Plain,
    Last,
    This,
    Next,
    /// The one before the last one, or the weekday of last week.
    Earlier,
}

/// A third of a month.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Third {
    Early,
    Middle,
    Late,
}

/// A time as it is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Named {
    Date {
        year: Option<i16>,
        month: i8,
        day: Option<i8>,
        /// True if day and month may be the other way round.
        swapped: bool,
        third: Option<Third>,
        /// The moment on that day, if a time of day is named.
        moment: Option<Timestamp>,
    },
    Month(i8, Which),
    Year(i16),
    DayOfMonth(i8),
    /// Days from today.
    Day(i32),
    Weekday(i8, Which),
    Weekend(Which),
    Ago(i32, Unit),
    /// From so many units ago until now.
    Lately(i32, Unit),
    /// The current unit, or the one so many steps from it.
    Unit(Unit, i32),
    Season(i8, Option<i16>, Which),
    /// Month, day and length in days.
    Feast(i8, i8, i8, Option<i16>),
}
