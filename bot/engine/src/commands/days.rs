//! Reads days as people write them: `2026-03-01`, `1 March 2026`, `March 1, 2026`, `1.3.2026`.

use jiff::Timestamp;
use jiff::civil::{Date, Time};
use jiff::tz::TimeZone;

/// English names of the months, also cut to three letters.
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

/// English names of the weekdays.
const WEEKDAYS: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];

/// The date in a text.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Found {
    /// There is none.
    Nothing,
    /// A day, perhaps with a time, and the rest of the text.
    Day { date: Date, time: Option<Time>, rest: String },
    /// A month, a weekday, or a day without its year. The text says what is missing.
    Incomplete(String),
    /// A date that is impossible or can mean two days. The text says why.
    Wrong(String),
}

/// Looks for a date, first at the beginning of a text and then at each of its words.
pub(super) fn find(text: &str) -> Found {
    let text = text.trim_matches(|c: char| c.is_whitespace() || matches!(c, '*' | '_' | '~'));
    let first = at_start(text);
    if first != Found::Nothing {
        return first;
    }
    let starts =
        text.char_indices().zip(text.chars().skip(1)).filter(|((_, before), _)| matches!(before, ' ' | '(' | '\t'));
    for ((at, before), _) in starts {
        let (head, tail) = text.split_at(at + before.len_utf8());
        match at_start(tail) {
            Found::Day { date, time, rest } => {
                let head = head.trim_end_matches(|c: char| !c.is_alphanumeric());
                let rest = format!("{head} {rest}").trim().to_owned();
                return Found::Day { date, time, rest };
            }
            wrong @ Found::Wrong(_) => return wrong,
            Found::Incomplete(_) | Found::Nothing => {}
        }
    }
    Found::Nothing
}

/// Returns the moment of an entry of this day: noon, unless the text gives a time, and never later than now.
///
/// # Errors
/// The day lies in the future.
pub(super) fn moment(date: Date, time: Option<Time>, zone: &TimeZone, now: Timestamp) -> Result<Timestamp, String> {
    let noon = Time::constant(12, 0, 0, 0);
    let at = date.to_datetime(time.unwrap_or(noon)).to_zoned(zone.clone()).map_err(|error| error.to_string())?;
    let is_later = date > zone.to_datetime(now).date() || (time.is_some() && at.timestamp() > now);
    if is_later { Err(format!("{date} lies in the future")) } else { Ok(at.timestamp().min(now)) }
}

/// Reads a point in time: a timestamp, or a day of `zone`, with or without a time.
pub(super) fn time(text: &str, zone: &TimeZone, now: Timestamp) -> Result<Timestamp, String> {
    if let Ok(at) = text.trim().parse::<Timestamp>() {
        return if at > now { Err("it lies in the future".to_owned()) } else { Ok(at) };
    }
    match find(text) {
        Found::Day { date, time, rest } if rest.is_empty() => moment(date, time, zone, now),
        Found::Wrong(why) => Err(why),
        _ => Err("it is neither a time nor a date such as 2026-03-01".to_owned()),
    }
}

fn at_start(text: &str) -> Found {
    let (found, rest) = match without_weekday(text) {
        Some("") => return Found::Incomplete(format!("`{text}` is not a date")),
        rest => date_at(rest.unwrap_or(text)),
    };
    match found {
        Some(Ok(date)) => {
            let (time, rest) = time_at(rest);
            let rest = rest.trim_start_matches(|c: char| {
                c.is_whitespace() || matches!(c, ':' | '-' | '–' | '—' | ',' | '|' | ')')
            });
            let inner = rest.trim_start_matches('(');
            let rest = without_weekday(inner).map_or(rest, |after| after.trim_start_matches([')', ':', ' ']));
            Found::Day { date, time, rest: rest.trim_matches(['*', '_', ' ']).to_owned() }
        }
        Some(Err(found)) => found,
        None => Found::Nothing,
    }
}

/// A date or why there is none, and the text after it.
type Read<'a> = (Option<Result<Date, Found>>, &'a str);

