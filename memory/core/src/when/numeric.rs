//! Dates in digits, such as `2026-03-14`, `14.03.2026` and `14/03`.

use std::ops::Range;
use std::sync::LazyLock;

use azera_types::Timestamp;
use jiff::civil::{Date, Time};
use jiff::tz::TimeZone;
use regex::{Captures, Regex};

use super::{Calendar, Named};

static ISO: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"\b(?P<year>(?:19|20)\d\d)(?:[-/.](?P<month>0?[1-9]|1[0-2])(?:[-/.](?P<day>0?[1-9]|[12]\d|3[01]))?)(?:(?P<gap>[T ])(?P<hour>[01]?\d|2[0-3]):(?P<minute>[0-5]\d)(?::(?P<second>[0-5]\d)(?:\.\d+)?)?(?P<offset>Z|[+-]\d\d(?::?\d\d)?| [+-]\d\d:?\d\d)?)?\b",
    )
});

static DAY_MONTH: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"\b(?P<one>\d{1,2})(?:(?P<dot>\.)|[/-])(?P<other>\d{1,2})(?:(?:[./-])(?P<year>(?:19|20)\d\d|\d\d)\b|(?P<end>\.?))",
    )
});

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("the pattern is constant and tests run it")
}

/// Returns all dates in digits with their places in the text.
pub(super) fn dates(text: &str, calendar: &Calendar) -> Vec<(Range<usize>, Named)> {
    let mut found: Vec<(Range<usize>, Named)> = Vec::new();
    for date in ISO.captures_iter(text) {
        let Some(whole) = date.get(0) else { continue };
        if continues(text, whole.end()) {
            continue;
        }
        if let Some(named) = year_month_and_day(&date, &calendar.zone) {
            found.push((whole.range(), named));
        }
    }
    for date in DAY_MONTH.captures_iter(text) {
        let Some(whole) = date.get(0) else { continue };
        let known = found.iter().any(|(range, _)| range.start < whole.end() && whole.start() < range.end);
        if known || continues(text, whole.end()) || !begins_alone(text, whole.start()) {
            continue;
        }
        if let Some(named) = day_and_month(&date, calendar.month_first) {
            found.push((whole.range(), named));
        }
    }
    found.sort_by_key(|(range, _)| range.start);
    found
}

/// Reads a year, a month, and a day if there is one. A time with an offset from UTC is on the day that it has in `zone`.
fn year_month_and_day(date: &Captures<'_>, zone: &TimeZone) -> Option<Named> {
    let (year, month, day): (i16, i8, Option<i8>) =
        (number(date, "year")?, number(date, "month")?, number(date, "day"));
    let moment = day.and_then(|day| moment_on(Date::new(year, month, day).ok()?, date, zone));
    let (year, month, day) = match moment.map(|moment| moment.to_zoned(zone.clone()).date()) {
        Some(date) => (date.year(), date.month(), Some(date.day())),
        None => (year, month, day),
    };
    Some(Named::Date { year: Some(year), month, day, swapped: false, third: None, moment })
}

/// Returns the moment of the time of day behind a date; `None` if there is none. Without an offset from UTC, or with one
/// that does not exist, it is a time in `zone`.
fn moment_on(date: Date, found: &Captures<'_>, zone: &TimeZone) -> Option<Timestamp> {
    let second: Option<i8> = number(found, "second");
    let time = Time::new(number(found, "hour")?, number(found, "minute")?, second.unwrap_or(0), 0).ok()?;
    let at = date.to_datetime(time);
    // People write `2026-06-30 10:00-11:30` for a beginning and an end.
    let has_end = second.is_none() && found.name("gap").is_some_and(|gap| gap.as_str() == " ");
    let offset = found.name("offset").map(|offset| offset.as_str().trim_start());
    let offset = offset.filter(|offset| !(has_end && offset.starts_with('-')));
    let by_offset = offset.and_then(|offset| format!("{at}{offset}").parse::<Timestamp>().ok());
    by_offset.or_else(|| Some(at.to_zoned(zone.clone()).ok()?.timestamp()))
}

