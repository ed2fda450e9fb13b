//! Reads archives of dreams and journal entries from JSON or Markdown, and writes them as JSON.

use azera_memory::{MemoryRow, WritingRow};
use azera_types::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Value, json};

use super::{days, diary};

/// Maximum number of entries in one import.
pub(super) const MAX_ENTRIES: usize = 200;

/// Maximum number of characters in an entry.
pub(super) const MAX_ENTRY_CHARS: usize = 4_000;

/// Maximum number of characters in a title, a mood or a theme.
const MAX_LABEL_CHARS: usize = 100;

/// Maximum number of themes of an entry.
const MAX_THEMES: usize = 16;

/// Names under which a JSON object may hold its entries.
const LISTS: [&str; 3] = ["entries", "dreams", "journal"];

/// An entry to import.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ImportEntry {
    /// Where it stands: its line, or its number.
    pub(super) here: String,
    pub(super) text: String,
    pub(super) at: Option<Timestamp>,
    pub(super) title: Option<String>,
    pub(super) mood: Option<String>,
    pub(super) themes: Vec<String>,
}

/// Parses an archive. Days are those of `zone`. The error says what is wrong with which entry.
pub(super) fn read(text: &str, zone: &TimeZone, now: Timestamp) -> Result<Vec<ImportEntry>, String> {
    let text = text.trim_start_matches('\u{feff}').trim_end();
    // Line ends of other systems.
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let start = text.trim_start();
    let entries =
        if start.starts_with(['[', '{']) { read_json(start, zone, now)? } else { diary::read(&text, zone, now)? };
    if entries.is_empty() {
        return Err("there is nothing in it".into());
    }
    if entries.len() > MAX_ENTRIES {
        return Err(format!("{} entries are too many: {MAX_ENTRIES} at a time", entries.len()));
    }
    for entry in &entries {
        let wrong = |what: String| Err(format!("{}: {what}", entry.here));
        let chars = entry.text.chars().count();
        if entry.text.trim().is_empty() {
            return wrong("it has no text".into());
        }
        if chars > MAX_ENTRY_CHARS {
            return wrong(format!("it has {chars} characters, {MAX_ENTRY_CHARS} at most"));
        }
        let labels = entry.title.iter().chain(&entry.mood).chain(&entry.themes);
        if labels.into_iter().any(|label| label.chars().count() > MAX_LABEL_CHARS) {
            return wrong(format!("titles, moods and themes have {MAX_LABEL_CHARS} characters at most"));
        }
        if entry.themes.len() > MAX_THEMES {
            return wrong(format!("it has more than {MAX_THEMES} themes"));
        }
    }
    Ok(entries)
}

fn read_json(text: &str, zone: &TimeZone, now: Timestamp) -> Result<Vec<ImportEntry>, String> {
    let value: Value = serde_json::from_str(text)
        .map_err(|error| format!("line {} column {} is not valid JSON", error.line(), error.column()))?;
    let list = match &value {
        Value::Array(list) => list,
        Value::Object(object) => LISTS
            .iter()
            .find_map(|name| object.get(*name).and_then(Value::as_array))
            .ok_or_else(|| format!("the object has no list `{}`", LISTS.join("`, `")))?,
        _ => return Err("it is neither a list of entries nor an object with one".into()),
    };
    list.iter()
        .enumerate()
        .map(|(index, value)| {
            let here = format!("entry {}", index + 1);
            let entry = entry(value, zone, now).map_err(|what| format!("{here}: {what}"))?;
            Ok(ImportEntry { here, ..entry })
        })
        .collect()
}