fn date_at(text: &str) -> Read<'_> {
    if let Some((first, digits, rest)) = number(text) {
        return match digits {
            4 => year_first(first, rest),
            1 | 2 => day_first(first, text, rest),
            _ => (None, text),
        };
    }
    month_first(text)
}

/// `2026-03-01`, `2026/3/1`, `2026 March 1`, `2026年3月1日`.
fn year_first(year: u32, rest: &str) -> Read<'_> {
    for (first, second, last) in [("-", "-", ""), ("/", "/", ""), (".", ".", ""), ("年", "月", "日")] {
        let numbers = rest.strip_prefix(first).and_then(short).and_then(|(month, rest)| {
            let (day, rest) = rest.strip_prefix(second).and_then(short)?;
            Some((month, day, rest.strip_prefix(last)?))
        });
        if let Some((month, day, rest)) = numbers.filter(|(.., rest)| ends(rest)) {
            return (Some(valid(year, month, day)), rest);
        }
    }
    let named = month(rest.trim_start()).and_then(|(month, rest)| Some((month, short(rest.trim_start())?)));
    match named {
        Some((month, (day, rest))) => (Some(valid(year, month, day)), rest),
        None => (None, rest),
    }
}

/// `1.3.2026`, `13/3/2026`, `1 March 2026`, `1st of March, 2026`.
fn day_first<'a>(first: u32, text: &'a str, rest: &'a str) -> Read<'a> {
    for sign in ['.', '/', '-'] {
        let Some((second, after)) = rest.strip_prefix(sign).and_then(|rest| short(rest.trim_start())) else { continue };
        let Some(after) = after.strip_prefix(sign) else { continue };
        if sign == '.' && after.is_empty() {
            return (Some(Err(Found::Incomplete(format!("`{text}` names no year")))), after);
        }
        let Some((year, digits, after)) = number(after.trim_start()).filter(|(.., rest)| ends(rest)) else { continue };
        return match digits {
            4 => (Some(numeric(year, first, second, sign)), after),
            2 => (Some(Err(Found::Wrong(format!("`{text}` needs a year with four digits, as in 2026-03-01")))), after),
            _ => (None, after),
        };
    }
    let rest = without_ordinal(rest).trim_start_matches(['.', ' ', '-']);
    let rest = rest.strip_prefix("of ").unwrap_or(rest);
    let Some((month, rest)) = month(rest) else {
        // A month in another language must not become today.
        let after = rest.trim_start_matches(char::is_alphabetic);
        let year = number(after.trim_start()).filter(|(_, digits, end)| *digits == 4 && end.is_empty());
        let is_date = after.len() < rest.len() && year.is_some();
        let why = || Found::Wrong(format!("the month in `{text}` is unknown; write the day as in 2026-03-01"));
        return (is_date.then(|| Err(why())), rest);
    };
    match number(rest.trim_start_matches(['.', ',', ' ', '-'])) {
        Some((year, 4, rest)) => (Some(valid(year, month, first)), rest),
        None if rest.trim().is_empty() => (Some(Err(Found::Incomplete(format!("`{text}` names no year")))), rest),
        _ => (None, rest),
    }
}

/// `March 1, 2026`; `March 2026` is incomplete.
fn month_first(text: &str) -> Read<'_> {
    let Some((month, rest)) = month(text) else { return (None, text) };
    let Some((day, digits, rest)) = number(rest.trim_start_matches(['.', ' ', '-'])) else {
        return (None, text);
    };
    if digits == 4 {
        let only_month = rest.trim().is_empty().then(|| Err(Found::Incomplete(format!("`{text}` names no day"))));
        return (only_month, rest);
    }
    let rest = without_ordinal(rest);
    match number(rest.trim_start_matches([',', ' ', '-'])) {
        Some((year, 4, rest)) if digits <= 2 => (Some(valid(year, month, day)), rest),
        None if rest.trim().is_empty() => (Some(Err(Found::Incomplete(format!("`{text}` names no year")))), rest),
        _ => (None, rest),
    }
}

