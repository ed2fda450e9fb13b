//! Reads a diary in Markdown: a heading for each day.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::archive::ImportEntry;
use super::days::{Found, find, moment};

/// The deepest heading of Markdown.
const MAX_LEVEL: usize = 6;

/// Most headings that one text is read for; far more than entries may be imported at once.
const MAX_HEADINGS: usize = 20_000;

/// The most spaces before a heading or a fence; deeper lines are code.
const MAX_INDENT: usize = 3;

/// An entry that is being read.
struct Entry {
    line: usize,
    level: usize,
    heading: Option<Found>,
    title: Option<String>,
    text: String,
}

impl Entry {
    fn new(line: usize, level: usize, heading: Option<&str>) -> Self {
        let found = heading.map(find);
        let title = match &found {
            Some(Found::Day { rest, .. }) => Some(rest.clone()),
            _ => heading.map(str::to_owned),
        };
        let title = title.filter(|title| !title.is_empty());
        Self { line, level, heading: found, title, text: String::new() }
    }

    fn is_dated(&self) -> bool {
        matches!(self.heading, Some(Found::Day { .. }))
    }

    fn finish(self, zone: &TimeZone, now: Timestamp) -> Result<ImportEntry, String> {
        let here = format!("line {}", self.line);
        let at = match self.heading {
            Some(Found::Day { date, time, .. }) => {
                Some(moment(date, time, zone, now).map_err(|why| format!("{here}: {why}"))?)
            }
            Some(Found::Wrong(why)) => return Err(format!("{here}: {why}")),
            Some(Found::Incomplete(why)) => return Err(format!("{here}: {why}; write the day as in 2026-03-01")),
            Some(Found::Nothing) | None => None,
        };
        let text = self.text.trim().to_owned();
        Ok(ImportEntry { here, text, at, title: self.title, mood: None, themes: Vec::new() })
    }
}

/// Parses Markdown. A heading starts an entry: a date, a title, or both. A heading below the one of a day belongs to
/// that day, unless it is a date, too. A heading inside a code block is text. A text without headings is one entry.
///
/// # Errors
/// The line of a heading that is no possible day, or could be two, and why.
pub(super) fn read(text: &str, zone: &TimeZone, now: Timestamp) -> Result<Vec<ImportEntry>, String> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut fence: Option<(char, usize)> = None;
    let lines: Vec<&str> = text.lines().collect();
    let mut skip = false;
    // The level of the last heading that is a day.
    let mut day: Option<usize> = None;
    for (index, line) in lines.iter().enumerate() {
        if std::mem::take(&mut skip) {
            continue;
        }
        let in_code = fence.is_some();
        fence = after_fence(line, fence);
        let heading = if in_code { None } else { heading(line, lines.get(index + 1)) };
        match heading {
            Some(Heading { level, text, underlined })
                if day
                    .is_none_or(|day| level <= day || !matches!(find(text), Found::Nothing | Found::Incomplete(_))) =>
            {
                // A title above other headings, such as the name of the diary or a month.
                entries.pop_if(|last| !last.is_dated() && last.level < level && last.is_title());
                let entry = Entry::new(index + 1, level, Some(text));
                if entry.is_dated() {
                    day = Some(level);
                }
                entries.push(entry);
                if entries.len() > MAX_HEADINGS {
                    return Err(format!("it has more than {MAX_HEADINGS} headings"));
                }
                skip = underlined;
            }
            _ if entries.is_empty() && line.trim().is_empty() => {}
            _ => {
                if entries.is_empty() {
                    entries.push(Entry::new(index + 1, 0, None));
                }
                if let Some(entry) = entries.last_mut() {
                    entry.text.push_str(line);
                    entry.text.push('\n');
                }
            }
        }
    }
    entries.into_iter().map(|entry| entry.finish(zone, now)).collect()
}

impl Entry {
    /// Returns true if the heading has no text, and is no date that should have been one.
    fn is_title(&self) -> bool {
        self.text.trim().is_empty() && !matches!(self.heading, Some(Found::Wrong(_)))
    }
}

struct Heading<'a> {
    level: usize,
    text: &'a str,
    /// True if the next line is its underline.
    underlined: bool,
}

fn heading<'a>(line: &'a str, next: Option<&&str>) -> Option<Heading<'a>> {
    let text = line.trim_start_matches(' ');
    if line.len() - text.len() > MAX_INDENT {
        return None;
    }
    let rest = text.trim_start_matches('#');
    let level = text.len() - rest.len();
    // Many people leave out the space before a date.
    let is_marked = rest.starts_with([' ', '\t']) || matches!(find(rest), Found::Day { .. } | Found::Wrong(_));
    if (1..=MAX_LEVEL).contains(&level) && is_marked {
        return Some(Heading { level, text: rest.trim().trim_end_matches('#').trim_end(), underlined: false });
    }
    let underline = next.map(|next| next.trim_end()).unwrap_or_default();
    let is_underlined = level == 0
        && underline.len() >= 3
        && (underline.chars().all(|c| c == '=') || underline.chars().all(|c| c == '-'))
        && matches!(find(text), Found::Day { .. } | Found::Wrong(_));
    is_underlined.then(|| Heading {
        level: 1 + usize::from(underline.starts_with('-')),
        text: text.trim(),
        underlined: true,
    })
}

/// Returns the open fence after a line.
fn after_fence(line: &str, open: Option<(char, usize)>) -> Option<(char, usize)> {
    let text = line.trim_start_matches(' ');
    let Some(sign) = text.chars().next().filter(|c| matches!(c, '`' | '~')) else { return open };
    let rest = text.trim_start_matches(sign);
    let length = text.len() - rest.len();
    if line.len() - text.len() > MAX_INDENT || length < 3 {
        return open;
    }
    match open {
        None if sign == '`' && rest.contains('`') => None,
        None => Some((sign, length)),
        Some((opened, least)) if opened == sign && length >= least && rest.trim().is_empty() => None,
        open => open,
    }
}
