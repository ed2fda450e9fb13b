//! Dates, weekdays and decades.

use super::{group, pattern, value};
use crate::DayOrder;
use crate::number::{cardinal, decade as decade_words, ordinal, year};
use crate::scan::{Input, Said};
use crate::table::tables;

fn month_name(month: u64) -> Option<&'static str> {
    let at = usize::try_from(month).ok()?.checked_sub(1)?;
    tables().months.list.get(at).map(String::as_str)
}

/// Returns the month of a name or its short form.
fn month_of(word: &str) -> Option<&'static str> {
    let short = word.trim_end_matches('.');
    let fits = |month: &&String| {
        month.as_str() == short
            || (short.len() == 3 && month.starts_with(short))
            || (short == "Sept" && month.as_str() == "September")
    };
    tables().months.list.iter().find(fits).map(String::as_str)
}

/// Says a day, with its year if there is one.
pub fn day(year_: Option<u64>, month: u64, day: u64) -> Option<String> {
    let name = month_name(month).filter(|_| (1..=31).contains(&day))?;
    let date = format!("{name} {}", ordinal(day));
    Some(year_.map_or_else(|| date.clone(), |value| format!("{date}, {}", year(value))))
}

/// 2025-03-14, and 2025-03-14T09:30.
pub fn iso(input: &Input<'_>) -> Option<Said> {
    let found =
        pattern!(r"^(\d{4})[-/](\d{1,2})[-/](\d{1,2})(T\d)?").captures(input.rest).filter(|_| input.is_fresh())?;
    let date = found.get(3)?.end();
    let said = day(value(&found, 1), value(&found, 2)?, value(&found, 3)?)?;
    if found.get(4).is_some() {
        return Said::new(date + 1, format!("{said}, "));
    }
    input.ends_at(date).then_some(())?;
    Said::new(date, said)
}

/// 3/4/2025 in the order of the options, and 14.03.2025.
pub fn numeric(input: &Input<'_>) -> Option<Said> {
    let found = pattern!(r"^(\d{1,2})([/.])(\d{1,2})([/.])(\d{4}|\d{2})").captures(input.rest)?;
    let len = group(&found, 0).len();
    if group(&found, 2) != group(&found, 4) || !input.is_fresh() || !input.ends_at(len) {
        return None;
    }
    let dotted = group(&found, 2) == ".";
    if dotted && group(&found, 5).len() != 4 {
        return None;
    }
    let (first, second) = (value(&found, 1)?, value(&found, 3)?);
    let day_first = dotted || input.options.day_order == DayOrder::DayFirst;
    let (month, date) = if (day_first && second <= 12) || first > 12 { (second, first) } else { (first, second) };
    let written = value(&found, 5)?;
    let full = if group(&found, 5).len() == 4 {
        written
    } else if written < 70 {
        2000 + written
    } else {
        1900 + written
    };
    Said::new(len, day(Some(full), month, date)?)
}

/// Words before a number that make a pair such as 3/4 a date.
const DATE_CUES: [&str; 8] = ["on", "until", "till", "since", "due", "through", "thru", "birthday"];

/// Words before a pair of numbers that count something.
const COUNT_CUES: [&str; 14] = [
    "got", "get", "score", "scored", "give", "gave", "rate", "rated", "level", "page", "part", "step", "episode",
    "answered",
];

