//! Hours and days as a realm counts them.

use std::time::Duration;

use azera_types::{Span, Timestamp};
use jiff::tz::TimeZone;

/// The day of a moment in a time zone, as `2026-03-01`.
pub(crate) fn day(at: Timestamp, zone: &TimeZone) -> String {
    at.to_zoned(zone.clone()).date().to_string()
}

/// Whether a moment lies within hours of the day in a time zone: from the first up to and without the second; from an hour
/// to itself are none.
pub(crate) fn within((from, to): (i8, i8), at: Timestamp, zone: &TimeZone) -> bool {
    let hour = at.to_zoned(zone.clone()).hour();
    if from <= to { from <= hour && hour < to } else { hour >= from || hour < to }
}

/// A time so much later.
pub(crate) fn after(at: Timestamp, wait: Duration) -> Timestamp {
    let wait = Span::new().seconds(i64::try_from(wait.as_secs()).unwrap_or(i64::MAX));
    at.checked_add(wait).unwrap_or(Timestamp::MAX)
}

/// Whether so much time has gone since something; something later than now was noted by a clock that was wrong.
pub(crate) fn is_past(last: Timestamp, wait: Duration, now: Timestamp) -> bool {
    last > now || after(last, wait) <= now
}

/// So many days.
pub(crate) fn days(count: u32) -> Duration {
    Duration::from_secs(u64::from(count) * 24 * 3_600)
}

/// A time so much earlier.
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
            // An hour ahead of UTC, as POSIX writes it.
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
