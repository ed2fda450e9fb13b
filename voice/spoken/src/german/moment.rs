//! Dates and times of day.

use super::number::{cardinal, ordinal as ordinal_words, stem, year};
use super::word::stop_after;
use super::{starts_sentence, tables};
use crate::rule::{group, pattern, value};
use crate::scan::{Input, Said};

fn month_name(month: u64) -> Option<&'static str> {
    let at = usize::try_from(month).ok()?.checked_sub(1)?;
    tables().months.get(at).map(String::as_str)
}

/// Returns the month of a name or its short form.
fn month_of(word: &str) -> Option<&'static str> {
    let short = word.trim_end_matches('.');
    let at = tables().months.iter().zip(&tables().short_months).position(|(name, cut)| name == short || cut == short);
    at.and_then(|at| tables().months.get(at)).map(String::as_str)
}

/// Says an ordinal with the ending that the word before it asks for, or else with this one.
fn inflected(number: u64, before: &str, usual: &str) -> String {
    let ending = if tables().ordinal_n.contains(before) {
        "n"
    } else if tables().ordinal_e.contains(before) {
        ""
    } else {
        usual
    };
    format!("{}{ending}", ordinal_words(number))
}

/// Returns the whole year of one with two digits.
fn whole_year(written: &str) -> Option<u64> {
    let number: u64 = written.parse().ok()?;
    Some(match written.len() {
        4 => number,
        _ if number < 70 => 2_000 + number,
        _ => 1_900 + number,
    })
}

fn date(day: u64, month: u64, year_: Option<u64>, before: &str) -> Option<String> {
    let month = month_name(month).filter(|_| (1..=31).contains(&day))?;
    let day = inflected(day, before, "r");
    Some(year_.map_or_else(|| format!("{day} {month}"), |number| format!("{day} {month} {}", year(number))))
}

/// 2025-03-14.
pub fn iso(input: &Input<'_>) -> Option<Said> {
    let found = pattern!(r"^(\d{4})-(\d{1,2})-(\d{1,2})").captures(input.rest).filter(|_| input.is_fresh())?;
    let len = group(&found, 0).len();
    input.ends_at(len).then_some(())?;
    Said::new(len, date(value(&found, 3)?, value(&found, 2)?, value(&found, 1), &input.word_before())?)
}

/// Words before a date, in small letters. Without one "3.12." is the number of a section or of a version.
const DATE_CUES: [&str; 26] = [
    "am",
    "ab",
    "bis",
    "dem",
    "den",
    "der",
    "seit",
    "vom",
    "vor",
    "nach",
    "zum",
    "datum",
    "stand",
    "heute",
    "morgen",
    "gestern",
    "montag",
    "dienstag",
    "mittwoch",
    "donnerstag",
    "freitag",
    "samstag",
    "sonntag",
    "geboren",
    "termin",
    "frist",
];
/// Words before a version that looks like a date.
const VERSION_CUES: [&str; 4] = ["version", "release", "kernel", "python"];

/// A date of digits.
struct Digits {
    len: usize,
    day: u64,
    month: u64,
    year: Option<u64>,
}

impl Digits {
    /// Reads a date. `is_called` tells that the words around say that it is one.
    fn parse(text: &str, is_called: bool) -> Option<Self> {
        let found = pattern!(r"^(\d{1,2})\. ?(\d{1,2})\.( ?)(\d{4}|\d{2})?").captures(text)?;
        let (day, month) = (value(&found, 1)?, value(&found, 2)?);
        month_name(month).filter(|_| (1..=31).contains(&day))?;
        let (whole, written) = (group(&found, 0).len(), group(&found, 4));
        let short = found.get(2)?.end() + 1;
        let after = text.get(whole..).unwrap_or_default();
        let is_whole = !after.starts_with(char::is_alphanumeric) && !pattern!(r"^\.\d").is_match(after);
        let is_sure = match written.len() {
            4 => true,
            2 => group(&found, 3).is_empty() && (is_called || [1, 2].iter().all(|at| group(&found, *at).len() == 2)),
            _ => false,
        };
        if is_whole && is_sure {
            return Some(Self { len: whole, day, month, year: whole_year(written) });
        }
        // "1.2.3" is a version.
        let after = text.get(short..).unwrap_or_default();
        let is_short = is_called && !after.starts_with(|c: char| c.is_ascii_digit());
        if !is_short || text.get(..short)?.contains(' ') {
            return None;
        }
        Some(Self { len: short, day, month, year: None })
    }