fn entry(value: &Value, zone: &TimeZone, now: Timestamp) -> Result<ImportEntry, String> {
    let field = |name: &str| match value.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(format!("`{name}` must be text")),
    };
    let text = match value {
        Value::String(text) => text.clone(),
        _ => field("text")?.ok_or("it has no `text`")?,
    };
    let at = match value.get("at") {
        None | Some(Value::Null) => None,
        Some(at) => Some(moment(at, zone, now).map_err(|why| format!("`at`: {why}"))?),
    };
    let themes = match value.get("themes") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(list)) => {
            let texts = list.iter().map(|it| it.as_str().map(str::to_owned));
            texts.collect::<Option<_>>().ok_or("`themes` must be a list of texts")?
        }
        Some(_) => return Err("`themes` must be a list of texts".into()),
    };
    Ok(ImportEntry { here: String::new(), text, at, title: field("title")?, mood: field("mood")?, themes })
}

/// Seconds from which a number is a time in milliseconds. As seconds it would be after the year 5000.
const MILLISECONDS_FROM: i64 = 100_000_000_000;

/// Reads a time in JSON: a timestamp, a day, or seconds or milliseconds since 1970.
fn moment(value: &Value, zone: &TimeZone, now: Timestamp) -> Result<Timestamp, String> {
    let number = match value {
        Value::String(text) => return days::time(text, zone, now),
        Value::Number(number) => number.as_i64().or_else(|| number.as_f64().map(|number| number as i64)),
        _ => None,
    };
    let number = number.ok_or("it must be a time or a date such as 2026-03-01")?;
    let at = if number.abs() < MILLISECONDS_FROM {
        Timestamp::from_second(number)
    } else {
        Timestamp::from_millisecond(number)
    };
    match at {
        Ok(at) if at <= now => Ok(at),
        _ => Err("it lies in the future".into()),
    }
}

