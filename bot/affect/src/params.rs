use azera_config::Mind as Constants;
use azera_types::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

/// The days to search for the next night or daily hour. Time zones have skipped one whole day (Samoa, 2011), never two.
const MAX_DAYS: usize = 4;

/// The parameters of a mind: its constants, and the time zone of its realm.
#[derive(Debug, Clone)]
pub struct MindParams {
    /// The numbers of the configuration's `[mind]`, or a realm's own.
    pub constants: Constants,
    /// The realm's time zone, for nights and the daily hour.
    pub zone: TimeZone,
}

impl Default for MindParams {
    /// Returns the default constants in UTC.
    fn default() -> Self {
        Self { constants: Constants::default(), zone: TimeZone::UTC }
    }
}

impl MindParams {
    /// Returns true if a time is in a night.
    pub fn is_night(&self, at: Timestamp) -> bool {
        self.next_night(at) == Some(at)
    }

    /// Returns the first time from `at` on that is in a night. A night includes its first hour and excludes its last.
    /// It follows the zone's clocks, so it is an hour shorter or longer when they change in it. `None` near the end of
    /// time.
    pub(crate) fn next_night(&self, at: Timestamp) -> Option<Timestamp> {
        let (from, to) = (self.constants.night_from_hour, self.constants.night_to_hour);
        let today = at.to_zoned(self.zone.clone()).date();
        // A night that began yesterday may not be over.
        let mut day = today.yesterday().unwrap_or(today);
        for _ in 0..MAX_DAYS {
            let last = if from < to { day } else { day.tomorrow().ok()? };
            let (start, end) = (self.hour(day, from)?, self.hour(last, to)?);
            if at < end && start < end {
                return Some(at.max(start));
            }
            day = day.tomorrow().ok()?;
        }
        None
    }

    /// Returns the first daily hour after `at`. `None` near the end of time.
    pub(crate) fn next_daily_hour(&self, at: Timestamp) -> Option<Timestamp> {
        let mut day = at.to_zoned(self.zone.clone()).date();
        for _ in 0..MAX_DAYS {
            let hour = self.hour(day, self.constants.reflection_hour)?;
            if hour > at {
                return Some(hour);
            }
            day = day.tomorrow().ok()?;
        }
        None
    }

    /// Returns the time of an hour of a day. If the clocks skip the hour, it is moved forward by the gap; if they show
    /// it twice, it is the first of the two.
    fn hour(&self, day: Date, hour: u8) -> Option<Timestamp> {
        let hour = i8::try_from(hour).ok().filter(|hour| *hour < 24)?;
        day.at(hour, 0, 0, 0).to_zoned(self.zone.clone()).ok().map(|time| time.timestamp())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Central European Time in POSIX notation, so that no zone file is read.
    fn params(from: u8, to: u8) -> MindParams {
        let zone = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        let constants =
            Constants { night_from_hour: from, night_to_hour: to, reflection_hour: to, ..Constants::default() };
        MindParams { constants, zone }
    }

    #[test]
    fn nights_follow_the_clocks_of_the_zone() {
        #[track_caller]
        fn check((from, to): (u8, u8), at: &str, night: &str) {
            let found = params(from, to).next_night(at.parse().unwrap()).unwrap();
            assert_eq!(found, night.parse::<Timestamp>().unwrap(), "{from} to {to}, {at}");
        }
        check((1, 7), "2026-01-10T12:00:00Z", "2026-01-11T00:00:00Z");
        check((1, 7), "2026-01-11T05:59:59Z", "2026-01-11T05:59:59Z");
        check((1, 7), "2026-01-11T06:00:00Z", "2026-01-12T00:00:00Z");
        check((1, 7), "2026-07-11T05:00:00Z", "2026-07-11T23:00:00Z");
        // Across midnight.
        check((22, 6), "2026-01-11T20:00:00Z", "2026-01-11T21:00:00Z");
        check((22, 6), "2026-01-11T04:00:00Z", "2026-01-11T04:00:00Z");
        check((22, 6), "2026-01-11T05:00:00Z", "2026-01-11T21:00:00Z");
        // On 29 March 2026 clocks go from 02:00 to 03:00. A night ends an hour sooner, and a night of only that hour is
        // skipped.
        check((1, 7), "2026-03-29T04:59:59Z", "2026-03-29T04:59:59Z");
        check((1, 7), "2026-03-29T05:00:00Z", "2026-03-29T23:00:00Z");
        check((2, 3), "2026-03-28T12:00:00Z", "2026-03-30T00:00:00Z");
        // On 25 October 2026 clocks go from 03:00 back to 02:00, so there are two hours between 02:00 and 03:00.
        check((2, 3), "2026-10-25T01:30:00Z", "2026-10-25T01:30:00Z");
        check((1, 7), "2026-10-25T05:59:00Z", "2026-10-25T05:59:00Z");
        check((1, 7), "2026-10-25T06:00:00Z", "2026-10-26T00:00:00Z");
    }

    #[test]
    fn the_daily_hour_comes_once_a_day() {
        #[track_caller]
        fn check(hour: u8, at: &str, next: &str) {
            let found = params(0, hour).next_daily_hour(at.parse().unwrap()).unwrap();
            assert_eq!(found, next.parse::<Timestamp>().unwrap(), "{hour}, {at}");
        }
        check(21, "2026-01-10T19:59:59Z", "2026-01-10T20:00:00Z");
        check(21, "2026-01-10T20:00:00Z", "2026-01-11T20:00:00Z");
        check(21, "2026-03-28T20:00:00Z", "2026-03-29T19:00:00Z");
        check(2, "2026-03-28T12:00:00Z", "2026-03-29T01:00:00Z");
        check(2, "2026-10-25T00:00:00Z", "2026-10-26T01:00:00Z");
    }

    #[test]
    fn the_ends_of_time_do_not_panic() {
        for at in [Timestamp::MIN, Timestamp::MAX] {
            let params = params(22, 6);
            assert!(params.next_night(at).is_none_or(|night| night >= at));
            assert!(params.next_daily_hour(at).is_none_or(|hour| hour > at));
        }
    }
}