/// 7/14 and 7/14-7/18: a month and a day without a year, in the order of the options. Without a word such as "on" before
/// it, a pair is a date only if its day is over twelve and no usual fraction.
pub fn month_and_day(input: &Input<'_>) -> Option<Said> {
    let found = pattern!(r"^(\d{1,2})/(\d{1,2})(?: ?[-–—] ?(\d{1,2})/(\d{1,2}))?").captures(input.rest)?;
    let one = found.get(2)?.end();
    let counts = pattern!(
        r#"^(?:["”″/%]| ?(?:of|cups?|tsps?|tbsps?|teaspoons?|tablespoons?|inch|inches|miles?|hours?|points?|right|correct|done|stars?|people)\b)"#
    );
    let before = input.word_before();
    if !input.is_fresh()
        || !input.ends_at(one)
        || counts.is_match(input.after(one))
        || COUNT_CUES.contains(&before.as_str())
        || matches!(group(&found, 0).get(..one), Some("24/7" | "9/11"))
    {
        return None;
    }
    let month_then_day = |first: u64, second: u64| {
        let day_first = input.options.day_order == DayOrder::DayFirst;
        if (day_first && second <= 12) || first > 12 { (second, first) } else { (first, second) }
    };
    let (first, second) = (value(&found, 1)?, value(&found, 2)?);
    let (month, date) = month_then_day(first, second);
    let is_in_order = (date == second) == (input.options.day_order == DayOrder::MonthFirst);
    let cue = DATE_CUES.contains(&before.as_str()) || weekday_of(&before).is_some();
    let is_date = is_in_order && date > 12 && !matches!(date, 16 | 20 | 24);
    if !(cue || is_date) {
        return None;
    }
    let said = day(None, month, date)?;
    let whole = group(&found, 0).len();
    let last = value(&found, 3).zip(value(&found, 4)).filter(|_| input.ends_at(whole));
    match last.map(|(first, second)| month_then_day(first, second)).and_then(|(month, date)| day(None, month, date)) {
        Some(last) => Said::new(whole, format!("{said} to {last}")),
        None => Said::new(one, said),
    }
}

/// May 3, March 14th, 2025, May 3-5, March 2020.
pub fn month_first(input: &Input<'_>) -> Option<Said> {
    let found =
        pattern!(r"^([A-Z][a-z]{2,8}\.?) (\d{1,4})(?:st|nd|rd|th)?(?:\s?[-–]\s?(\d{1,2})(?:st|nd|rd|th)?)?(,? \d{4})?")
            .captures(input.rest)
            .filter(|_| input.is_fresh())?;
    let month = month_of(group(&found, 1))?;
    let first = value(&found, 2)?;
    let end = |index: usize| found.get(index).map_or(0, |part| part.end());
    if group(&found, 2).len() == 4 {
        let len = end(2);
        return if input.ends_at(len) { Said::new(len, format!("{month} {}", year(first))) } else { None };
    }
    // "May 10 people come" and "March 5:30" are no dates.
    let short = found.get(4).map_or_else(|| group(&found, 0).len(), |part| part.start());
    if !(1..=31).contains(&first)
        || !input.ends_at(short)
        || pattern!(r"^(?::\d|%| ?(?:km|people)\b)").is_match(input.after(short))
    {
        return None;
    }
    let mut words = format!("{month} {}", ordinal(first));
    if let Some(last) = value(&found, 3) {
        words.push_str(" to ");
        words.push_str(&ordinal(last));
    }
    let whole = group(&found, 0).len();
    let digits: String = group(&found, 4).chars().filter(char::is_ascii_digit).collect();
    match digits.parse() {
        Ok(value) if input.ends_at(whole) => Said::new(whole, format!("{words}, {}", year(value))),
        _ => Said::new(short, words),
    }
}

/// 3 May, 3rd of May 2024.
pub fn day_first(input: &Input<'_>) -> Option<Said> {
    let found =
        pattern!(r"^(\d{1,2})(?:\.|st|nd|rd|th)?(?: of)? ([A-Z][a-z]{2,8}\.?)(,? \d{4})?").captures(input.rest)?;
    let date = value(&found, 1).filter(|day| (1..=31).contains(day) && input.is_fresh())?;
    let month = month_of(group(&found, 2))?;
    let mut short = found.get(2)?.end();
    if !input.ends_at(short) {
        return None;
    }
    // A full stop after a whole name ends the sentence.
    if group(&found, 2).trim_end_matches('.') == month && group(&found, 2).ends_with('.') {
        short -= 1;
    }
    let article = if input.word_before() == "the" { "" } else { "the " };
    let words = format!("{article}{} of {month}", ordinal(date));
    let whole = group(&found, 0).len();
    let digits: String = group(&found, 3).chars().filter(char::is_ascii_digit).collect();
    match digits.parse() {
        Ok(value) if input.ends_at(whole) => Said::new(whole, format!("{words}, {}", year(value))),
        _ => Said::new(short, words),
    }
}