/// Reads a day and a month. One of more than 12 is the day. Otherwise a dot means that the day is first.
fn day_and_month(date: &Captures<'_>, month_first: bool) -> Option<Named> {
    let (one, other): (i8, i8) = (number(date, "one")?, number(date, "other")?);
    let has_dot = date.name("dot").is_some();
    let year = match number::<i16>(date, "year") {
        Some(year) if year < 100 => Some(2000 + year),
        year => year,
    };
    // `24/7`, `4/5` and `3.5` are no dates. Without a year, both numbers have two digits, or each ends in a dot.
    let two_digits = |name| date.name(name).is_some_and(|digits| digits.as_str().len() == 2);
    let ends_in_dot = has_dot && date.name("end").is_some_and(|end| !end.as_str().is_empty());
    if year.is_none() && !ends_in_dot && (has_dot || !(two_digits("one") && two_digits("other"))) {
        return None;
    }
    let month_first = month_first && !has_dot;
    let (day, month) = if month_first { (other, one) } else { (one, other) };
    let is_ambiguous = one <= 12 && other <= 12 && one != other && !has_dot;
    let (day, month) = if month > 12 { (month, day) } else { (day, month) };
    let fits = (1..=31).contains(&day) && (1..=12).contains(&month);
    fits.then_some(Named::Date { year, month, day: Some(day), swapped: is_ambiguous, third: None, moment: None })
}

/// Returns true if a number goes on, as in an address, a version or a sum.
fn continues(text: &str, end: usize) -> bool {
    let mut rest = text.get(end..).unwrap_or_default().chars();
    match rest.next() {
        Some('-' | '/' | '.' | ':') => rest.next().is_some_and(|c| c.is_ascii_digit()),
        Some(c) => c.is_alphanumeric() || matches!(c, '%' | '€' | '$'),
        None => false,
    }
}

fn begins_alone(text: &str, start: usize) -> bool {
    text.get(..start)
        .and_then(|before| before.chars().next_back())
        .is_none_or(|c| c.is_whitespace() || "(\"'".contains(c))
}

fn number<T: std::str::FromStr>(found: &Captures<'_>, name: &str) -> Option<T> {
    found.name(name)?.as_str().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(month_first: bool) -> Calendar {
        let now = "2026-03-09T20:00:00Z".parse().unwrap();
        Calendar { month_first, ..Calendar::new(now, TimeZone::UTC) }
    }

    #[test]
    fn only_dates_are_read() {
        #[track_caller]
        fn check(text: &str, want: Option<(Option<i16>, i8, Option<i8>)>) {
            let found = dates(text, &place(false)).into_iter().next().map(|(_, named)| match named {
                Named::Date { year, month, day, .. } => (year, month, day),
                other => panic!("{other:?}"),
            });
            assert_eq!(found, want, "{text}");
        }
        check("on 2026-03-14", Some((Some(2026), 3, Some(14))));
        check("at 2026-03-14T15:00:00Z sharp", Some((Some(2026), 3, Some(14))));
        check("in 2026-03?", Some((Some(2026), 3, None)));
        check("on 14/03/2026", Some((Some(2026), 3, Some(14))));
        check("on 03/14/2026", Some((Some(2026), 3, Some(14))));
        check("am 14.3.", Some((None, 3, Some(14))));
        check("on 14.03.26", Some((Some(2026), 3, Some(14))));
        check("on 14/03", Some((None, 3, Some(14))));
        for text in ["open 24/7", "4/5 stars", "3.5 km", "version 1.2.3", "10.20.30.40", "call 555-12-34-56", "1/2 cup"]
        {
            check(text, None);
        }
    }

    #[test]
    fn the_order_of_day_and_month_follows_the_place() {
        let day = |month_first| match dates("05/06/2026", &place(month_first)).remove(0).1 {
            Named::Date { month, swapped, .. } => (month, swapped),
            other => panic!("{other:?}"),
        };
        assert_eq!(day(false), (6, true));
        assert_eq!(day(true), (5, true));
    }
}
