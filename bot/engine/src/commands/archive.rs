//! Reads archives of dreams and journal entries from JSON or Markdown, and writes them as JSON.

use azera_memory::{MemoryRow, WritingRow};
use azera_types::Timestamp;
use serde_json::{Value, json};

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
    pub(super) text: String,
    pub(super) at: Option<Timestamp>,
    pub(super) title: Option<String>,
    pub(super) mood: Option<String>,
    pub(super) themes: Vec<String>,
}

/// Parses an archive. The error says what is wrong with which entry.
pub(super) fn read(text: &str, now: Timestamp) -> Result<Vec<ImportEntry>, String> {
    let text = text.trim();
    let entries = if text.starts_with(['[', '{']) { read_json(text)? } else { read_markdown(text)? };
    if entries.is_empty() {
        return Err("there is nothing in it".into());
    }
    if entries.len() > MAX_ENTRIES {
        return Err(format!("{} entries are too many: {MAX_ENTRIES} at a time", entries.len()));
    }
    for (index, entry) in entries.iter().enumerate() {
        let wrong = |what: String| Err(format!("entry {}: {what}", index + 1));
        let chars = entry.text.chars().count();
        if entry.text.trim().is_empty() {
            return wrong("it has no text".into());
        }
        if chars > MAX_ENTRY_CHARS {
            return wrong(format!("it has {chars} characters, {MAX_ENTRY_CHARS} at most"));
        }
        if entry.at.is_some_and(|at| at > now) {
            return wrong("it lies in the future".into());
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

fn read_json(text: &str) -> Result<Vec<ImportEntry>, String> {
    let value: Value = serde_json::from_str(text)
        .map_err(|error| format!("that is no JSON: line {} column {}", error.line(), error.column()))?;
    let list = match &value {
        Value::Array(list) => list,
        Value::Object(object) => LISTS
            .iter()
            .find_map(|name| object.get(*name).and_then(Value::as_array))
            .ok_or_else(|| format!("the object has no list `{}`", LISTS.join("`, `")))?,
        _ => return Err("neither a list of entries nor an object with one".into()),
    };
    list.iter()
        .enumerate()
        .map(|(index, value)| entry(value).map_err(|what| format!("entry {}: {what}", index + 1)))
        .collect()
}

fn entry(value: &Value) -> Result<ImportEntry, String> {
    let field = |name: &str| match value.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(format!("`{name}` is no text")),
    };
    let text = match value {
        Value::String(text) => text.clone(),
        _ => field("text")?.ok_or("it has no `text`")?,
    };
    let at = field("at")?.map(|at| time(&at).ok_or("`at` is neither a time nor a date, as 2026-03-01")).transpose()?;
    let themes = match value.get("themes") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(list)) => {
            let texts = list.iter().map(|it| it.as_str().map(str::to_owned));
            texts.collect::<Option<_>>().ok_or("`themes` is no list of texts")?
        }
        Some(_) => return Err("`themes` is no list of texts".into()),
    };
    Ok(ImportEntry { text, at, title: field("title")?, mood: field("mood")?, themes })
}

/// Parses Markdown. Each heading starts an entry: a date, a title, or both. A text without headings is one entry.
fn read_markdown(text: &str) -> Result<Vec<ImportEntry>, String> {
    let mut entries: Vec<ImportEntry> = Vec::new();
    let new =
        |title: Option<String>, at| ImportEntry { text: String::new(), at, title, mood: None, themes: Vec::new() };
    for line in text.lines() {
        let heading = line.trim_start_matches('#');
        if heading.len() < line.len() && heading.starts_with(' ') {
            let heading = heading.trim();
            let (first, rest) = heading.split_once(char::is_whitespace).unwrap_or((heading, ""));
            let at = time(first.trim_end_matches(':'));
            let title = if at.is_some() { rest.trim_start_matches([':', '-', ' ']) } else { heading };
            entries.push(new((!title.is_empty()).then(|| title.to_owned()), at));
            continue;
        }
        if entries.is_empty() {
            if line.trim().is_empty() {
                continue;
            }
            entries.push(new(None, None));
        }
        if let Some(entry) = entries.last_mut() {
            entry.text.push_str(line);
            entry.text.push('\n');
        }
    }
    for entry in &mut entries {
        entry.text = entry.text.trim().to_owned();
    }
    Ok(entries)
}

/// Parses a time, or the beginning of a day.
fn time(text: &str) -> Option<Timestamp> {
    text.parse().ok().or_else(|| format!("{text}T00:00:00Z").parse().ok())
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
        let read = read(text, now());
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
    fn archives_are_read_and_their_mistakes_named() {
        check("I flew.", Ok(&[("I flew.", None, None)]));
        check(
            "# 2026-03-01\nI flew.\n\n## 2026-03-02: The sea\nI swam.\nFar out.\n## No date\nx",
            Ok(&[
                ("I flew.", Some("2026-03-01"), None),
                ("I swam.\nFar out.", Some("2026-03-02"), Some("The sea")),
                ("x", None, Some("No date")),
            ]),
        );
        check(r#"["I flew."]"#, Ok(&[("I flew.", None, None)]));
        let whole = r#"{"dreams":[{"text":"I flew.","at":"2026-03-01T02:00:00Z","title":"Air","themes":["sky"]}]}"#;
        check(whole, Ok(&[("I flew.", Some("2026-03-01"), Some("Air"))]));
        check("", Err("there is nothing in it"));
        check("[]", Err("there is nothing in it"));
        check("[{]", Err("that is no JSON: line 1 column 3"));
        check("{}", Err("the object has no list `entries`, `dreams`, `journal`"));
        check(r#"[{"at":"2026-03-01"}]"#, Err("entry 1: it has no `text`"));
        check(r#"["a",{"text":"b","at":"soon"}]"#, Err("entry 2: `at` is neither a time nor a date, as 2026-03-01"));
        check(r#"[{"text":"b","at":"2027-01-01"}]"#, Err("entry 1: it lies in the future"));
        check("# 2026-03-01\n# 2026-03-02\nx", Err("entry 1: it has no text"));
        check(&"x".repeat(MAX_ENTRY_CHARS + 1), Err("entry 1: it has 4001 characters, 4000 at most"));
        check(&"# a\nb\n".repeat(MAX_ENTRIES + 1), Err("201 entries are too many: 200 at a time"));
    }
}
