//! Hours and days in a realm's time zone.

use std::time::Duration;

use azera_types::{Span, Timestamp};
use jiff::tz::TimeZone;

/// Returns the date of a time in a time zone, such as `2026-03-01`.
pub(crate) fn day(at: Timestamp, zone: &TimeZone) -> String {
    at.to_zoned(zone.clone()).date().to_string()
}

/// Returns true if a time lies within a range of hours in a time zone. The range includes its first hour and excludes
/// its second; a range from an hour to itself is empty.
pub(crate) fn within((from, to): (i8, i8), at: Timestamp, zone: &TimeZone) -> bool {
    let hour = at.to_zoned(zone.clone()).hour();
    if from <= to { from <= hour && hour < to } else { hour >= from || hour < to }
}

/// Returns the time `wait` after `at`.
pub(crate) fn after(at: Timestamp, wait: Duration) -> Timestamp {
    let wait = Span::new().seconds(i64::try_from(wait.as_secs()).unwrap_or(i64::MAX));
    at.checked_add(wait).unwrap_or(Timestamp::MAX)
}

/// Returns true if `wait` has passed since `last`. A `last` later than now comes from a clock that was wrong and counts
/// as passed.
pub(crate) fn is_past(last: Timestamp, wait: Duration, now: Timestamp) -> bool {
    last > now || after(last, wait) <= now
}

pub(crate) fn days(count: u32) -> Duration {
    Duration::from_secs(u64::from(count) * 24 * 3_600)
}

/// Returns the time `wait` before `at`.
pub(crate) fn before(at: Timestamp, wait: Duration) -> Timestamp {
    let wait = Span::new().seconds(i64::try_from(wait.as_secs()).unwrap_or(i64::MAX));
    at.checked_sub(wait).unwrap_or(Timestamp::MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hours_may_reach_over_midnight() {
        #[track_caller]
        fn check(hours: (i8, i8), want: &[i8]) {
            // One hour ahead of UTC, in POSIX notation.
            let zone = TimeZone::posix("CET-1").unwrap();
            let at =
                |hour: i8| after("2026-01-10T23:00:00Z".parse().unwrap(), Duration::from_secs(hour as u64 * 3_600));
            let held: Vec<i8> = (0..24).filter(|hour| within(hours, at(*hour), &zone)).collect();
            assert_eq!(held, want);
        }
        check((22, 2), &[0, 1, 22, 23]);
        check((3, 5), &[3, 4]);
        check((5, 5), &[]);
    }
}