/// Returns writings as JSON that can be imported again.
pub(super) fn json_of(written: &[(MemoryRow, WritingRow)]) -> Value {
    let entry = |(memory, writing): &(MemoryRow, WritingRow)| {
        json!({
            "id": memory.id.to_string(),
            "kind": memory.kind,
            "at": memory.at,
            "text": memory.text,
            "title": writing.title,
            "mood": writing.mood,
            "themes": writing.themes,
            "sources": memory.sources,
            "prompt": writing.prompt,
            "model": writing.model,
        })
    };
    json!({ "entries": written.iter().map(entry).collect::<Vec<_>>() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        "2026-06-01T00:00:00Z".parse().unwrap()
    }

    /// The text, day and title of an entry.
    type ParsedEntry<'a> = (&'a str, Option<&'a str>, Option<&'a str>);

    #[track_caller]
    fn check(text: &str, want: Result<&[ParsedEntry<'_>], &str>) {
        let read = read(text, &TimeZone::UTC, now());
        let found = read.as_ref().map(|entries| {
            let day = |entry: &ImportEntry| entry.at.map(|at| at.strftime("%F").to_string());
            entries.iter().map(|entry| (entry.text.clone(), day(entry), entry.title.clone())).collect::<Vec<_>>()
        });
        let owned = |text: &Option<&str>| text.map(str::to_owned);
        let want = want
            .map(|want| want.iter().map(|(text, day, title)| (text.to_string(), owned(day), owned(title))).collect());
        assert_eq!(found.map_err(String::as_str), want, "{text}");
    }

    #[test]
    fn diaries_are_read_and_their_mistakes_named() {
        check("I flew.", Ok(&[("I flew.", None, None)]));
        check(
            "# 2026-03-01\nI flew.\n\n## 2026-03-02: The sea\nI swam.\nFar out.\n## No date\nx",
            Ok(&[
                ("I flew.", Some("2026-03-01"), None),
                ("I swam.\nFar out.", Some("2026-03-02"), Some("The sea")),
                ("x", None, Some("No date")),
            ]),
        );
        check("", Err("there is nothing in it"));
        check("# 2026-03-01\n# 2026-03-02\nx", Err("line 1: it has no text"));
        check("# 2026-03-01\nx\n\n# 2026-04-31\ny", Err("line 4: there is no day 2026-04-31"));
        check("x\n# 05/06/2025\ny", Err("line 2: 05/06/2025 can mean 2025-06-05 or 2025-05-06; write one of them"));
        check("# 2026-06-02\ny", Err("line 1: 2026-06-02 lies in the future"));
        check("# May 2026\ny", Err("line 1: `May 2026` names no day; write the day as in 2026-03-01"));
        check(&"x".repeat(MAX_ENTRY_CHARS + 1), Err("line 1: it has 4001 characters, 4000 at most"));
        check(&"# a\nb\n".repeat(MAX_ENTRIES + 1), Err("201 entries are too many: 200 at a time"));
    }

    #[test]
    fn headings_of_a_day_and_of_the_diary_belong_to_it() {
        check(
            "\u{feff}# My diary\r\n\r\n## May 2026\r\n### 2026-05-01\r\n#### Noon\r\nSoup.\r\n#### Night\r\nStars.\r\n### 2. May 2026\r\nRest.\r\n",
            Ok(&[
                ("#### Noon\nSoup.\n#### Night\nStars.", Some("2026-05-01"), None),
                ("Rest.", Some("2026-05-02"), None),
            ]),
        );
        check(
            "# 2026-05-01\n```sh\n# 2026-05-02\n## not a heading\n```\n    # nor this\nEnd.\n~~~\n# 2026-05-03",
            Ok(&[(
                "```sh\n# 2026-05-02\n## not a heading\n```\n    # nor this\nEnd.\n~~~\n# 2026-05-03",
                Some("2026-05-01"),
                None,
            )]),
        );
        check("1 May 2026\n==========\nOats.\n", Ok(&[("Oats.", Some("2026-05-01"), None)]));
        check("#2026-05-01\nOats.", Ok(&[("Oats.", Some("2026-05-01"), None)]));
        check("## Friday, 1.5.2026 ##\nOats.\n---\nMore.", Ok(&[("Oats.\n---\nMore.", Some("2026-05-01"), None)]));
        check(
            "# 2026-05-01\nOats.\n## 2026-05-02\nRye.",
            Ok(&[("Oats.", Some("2026-05-01"), None), ("Rye.", Some("2026-05-02"), None)]),
        );
    }

    #[test]
    fn json_is_read_and_its_mistakes_named() {
        check(r#"["I flew."]"#, Ok(&[("I flew.", None, None)]));
        let whole = r#"{"dreams":[{"text":"I flew.","at":"2026-03-01T02:00:00Z","title":"Air","themes":["sky"]}]}"#;
        check(whole, Ok(&[("I flew.", Some("2026-03-01"), Some("Air"))]));
        let numbers =
            r#"[{"text":"a","at":1769904000},{"text":"b","at":1769904000000},{"text":"c","at":1769904000.5}]"#;
        check(numbers, Ok(&["a", "b", "c"].map(|text| (text, Some("2026-02-01"), None))));
        check(r#"[{"text":"a","at":"March 1, 2026"}]"#, Ok(&[("a", Some("2026-03-01"), None)]));
        check("[]", Err("there is nothing in it"));
        check("[{]", Err("line 1 column 3 is not valid JSON"));
        check("{}", Err("the object has no list `entries`, `dreams`, `journal`"));
        check(r#"[{"at":"2026-03-01"}]"#, Err("entry 1: it has no `text`"));
        check(r#"[{"text":1}]"#, Err("entry 1: `text` must be text"));
        check(
            r#"["a",{"text":"b","at":"soon"}]"#,
            Err("entry 2: `at`: it is neither a time nor a date such as 2026-03-01"),
        );
        check(r#"[{"text":"b","at":true}]"#, Err("entry 1: `at`: it must be a time or a date such as 2026-03-01"));
        check(r#"[{"text":"b","at":"2027-01-01"}]"#, Err("entry 1: `at`: 2027-01-01 lies in the future"));
        check(r#"[{"text":"b","at":4102444800}]"#, Err("entry 1: `at`: it lies in the future"));
        check(r#"[{"text":"b","at":"2026-02-30"}]"#, Err("entry 1: `at`: there is no day 2026-02-30"));
    }
}
