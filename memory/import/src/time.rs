//! Times, as exports write them.

use azera_types::{TimeZone, Timestamp};
use jiff::civil::DateTime;
use jiff::fmt::strtime;
use serde::Deserialize;

/// Numbers above this are milliseconds since 1970; as seconds they would lie after the year 5000.
const MAX_SECONDS: f64 = 1e11;

/// A time in JSON: a number, or a text.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
pub(crate) enum Time {
    Number(f64),
    Text(String),
}

/// Forms without a zone, besides ISO 8601.
const FORMS: [&str; 6] = [
    "%B %d, %Y %I:%M%p",
    "%B %d, %Y %I:%M:%S%p",
    "%Y-%m-%d @%Hh %Mm %Ss",
    "%Y-%m-%d@%Hh%Mm%Ss",
    "%Y-%m-%d %H:%M:%S",
    "%Y-%m-%d %H:%M",
];

impl Time {
    /// Returns the moment. A time without a zone is one of `zone`.
    pub(crate) fn moment(&self, zone: &TimeZone) -> Option<Timestamp> {
        match self {
            Self::Number(number) => from_number(*number),
            Self::Text(text) => from_text(text.trim(), zone),
        }
    }
}

fn from_number(number: f64) -> Option<Timestamp> {
    if !number.is_finite() || number <= 0.0 {
        return None;
    }
    let milliseconds = if number > MAX_SECONDS { number } else { number * 1_000.0 };
    // Larger numbers than a time can hold are cut, and then refused.
    Timestamp::from_millisecond(milliseconds.round() as i64).ok()
}

fn from_text(text: &str, zone: &TimeZone) -> Option<Timestamp> {
    if let Ok(moment) = text.parse::<Timestamp>() {
        return Some(moment);
    }
    let local = text.parse::<DateTime>().ok().or_else(|| {
        // `2024-3-1 @12h 34m 56s 789ms`: the milliseconds are dropped.
        let text = text.rsplit_once("s ").filter(|(_, rest)| rest.ends_with("ms")).map_or(text, |(before, _)| before);
        let text = if text.contains('@') && !text.ends_with('s') { format!("{text}s") } else { text.to_owned() };
        FORMS.iter().find_map(|form| strtime::parse(form, &text).ok()?.to_datetime().ok())
    });
    if let Some(local) = local {
        return local.to_zoned(zone.clone()).ok().map(|zoned| zoned.timestamp());
    }
    from_number(text.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_every_export_are_read() {
        #[track_caller]
        fn check(time: &Time, want: Option<&str>) {
            let zone = TimeZone::get("Europe/Berlin").unwrap();
            assert_eq!(time.moment(&zone).map(|moment| moment.to_string()), want.map(str::to_owned), "{time:?}");
        }
        let text = |text: &str| Time::Text(text.into());
        check(&text("2024-03-01T12:34:56.789Z"), Some("2024-03-01T12:34:56.789Z"));
        check(&text("2024-03-01T12:34:56.789+01:00"), Some("2024-03-01T11:34:56.789Z"));
        check(&text("2024-03-01T12:34:56"), Some("2024-03-01T11:34:56Z"));
        check(&text("March 1, 2024 2:34pm"), Some("2024-03-01T13:34:00Z"));
        check(&text("March 1, 2024 12:04am"), Some("2024-02-29T23:04:00Z"));
        check(&text("2024-3-1 @12h 34m 56s 789ms"), Some("2024-03-01T11:34:56Z"));
        check(&text("2024-3-1@12h34m56s"), Some("2024-03-01T11:34:56Z"));
        check(&text("2024-07-01 12:00:00"), Some("2024-07-01T10:00:00Z"));
        check(&text("1709296496"), Some("2024-03-01T12:34:56Z"));
        check(&Time::Number(1_709_296_496.789), Some("2024-03-01T12:34:56.789Z"));
        check(&Time::Number(1_709_296_496_789.0), Some("2024-03-01T12:34:56.789Z"));
        for bad in ["", "yesterday", "2024-13-01T00:00:00Z", "-5", "NaN", "1e300"] {
            check(&text(bad), None);
        }
        check(&Time::Number(f64::MAX), None);
    }
}