    /// Says the date, with the full stop of a sentence that ends with that of the date.
    fn said(&self, input: &Input<'_>, start: usize, before: &str) -> Option<String> {
        let words = date(self.day, self.month, self.year, before)?;
        let stop = if self.year.is_none() { stop_after(input, start + self.len) } else { "" };
        Some(format!("{words}{stop}"))
    }
}

/// 14.03.2025, 14.3.25 and 14.3., and 3.5.-7.5. and 3.-7.5.
pub fn numeric(input: &Input<'_>) -> Option<Said> {
    input.is_fresh().then_some(())?;
    let before = input.word_before();
    if let Some(said) = days(input, &before) {
        return Some(said);
    }
    let is_joined = || pattern!(r"\d\.\d{1,2}\. (?:und|oder|bis) $").is_match(input.before);
    let is_called = DATE_CUES.contains(&before.as_str()) || is_joined();
    let found = Digits::parse(input.rest, is_called).filter(|_| !VERSION_CUES.contains(&before.as_str()))?;
    Said::new(found.len, found.said(input, 0, &before)?)
}

/// Two dates with a dash between them.
fn days(input: &Input<'_>, before: &str) -> Option<Said> {
    let dash = pattern!(r"^ ?[-–—] ?");
    let (first, len) = if let Some(first) = Digits::parse(input.rest, true) {
        (date(first.day, first.month, first.year, before)?, first.len)
    } else {
        let found = pattern!(r"^(\d{1,2})\.[-–—]").captures(input.rest)?;
        let day = value(&found, 1).filter(|day| (1..=31).contains(day))?;
        (inflected(day, before, "r"), found.get(1)?.end() + 1)
    };
    let start = len + dash.find(input.after(len))?.len();
    let second = Digits::parse(input.after(start), true)?;
    Said::new(start + second.len, format!("{first} bis {}", second.said(input, start, "bis")?))
}

/// 3. Mai 2025, 3. bis 5. Mai, Mai 2025.
pub fn month(input: &Input<'_>) -> Option<Said> {
    let pattern = pattern!(r"^(\d{1,2})\.(?: ?[-–] ?(\d{1,2})\.)? (\p{Lu}\p{Ll}{1,8}\.?)( \d{4})?");
    let found = pattern.captures(input.rest).filter(|_| input.is_fresh())?;
    let first = value(&found, 1).filter(|day| (1..=31).contains(day))?;
    let written = group(&found, 3);
    let name = month_of(written)?;
    let before = input.word_before();
    let mut words = inflected(first, &before, "r");
    if let Some(last) = value(&found, 2) {
        words = format!("{words} bis {}", inflected(last, "bis", "n"));
    }
    words = format!("{words} {name}");
    let whole = group(&found, 0).len();
    if let Some(number) = group(&found, 4).trim().parse().ok().filter(|_| input.ends_at(whole)) {
        return Said::new(whole, format!("{words} {}", year(number)));
    }
    let end = found.get(3)?.end();
    input.ends_at(end).then_some(())?;
    // A full stop after a whole name ends the sentence.
    let stop = written.ends_with('.') && written.trim_end_matches('.') == name;
    Said::new(end - usize::from(stop), words)
}

/// "im 2. Stock", "die 3. Frage".
pub fn ordinal(input: &Input<'_>) -> Option<Said> {
    let found = pattern!(r"^(\d{1,3})\. ?(\p{L}+)").captures(input.rest).filter(|_| input.is_fresh())?;
    let noun = group(&found, 2);
    if starts_sentence(noun) {
        return None;
    }
    // "im 1. und 2. Stock": both have the ending that "im" asks for.
    let joined = pattern!(r"(\p{L}+) \d{1,3}\. (?:und|oder|bis) $").captures(input.before);
    let before = joined.map_or_else(|| input.word_before(), |joined| group(&joined, 1).to_lowercase());
    let tables = tables();
    let ending = if tables.ordinal_n.contains(&before) || tables.ordinal_e.contains(&before) {
        ""
    } else if tables.ordinal_r.contains(&before) && tables.masculine.contains(noun) {
        "r"
    } else if tables.ordinal_r.contains(&before) && tables.neuter.contains(noun) {
        "s"
    } else {
        return None;
    };
    Said::new(group(&found, 1).len() + 1, inflected(value(&found, 1)?, &before, ending))
}