/// Reads a date of numbers whose year comes last. With dots, the day comes first; otherwise that depends on the country.
fn numeric(year: u32, first: u32, second: u32, sign: char) -> Result<Date, Found> {
    if sign == '.' || first == second || first > 12 {
        return valid(year, second, first);
    }
    if second > 12 {
        return valid(year, first, second);
    }
    Err(Found::Wrong(format!(
        "{first:02}{sign}{second:02}{sign}{year} can mean {year}-{second:02}-{first:02} or {year}-{first:02}-{second:02}; write one of them"
    )))
}

fn valid(year: u32, month: u32, day: u32) -> Result<Date, Found> {
    let date = || Date::new(year.try_into().ok()?, month.try_into().ok()?, day.try_into().ok()?).ok();
    date().ok_or_else(|| Found::Wrong(format!("there is no day {year}-{month:02}-{day:02}")))
}

/// Reads a time after a date: `21:30`, `T21:30:05`.
fn time_at(text: &str) -> (Option<Time>, &str) {
    let rest = text.trim_start_matches([',', ' ']);
    let rest = rest.strip_prefix('T').unwrap_or(rest);
    let Some((hour, rest)) = short(rest) else { return (None, text) };
    let Some((minute, rest)) = rest.strip_prefix(':').and_then(short) else { return (None, text) };
    let (second, rest) = rest.strip_prefix(':').and_then(short).unwrap_or((0, rest));
    let part = |number: u32| i8::try_from(number).unwrap_or(i8::MAX);
    match Time::new(part(hour), part(minute), part(second), 0) {
        Ok(time) => (Some(time), rest),
        Err(_) => (None, text),
    }
}

/// Reads digits, and returns how many there were.
fn number(text: &str) -> Option<(u32, usize, &str)> {
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let digits = text.strip_suffix(rest)?;
    Some((digits.parse().ok()?, digits.len(), rest))
}

/// Reads one or two digits.
fn short(text: &str) -> Option<(u32, &str)> {
    number(text).filter(|(_, digits, _)| *digits <= 2).map(|(number, _, rest)| (number, rest))
}

/// Returns true if a date may end before this text.
fn ends(rest: &str) -> bool {
    let mut chars = rest.chars();
    match chars.next() {
        Some('.') => chars.next().is_none_or(|next| !next.is_alphanumeric()),
        Some(next) => !next.is_alphanumeric() || (next == 'T' && time_at(rest).0.is_some()),
        None => true,
    }
}

/// Reads the name of a month, whole or cut to at least three letters.
fn month(text: &str) -> Option<(u32, &str)> {
    let (name, rest) = word(text);
    let is_named =
        |month: &str| name.len() >= 3 && (month.starts_with(&name) || (name == "sept" && month == "september"));
    let index = MONTHS.iter().position(|month| is_named(month))?;
    Some((u32::try_from(index).ok()? + 1, rest))
}

/// Returns the text after a weekday at its beginning.
fn without_weekday(text: &str) -> Option<&str> {
    let (name, rest) = word(text);
    let is_weekday = name.len() >= 3 && WEEKDAYS.iter().any(|day| day.starts_with(&name));
    is_weekday.then(|| rest.trim_start_matches(['.', ',', ' ', ':']))
}

/// Returns the text after `st`, `nd`, `rd` or `th`.
fn without_ordinal(text: &str) -> &str {
    ["st", "nd", "rd", "th"].iter().find_map(|ending| text.strip_prefix(ending)).unwrap_or(text)
}

