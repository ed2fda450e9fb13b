//! Times of day and durations.

use super::{group, pattern, value};
use crate::number::cardinal;
use crate::scan::{Input, Said};

struct Half {
    len: usize,
    words: &'static str,
    dotted: bool,
}

/// Reads "am", "p.m." and the like at the start.
fn half(text: &str) -> Option<Half> {
    let found = pattern!(r"^ ?([aApP])(?:\.[mM]\.|[mM]\b)").captures(text)?;
    let words = if group(&found, 1).eq_ignore_ascii_case("a") { "A M" } else { "P M" };
    let dotted = group(&found, 0).ends_with('.');
    Some(Half { len: group(&found, 0).len(), words, dotted })
}

/// Says a time of day without its half: 14:05 as "fourteen oh five".
pub fn words(hour: u64, minute: u64) -> String {
    match (hour, minute) {
        (0, 0) => "midnight".to_owned(),
        (0, _) => format!("twelve {} A M", minutes(minute)),
        (1..=12, 0) => format!("{} o'clock", cardinal(hour)),
        (_, 0) => format!("{} hundred", cardinal(hour)),
        _ => format!("{} {}", cardinal(hour), minutes(minute)),
    }
}

fn minutes(minute: u64) -> String {
    if minute < 10 { format!("oh {}", cardinal(minute)) } else { cardinal(minute) }
}

struct Time {
    len: usize,
    words: String,
    has_half: bool,
}

/// Reads a time of day. A bare hour counts only with its half.
fn parse(text: &str, bare: bool) -> Option<Time> {
    let found = pattern!(r"^(\d{1,2})(?::(\d{2}))?").captures(text)?;
    let len = group(&found, 0).len();
    let after = text.get(len..).unwrap_or_default();
    let hour = value(&found, 1).filter(|hour| *hour <= 24)?;
    let minute = value(&found, 2);
    if minute.is_some_and(|minute| minute > 59) || after.starts_with(|c: char| c.is_ascii_digit() || c == ':') {
        return None;
    }
    if let Some(half) = half(after).filter(|_| (1..=12).contains(&hour)) {
        let clock = match minute {
            None | Some(0) => cardinal(hour),
            Some(minute) => format!("{} {}", cardinal(hour), minutes(minute)),
        };
        let ends_text = half.dotted && after.get(half.len..).is_some_and(str::is_empty);
        let stop = if ends_text { "." } else { "" };
        return Some(Time { len: len + half.len, words: format!("{clock} {}{stop}", half.words), has_half: true });
    }
    if after.starts_with(char::is_alphanumeric) {
        return None;
    }
    match minute {
        Some(minute) => Some(Time { len, words: words(hour, minute), has_half: false }),
        None if bare => Some(Time { len, words: cardinal(hour), has_half: false }),
        None => None,
    }
}

/// 3pm, 14:05, 7:30 a.m.
pub fn time(input: &Input<'_>) -> Option<Said> {
    let time = parse(input.rest, false).filter(|_| input.is_fresh() && !input.before.ends_with([':', '.']))?;
    if !time.has_half && input.words_before().take(2).any(|word| matches!(word.as_str(), "ratio" | "odds" | "aspect")) {
        return None;
    }
    Said::new(time.len, time.words)
}

/// 9am-5pm, 9–11am, 10:30-11:45.
pub fn range(input: &Input<'_>) -> Option<Said> {
    let first = parse(input.rest, true).filter(|_| input.is_fresh())?;
    let dash = pattern!(r"^ ?[-–—] ?").find(input.after(first.len))?;
    let second = parse(input.after(first.len + dash.len()), false)?;
    let clock = pattern!(r"^\d{1,2}:\d\d").is_match(input.rest);
    if !clock && !second.has_half {
        return None;
    }
    Said::new(first.len + dash.len() + second.len, format!("{} to {}", first.words, second.words))
}

fn counted(count: u64, unit: &str) -> String {
    format!("{} {unit}{}", cardinal(count), if count == 1 { "" } else { "s" })
}

/// 1:23:45.
pub fn long_duration(input: &Input<'_>) -> Option<Said> {
    let found = pattern!(r"^(\d{1,2}):([0-5]\d):([0-5]\d)").captures(input.rest).filter(|_| input.is_fresh())?;
    let len = group(&found, 0).len();
    input.ends_at(len).then_some(())?;
    let (hour, minute, second) = (value(&found, 1)?, value(&found, 2)?, value(&found, 3)?);
    let is_clock = input.before.ends_with("T") || matches!(input.word_before().as_str(), "at" | "until" | "by");
    if is_clock && hour < 24 {
        return Said::new(len, format!("{} and {}", words(hour, minute), counted(second, "second")));
    }
    Said::new(
        len,
        format!("{}, {} and {}", counted(hour, "hour"), counted(minute, "minute"), counted(second, "second")),
    )
}

/// 1h20, 1h 20m, 2d 3h, 5m30s.
pub fn duration(input: &Input<'_>) -> Option<Said> {
    let found = pattern!(r"^(?:(\d{1,3})d ?)?(?:(\d{1,3})h ?)?(?:(\d{1,2})(?:min|m)? ?)?(?:(\d{1,2})s)?")
        .captures(input.rest)
        .filter(|_| input.is_fresh())?;
    let parts: Vec<usize> = (1..=4).filter(|index| found.get(*index).is_some()).collect();
    let text = group(&found, 0).trim_end();
    if parts.len() < 2 || !input.ends_at(text.len()) {
        return None;
    }
    // A number alone after a space belongs to what follows: "2h 5 km".
    let bare = text.ends_with(|c: char| c.is_ascii_digit());
    if bare && (text.contains(' ') || !text.contains('h')) || !text.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    if parts.contains(&4) && parts.first() == Some(&3) && !text.contains('m') {
        return None;
    }
    let said: Vec<String> = parts
        .iter()
        .map(|index| match index {
            1 => counted(value(&found, 1).unwrap_or_default(), "day"),
            2 => counted(value(&found, 2).unwrap_or_default(), "hour"),
            3 if bare => cardinal(value(&found, 3).unwrap_or_default()),
            3 => counted(value(&found, 3).unwrap_or_default(), "minute"),
            _ => counted(value(&found, 4).unwrap_or_default(), "second"),
        })
        .collect();
    Said::new(text.len(), said.join(" "))
}