/// Says a time of day: "vierzehn Uhr fünf".
fn clock(hour: u64, minute: Option<u64>) -> String {
    match minute.filter(|minute| *minute > 0) {
        Some(minute) => format!("{} Uhr {}", stem(hour), cardinal(minute)),
        None => format!("{} Uhr", stem(hour)),
    }
}

struct Time {
    hour: u64,
    minute: Option<u64>,
    len: usize,
    is_named: bool,
}

/// Reads 14:05, "14.05 Uhr" and "9 Uhr". `named` tells that the word "Uhr" follows later.
fn parse(text: &str, named: bool) -> Option<Time> {
    let found = pattern!(r"^(\d{1,2})(?:([:.])(\d{2}))?( ?(?:Uhr|h)\b)?").captures(text)?;
    let hour = value(&found, 1).filter(|hour| *hour <= 24)?;
    let minute = value(&found, 3).filter(|minute| *minute < 60);
    let is_named = found.get(4).is_some();
    if found.get(3).is_some() && minute.is_none() || group(&found, 4).ends_with('h') && minute.is_none() {
        return None;
    }
    let len = group(&found, 0).len();
    let is_clock = group(&found, 2) == ":" || is_named || named;
    let after = text.get(len..).unwrap_or_default();
    if !is_clock || after.starts_with(|c: char| c.is_alphanumeric() || c == ':') {
        return None;
    }
    Some(Time { hour, minute, len, is_named })
}

pub fn time(input: &Input<'_>) -> Option<Said> {
    let time = parse(input.rest, false).filter(|_| input.is_fresh() && !input.before.ends_with([':', '.', ',']))?;
    Said::new(time.len, clock(time.hour, time.minute))
}

/// 9-17 Uhr, 10:30–11:45.
pub fn range(input: &Input<'_>) -> Option<Said> {
    let first = parse(input.rest, true).filter(|_| input.is_fresh())?;
    let dash = pattern!(r"^ ?[-–—] ?").find(input.after(first.len))?.len();
    let second = parse(input.after(first.len + dash), false)?;
    if !second.is_named && first.minute.is_none() {
        return None;
    }
    let (from, to) = (clock(first.hour, first.minute), clock(second.hour, second.minute));
    let from = if first.minute.is_none() && !first.is_named { stem(first.hour) } else { from };
    Said::new(first.len + dash + second.len, format!("{from} bis {to}"))
}

/// 1:23:45.
pub fn long_duration(input: &Input<'_>) -> Option<Said> {
    let pattern = pattern!(r"^(\d{1,2}):([0-5]\d):([0-5]\d)");
    let found = pattern.captures(input.rest).filter(|_| input.is_fresh())?;
    let len = group(&found, 0).len();
    input.ends_at(len).then_some(())?;
    let counted = |index: usize, unit: &str| match value(&found, index)? {
        1 => Some(format!("eine {unit}")),
        count => Some(format!("{} {unit}n", cardinal(count))),
    };
    let (hours, minutes, seconds) = (counted(1, "Stunde")?, counted(2, "Minute")?, counted(3, "Sekunde")?);
    Said::new(len, format!("{hours}, {minutes} und {seconds}"))
}

/// Says a moment, as a platform's time stamp names it, after a word: "am ersten Januar", but "der erste Januar".
pub fn stamp(at: &jiff::Zoned, style: &str, before: &str) -> String {
    let number = |value: i16| u64::try_from(value).unwrap_or_default();
    let day = |before: &str| {
        let (month, day) = (number(at.month().into()), number(at.day().into()));
        date(day, month, Some(number(at.year())), before).unwrap_or_default()
    };
    let clock = || clock(number(at.hour().into()), Some(number(at.minute().into())));
    match style {
        "t" | "T" => clock(),
        "d" | "D" => day(before),
        "R" => format!("am {}", day("am")),
        _ => format!("{} um {}", day(before), clock()),
    }
}
