//! Dates in a question, such as "in May", "on 7 May 2023", "during 2022".

use std::sync::LazyLock;

use azera_types::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use regex::{Captures, Regex};

/// Days outside the named time after which closeness has fallen to 1/e. People often mention events some days after
/// them.
const NEARNESS_DAYS: f32 = 7.0;

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

static DATE: LazyLock<Regex> = LazyLock::new(|| {
    let months = MONTHS.join("|");
    Regex::new(&format!(
        r"(?i)\b(?:(?P<at>on|in|of|since|by|before|after|around|during|last|until)\s+)?(?:the\s+)?(?:(?P<day1>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?)?\b(?P<month>{months})\b(?:\s+(?P<day2>\d{{1,2}})(?:st|nd|rd|th)?\b)?(?:,?\s*(?P<year>(?:19|20)\d\d)\b)?"
    ))
    .expect("the pattern is constant and tests run it")
});

static YEAR: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i)\b(?:in\s+)?(?P<year>(?:19|20)\d\d)\b").expect("the pattern is constant and tests run it")
});

/// A day, a month or a year; the year may be missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DateSpan {
    year: Option<i16>,
    month: Option<i8>,
    day: Option<i8>,
}

impl DateSpan {
    /// Returns the first date in a text, and the text without it.
    pub(super) fn find(text: &str) -> Option<(Self, String)> {
        let dated = DATE.captures_iter(text).find(|found| !is_the_verb_may(found));
        let (found, span) = match dated {
            Some(found) => {
                let span = Self {
                    year: number(&found, "year"),
                    month: found.name("month").and_then(|name| month(name.as_str())),
                    day: number(&found, "day1").or_else(|| number(&found, "day2")),
                };
                (found, span)
            }
            None => {
                let found = YEAR.captures(text)?;
                let span = Self { year: number(&found, "year"), month: None, day: None };
                (found, span)
            }
        };
        let whole = found.get(0)?;
        let before = text.get(..whole.start())?;
        let after = text.get(whole.end()..)?;
        Some((span, format!("{before} {after}")))
    }

    /// Returns 1 within the named time and less the farther outside `at` lies. A date without a year is taken in the
    /// year of `at`.
    pub(super) fn closeness(&self, at: Timestamp) -> f32 {
        let day = at.to_zoned(TimeZone::UTC).date();
        let Some((first, last)) = self.days(day.year()) else { return 0.0 };
        let outside = |from: Date, to: Date| from.until(to).map_or(i32::MAX, |span| span.get_days());
        let gap = outside(day, first).max(outside(last, day)).max(0);
        (-(gap as f32) / NEARNESS_DAYS).exp()
    }

    fn days(&self, year: i16) -> Option<(Date, Date)> {
        let year = self.year.unwrap_or(year);
        match (self.month, self.day) {
            (Some(month), Some(day)) => Date::new(year, month, day).ok().map(|date| (date, date)),
            (Some(month), None) => Date::new(year, month, 1).ok().map(|date| (date, date.last_of_month())),
            (None, _) => Some((Date::new(year, 1, 1).ok()?, Date::new(year, 12, 31).ok()?)),
        }
    }
}

/// Returns true for "may" as a verb. It is a month only next to a day, a year or a preposition.
fn is_the_verb_may(found: &Captures<'_>) -> bool {
    found.name("month").is_some_and(|name| name.as_str().eq_ignore_ascii_case("may"))
        && ["at", "day1", "day2", "year"].iter().all(|part| found.name(part).is_none())
}

fn number<T: std::str::FromStr>(found: &Captures<'_>, name: &str) -> Option<T> {
    found.name(name)?.as_str().parse().ok()
}

fn month(name: &str) -> Option<i8> {
    let index = MONTHS.iter().position(|month| month.eq_ignore_ascii_case(name))?;
    i8::try_from(index + 1).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Year, month, day, and the remaining text.
    type Named = (Option<i16>, Option<i8>, Option<i8>, &'static str);

    #[test]
    fn dates_are_found_and_removed_from_the_text() {
        #[track_caller]
        fn check(text: &str, want: Option<Named>) {
            let want = want.map(|(year, month, day, rest)| (DateSpan { year, month, day }, rest.to_owned()));
            assert_eq!(DateSpan::find(text), want, "{text:?}");
        }
        check("What happened on 7 May 2023?", Some((Some(2023), Some(5), Some(7), "What happened  ?")));
        check("Who came in June?", Some((None, Some(6), None, "Who came  ?")));
        check("Who came on July 4th, 2022", Some((Some(2022), Some(7), Some(4), "Who came  ")));
        check("Where was she during 2022?", Some((Some(2022), None, None, "Where was she during  ?")));
        check("May I ask something?", None);
        check("What did they plan in May?", Some((None, Some(5), None, "What did they plan  ?")));
        check("room 2400 is locked", None);
        check("31 February 2023", Some((Some(2023), Some(2), Some(31), " ")));
    }

    #[test]
    fn closeness_falls_with_the_days_outside_the_date() {
        let span = DateSpan { year: Some(2023), month: Some(5), day: None };
        let near = |text: &str| span.closeness(text.parse().unwrap());
        assert_eq!(near("2023-05-01T00:00:00Z"), 1.0);
        assert_eq!(near("2023-05-31T23:00:00Z"), 1.0);
        assert!((near("2023-06-07T10:00:00Z") - (-1.0_f32).exp()).abs() < 1e-6);
        assert!(near("2022-05-10T10:00:00Z") < 1e-6);
        let no_such_day = DateSpan { year: Some(2023), month: Some(2), day: Some(31) };
        assert_eq!(no_such_day.closeness("2023-02-28T00:00:00Z".parse().unwrap()), 0.0);
    }
}