/// Splits the letters at the beginning, in lower case, from the rest.
fn word(text: &str) -> (String, &str) {
    let rest = text.trim_start_matches(char::is_alphabetic);
    (text.strip_suffix(rest).unwrap_or_default().to_lowercase(), rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_read_as_people_write_them() {
        for text in [
            "2025-07-09",
            "2025/07/09",
            "2025.7.9",
            "9.7.2025",
            "9. 7. 2025",
            "09.07.2025",
            "July 9, 2025",
            "Jul 9th 2025",
            "9 July 2025",
            "9th of July, 2025",
            "9-Jul-2025",
            "Wednesday, 2025-07-09",
            "Wed. 9 July 2025",
            "2025-07-09 (Wednesday)",
            "2025 July 9",
            "2025年7月9日",
            "**July 9, 2025**",
            "2025-07-09:",
        ] {
            let Found::Day { date, time, rest } = find(text) else { panic!("{text}: {:?}", find(text)) };
            assert_eq!((date.to_string().as_str(), time, rest.as_str()), ("2025-07-09", None, ""), "{text}");
        }
        let read = |text: &str| match find(text) {
            Found::Day { date, time, rest } => {
                format!("{date} {} {rest}", time.map_or("-".into(), |time| time.to_string()))
            }
            other => format!("{other:?}"),
        };
        assert_eq!(read("2025-07-09: The pond"), "2025-07-09 - The pond");
        assert_eq!(read("13/7/2025 - Heat"), "2025-07-13 - Heat");
        assert_eq!(read("7/13/2025"), "2025-07-13 - ");
        assert_eq!(read("7/7/2025"), "2025-07-07 - ");
        assert_eq!(read("2025-07-09T21:30"), "2025-07-09 21:30:00 ");
        assert_eq!(read("July 9, 2025, 21:30 Late"), "2025-07-09 21:30:00 Late");
        assert_eq!(read("The pond, 9 July 2025"), "2025-07-09 - The pond");
        assert_eq!(read("Diary (2025-07-09)"), "2025-07-09 - Diary");
    }

    #[test]
    fn other_dates_are_refused_and_other_texts_are_none() {
        #[track_caller]
        fn wrong(text: &str, why: &str) {
            assert!(matches!(find(text), Found::Wrong(found) if found.contains(why)), "{text}: {:?}", find(text));
        }
        wrong("2025-02-29", "there is no day 2025-02-29");
        wrong("31 June 2025", "there is no day 2025-06-31");
        wrong("2025-13-01", "there is no day 2025-13-01");
        wrong("05/06/2025", "can mean 2025-06-05 or 2025-05-06");
        wrong("5-6-2025", "can mean 2025-06-05 or 2025-05-06");
        wrong("9.7.25", "four digits");
        wrong("9. Juli\u{e4} 2025", "is unknown");
        for text in ["July 2025", "July 9", "9 July", "9.7.", "Wednesday"] {
            assert!(matches!(find(text), Found::Incomplete(_)), "{text}: {:?}", find(text));
        }
        for text in [
            "",
            "May I go",
            "Version 1.2.3",
            "1.2.25.4",
            "24/7",
            "The pond",
            "12 boats",
            "Marching on",
            "2025",
            "Sunset",
        ] {
            assert_eq!(find(text), Found::Nothing, "{text}");
        }
    }

    #[test]
    fn a_day_belongs_to_its_zone() {
        let zone = TimeZone::get("Pacific/Auckland").unwrap();
        let now: Timestamp = "2025-07-08T15:00:00Z".parse().unwrap();
        let day = |text: &str| time(text, &zone, now).map(|at| at.to_string());
        // There it is three in the morning of the 9th.
        assert_eq!(day("2025-07-09"), Ok("2025-07-08T15:00:00Z".into()));
        assert_eq!(day("2025-07-08"), Ok("2025-07-08T00:00:00Z".into()));
        assert_eq!(day("2025-07-09 01:00"), Ok("2025-07-08T13:00:00Z".into()));
        assert_eq!(day("2025-07-08T10:00:00Z"), Ok("2025-07-08T10:00:00Z".into()));
        for later in ["2025-07-10", "2025-07-09 04:00", "2025-07-08T16:00:00Z"] {
            assert!(day(later).unwrap_err().contains("future"), "{later}");
        }
        assert!(day("soon").unwrap_err().contains("neither a time nor a date"));
        assert!(day("2025-07-08 or so").unwrap_err().contains("neither a time nor a date"));
    }
}
