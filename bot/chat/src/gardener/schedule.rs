//! When a persona dreams and when it reflects: the one place that decides so.

use std::time::Duration;

use azera_memory::Tended;
use azera_types::{Span, Timestamp};
use jiff::civil::Time;
use jiff::tz::TimeZone;
use jiff::{ToSpan, Zoned};

use crate::config::GardenConfig;

/// What is done for a realm as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Activity {
    /// A dream.
    Dream,
    /// An entry of the journal.
    Reflect,
}

/// Time between two of a kind at least, so that there is one a night and one an evening.
const APART: Duration = Duration::from_secs(12 * 3_600);

/// Steps from one hindrance to the next until a time is given up.
const STEPS: usize = 8;

/// What is to be done next for a realm in which something was last said at `said`, and when; `None` if nothing was said
/// that is not taken up yet.
pub(crate) fn next_due(
    said: Timestamp,
    tended: &Tended,
    config: &GardenConfig,
    zone: &TimeZone,
) -> Option<(Timestamp, Activity)> {
    let dream = (config.dreams, config.night, tended.dreamt, Activity::Dream);
    let evening = (config.journal_hour, (config.journal_hour + 1) % 24);
    let reflect = (config.reflections, evening, tended.reflected, Activity::Reflect);
    let due = |(wanted, hours, last, activity): (bool, (i8, i8), Option<Timestamp>, Activity)| {
        let nothing_new = last.is_some_and(|last| last >= said);
        if !wanted || nothing_new {
            return None;
        }
        let rested = after(said, config.rest);
        let from = last.map_or(rested, |last| rested.max(after(last, APART)));
        first_time(from, hours, tended, config, zone).map(|at| (at, activity))
    };
    [due(dream), due(reflect)].into_iter().flatten().min_by_key(|(at, _)| *at)
}

/// The first time from `from` on within the hours given, outside the quiet hours, on a day with something left of its budget.
fn first_time(
    from: Timestamp,
    hours: (i8, i8),
    tended: &Tended,
    config: &GardenConfig,
    zone: &TimeZone,
) -> Option<Timestamp> {
    let mut at = from;
    for _ in 0..STEPS {
        let local = at.to_zoned(zone.clone());
        let hour = local.hour();
        at = if !within(hours, hour) {
            next_hour(&local, hours.0)?
        } else if within(config.quiet, hour) {
            next_hour(&local, config.quiet.1)?
        } else if tended.asked >= config.per_day && tended.day == day(at, zone) {
            next_hour(&local, 0)?
        } else {
            return Some(at);
        };
    }
    None
}

/// The day of a moment in a time zone, as `2026-03-01`.
pub(crate) fn day(at: Timestamp, zone: &TimeZone) -> String {
    at.to_zoned(zone.clone()).date().to_string()
}

/// Whether an hour lies within some; from an hour to itself are none.
pub(crate) fn within((from, to): (i8, i8), hour: i8) -> bool {
    if from <= to { from <= hour && hour < to } else { hour >= from || hour < to }
}

/// When the clock next shows an hour.
fn next_hour(local: &Zoned, hour: i8) -> Option<Timestamp> {
    let time = Time::new(hour, 0, 0, 0).ok()?;
    let today = local.date().to_datetime(time).to_zoned(local.time_zone().clone()).ok()?;
    if today > *local {
        return Some(today.timestamp());
    }
    let tomorrow = local.date().checked_add(1.day()).ok()?;
    Some(tomorrow.to_datetime(time).to_zoned(local.time_zone().clone()).ok()?.timestamp())
}

/// A time so much later.
pub(crate) fn after(at: Timestamp, wait: Duration) -> Timestamp {
    let wait = Span::new().seconds(i64::try_from(wait.as_secs()).unwrap_or(i64::MAX));
    at.checked_add(wait).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[track_caller]
    fn check(
        said: &str,
        dreamt: Option<&str>,
        reflected: Option<&str>,
        config: &GardenConfig,
        want: &[(&str, Activity)],
    ) {
        let zone = TimeZone::get("Europe/Berlin").unwrap();
        let mut tended = Tended { dreamt: dreamt.map(at), reflected: reflected.map(at), ..Tended::default() };
        let mut due = Vec::new();
        while let Some((when, activity)) = next_due(at(said), &tended, config, &zone) {
            due.push((when, activity));
            match activity {
                Activity::Dream => tended.dreamt = Some(when),
                Activity::Reflect => tended.reflected = Some(when),
            }
        }
        let want: Vec<_> = want.iter().map(|(when, activity)| (at(when), *activity)).collect();
        assert_eq!(due, want, "said {said}");
    }

    #[test]
    fn one_dream_a_night_and_one_entry_an_evening_of_what_was_said_since() {
        use Activity::{Dream, Reflect};
        let usual = GardenConfig::default();
        // Berlin is two hours ahead of UTC in summer.
        let dream = ("2026-06-01T23:00:00Z", Dream);
        check("2026-06-01T10:00:00Z", None, None, &usual, &[("2026-06-01T19:00:00Z", Reflect), dream]);
        check("2026-06-01T19:50:00Z", None, None, &usual, &[dream, ("2026-06-02T19:00:00Z", Reflect)]);
        check(
            "2026-06-02T01:00:00Z",
            None,
            None,
            &usual,
            &[("2026-06-02T01:30:00Z", Dream), ("2026-06-02T19:00:00Z", Reflect)],
        );
        // It dreamt in this night already, and was woken.
        let again = ("2026-06-02T23:00:00Z", Dream);
        let woken = Some("2026-06-01T23:00:00Z");
        check("2026-06-02T01:00:00Z", woken, None, &usual, &[("2026-06-02T19:00:00Z", Reflect), again]);
        check("2026-06-01T10:00:00Z", Some("2026-06-01T23:00:00Z"), Some("2026-06-01T19:00:00Z"), &usual, &[]);
        let quiet = GardenConfig { quiet: (20, 4), ..usual.clone() };
        check("2026-06-01T10:00:00Z", None, None, &quiet, &[("2026-06-02T02:00:00Z", Dream)]);
        let none = GardenConfig { dreams: false, reflections: false, ..usual };
        check("2026-06-01T10:00:00Z", None, None, &none, &[]);
    }

    #[test]
    fn a_day_s_budget_ends_with_the_day() {
        let config = GardenConfig { per_day: 3, ..GardenConfig::default() };
        let tended = Tended { day: "2026-06-01".into(), asked: 3, ..Tended::default() };
        let due = next_due(at("2026-06-01T10:00:00Z"), &tended, &config, &TimeZone::UTC);
        assert_eq!(due, Some((at("2026-06-02T01:00:00Z"), Activity::Dream)));
    }

    #[test]
    fn hours_may_reach_over_midnight() {
        let held: Vec<i8> = (0..24).filter(|hour| within((22, 2), *hour)).collect();
        assert_eq!(held, [0, 1, 22, 23]);
        assert!((0..24).all(|hour| !within((5, 5), hour)));
    }
}