/// Returns the weekday of a name or its short form.
fn weekday_of(word: &str) -> Option<&'static str> {
    let lower = word.to_lowercase();
    let fits = |(short, name): &(&'static String, &'static String)| **short == lower || name.to_lowercase() == lower;
    tables().weekdays.iter().find(fits).map(|(_, name)| name.as_str())
}

/// Mon-Fri, Sat–Sun, Jan-Mar: from one weekday or month to another.
pub fn span(input: &Input<'_>) -> Option<Said> {
    let found = pattern!(r"^([A-Z][a-z]{2,8})\.? ?[-–—] ?([A-Z][a-z]{2,8})(\.?)").captures(input.rest)?;
    let (first, last) = (group(&found, 1), group(&found, 2));
    let days = weekday_of(first).zip(weekday_of(last));
    let (first, last) = days.or_else(|| month_of(first).zip(month_of(last)))?;
    let end = found.get(2)?.end();
    if !input.is_fresh() || !input.ends_at(end) {
        return None;
    }
    // A stop before more of the same sentence belongs to the short form.
    let stop = !group(&found, 3).is_empty() && pattern!(r"^\. [a-z\d]").is_match(input.after(end));
    Said::new(end + usize::from(stop), format!("{first} to {last}"))
}

/// "Mon, Jan. 6" and "Tue. 14:00": a short weekday before a date.
pub fn weekday(input: &Input<'_>) -> Option<Said> {
    let found = pattern!(r"^([A-Z][a-z]{2,4})([.,]?),? (?:\d|[A-Z][a-z]{2,8}\.? \d)").captures(input.rest)?;
    let name = tables().weekdays.get(&group(&found, 1).to_lowercase()).filter(|_| input.is_fresh())?;
    if group(&found, 2).is_empty() && matches!(group(&found, 1), "Sun" | "Sat") {
        return None;
    }
    let skip = usize::from(group(&found, 2) == ".");
    Said::new(group(&found, 1).len() + skip, name.clone())
}

/// The 1990s, '80s, in her 20s.
pub fn decade(input: &Input<'_>) -> Option<Said> {
    let found = pattern!(r"^(['’]?)(\d{2}|\d{4})['’]?s").captures(input.rest)?;
    let len = group(&found, 0).len();
    let first = value(&found, 2)?;
    if !input.is_fresh() || !input.ends_at(len) || first % 10 != 0 {
        return None;
    }
    let cue = matches!(
        input.word_before().as_str(),
        "the" | "early" | "late" | "mid" | "my" | "her" | "his" | "their" | "your" | "in"
    );
    if first < 100 && group(&found, 1).is_empty() && !cue {
        return None;
    }
    if first == 0 { None } else { Said::new(len, decade_words(first)) }
}

/// Says a moment, as a platform's time stamp names it.
pub fn moment(at: &jiff::Zoned, style: &str) -> String {
    let date = || {
        let month = u64::try_from(at.month()).unwrap_or_default();
        let number = u64::try_from(at.day()).unwrap_or_default();
        day(u64::try_from(at.year()).ok(), month, number).unwrap_or_default()
    };
    let clock = || {
        let (hour, minute) =
            (u64::try_from(at.hour()).unwrap_or_default(), u64::try_from(at.minute()).unwrap_or_default());
        super::clock::words(hour, minute)
    };
    match style {
        "t" | "T" => clock(),
        "d" | "D" => date(),
        "R" => format!("on {}", date()),
        _ => format!("{} at {}", date(), clock()),
    }
}

/// Says a year of two digits after an apostrophe: '99.
pub fn short_year(value: u64) -> String {
    match value {
        0..=9 => format!("oh {}", cardinal(value)),
        _ => cardinal(value),
    }
}
