use std::io::{BufRead, Read};

use azera_types::Timestamp;
use serde::Deserialize;
use thiserror::Error;

use crate::{Error, Event};

/// Longest line in bytes. It is longer than any message, so that a long message is cut and not refused.
pub const MAX_LINE_BYTES: usize = 16 * 1024 * 1024;

/// Most lines of a timeline.
pub const MAX_LINES: usize = 1_000_000;

/// The fault of a line.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LineError {
    /// Not UTF-8.
    #[error("not UTF-8")]
    NotUtf8,
    /// Longer than [`MAX_LINE_BYTES`].
    #[error("longer than {MAX_LINE_BYTES} bytes")]
    TooLong,
    /// More than [`MAX_LINES`] lines.
    #[error("more than {MAX_LINES} lines")]
    TooMany,
    /// Not JSON.
    #[error("not JSON: {0}")]
    NotJson(String),
    /// JSON, but not an event.
    #[error("{0}")]
    NotAnEvent(String),
    /// Its time is before the time of an earlier line.
    #[error("time runs backwards: {at} after {before}")]
    Backwards {
        /// The line's time.
        at: Timestamp,
        /// The latest time before it.
        before: Timestamp,
    },
}

/// The events of a replay, in order.
#[derive(Debug, Clone, PartialEq)]
pub struct Timeline {
    lines: Vec<Line>,
}

/// A line of a timeline.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// Its number in the file, from 1, with empty lines.
    pub number: usize,
    /// The event.
    pub event: Event,
}

impl Timeline {
    /// Reads a whole timeline and ignores empty lines. The error names the first bad line.
    pub fn read(mut from: impl BufRead) -> Result<Self, Error> {
        let mut lines = Vec::new();
        let mut latest: Option<Timestamp> = None;
        for number in 1.. {
            let Some(bytes) = next_line(&mut from, number)? else { break };
            let event = parse(&bytes).map_err(|what| Error::Line { number, what })?;
            let Some(event) = event else { continue };
            if let Some(at) = event.at() {
                if let Some(before) = latest.filter(|before| at < *before) {
                    return Err(Error::Line { number, what: LineError::Backwards { at, before } });
                }
                latest = Some(at);
            }
            if lines.len() == MAX_LINES {
                return Err(Error::Line { number, what: LineError::TooMany });
            }
            lines.push(Line { number, event });
        }
        Ok(Self { lines })
    }

    /// Returns the lines in order.
    pub fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// Returns the first time in the timeline, at which the clock starts.
    pub fn start(&self) -> Option<Timestamp> {
        self.lines.iter().find_map(|line| line.event.at())
    }
}

/// Reads the next line without its end; `None` at the end of the file.
fn next_line(from: &mut impl BufRead, number: usize) -> Result<Option<Vec<u8>>, Error> {
    let mut bytes = Vec::new();
    let limit = MAX_LINE_BYTES as u64 + 1;
    if from.take(limit).read_until(b'\n', &mut bytes).map_err(Error::Read)? == 0 {
        return Ok(None);
    }
    if bytes.len() > MAX_LINE_BYTES {
        return Err(Error::Line { number, what: LineError::TooLong });
    }
    Ok(Some(bytes))
}

/// Parses the event of a line; `None` if the line is empty.
fn parse(bytes: &[u8]) -> Result<Option<Event>, LineError> {
    let line = std::str::from_utf8(bytes).map_err(|_| LineError::NotUtf8)?;
    let line = line.trim_start_matches('\u{feff}').trim();
    if line.is_empty() {
        return Ok(None);
    }
    // In two steps, so that "not JSON" and "not an event" are different errors.
    let value: serde_json::Value = serde_json::from_str(line).map_err(|e| LineError::NotJson(within_line(&e)))?;
    Event::deserialize(value).map(Some).map_err(|e| LineError::NotAnEvent(e.to_string()))
}

/// Returns the parser's message without its line number, which is always 1 and would contradict the real one.
fn within_line(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let what = text.rsplit_once(" at line ").map_or(text.as_str(), |(what, _)| what);
    format!("{what} in column {}", error.column())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_lines_are_named_with_what_is_wrong() {
        #[track_caller]
        fn check(text: &str, want: &str) {
            assert_eq!(Timeline::read(text.as_bytes()).unwrap_err().to_string(), want);
        }
        let at = r#""at":"2026-01-01T00:00:00Z""#;
        check("{oops}", "line 1: not JSON: key must be a string in column 2");
        check("\n\n3", "line 3: invalid type: integer `3`, expected internally tagged enum Event");
        check(&format!(r#"{{{at},"chat":"c"}}"#), "line 1: missing field `type`");
        check(r#"{"type":"wait"}"#, "line 1: missing field `until`");
        check(&format!(r#"{{"type":"delete",{at},"id":""}}"#), "line 1: an id may not be empty");
        check(
            &format!(r#"{{"type":"chat",{at},"chat":"c","kind":"public"}}"#),
            "line 1: a public chat needs a `realm`",
        );
        check(
            &format!(r#"{{"type":"chat",{at},"chat":"c","kind":"dm","realm":"r","members":["ann"]}}"#),
            "line 1: a dm has no `realm`",
        );
        check(
            &format!(r#"{{"type":"chat",{at},"chat":"c","kind":"dm","members":["ann","bob"]}}"#),
            "line 1: a dm has exactly one of `members`",
        );
        check(&format!(r#"{{"type":"join",{at},"person":"ann"}}"#), "line 1: either `realm` or `chat` must be named");
        check(
            "{\"type\":\"wait\",\"until\":\"2026-01-02T00:00:00Z\"}\n{\"type\":\"restart\"}\n\
             {\"type\":\"restart\",\"at\":\"2026-01-01T23:59:59Z\"}",
            "line 3: time runs backwards: 2026-01-01T23:59:59Z after 2026-01-02T00:00:00Z",
        );
        let unknown = Timeline::read(format!(r#"{{"type":"dance",{at}}}"#).as_bytes()).unwrap_err().to_string();
        assert!(unknown.starts_with("line 1: unknown variant `dance`, expected one of `realm`"), "{unknown}");
        let zoneless = Timeline::read(r#"{"type":"wait","until":"2026-01-02T00:00:00"}"#.as_bytes());
        assert!(zoneless.unwrap_err().to_string().starts_with("line 1: "));
    }

    #[test]
    fn bytes_that_are_not_utf8_are_refused() {
        let error = Timeline::read(&b"\n\xff\n"[..]).unwrap_err();
        assert!(matches!(error, Error::Line { number: 2, what: LineError::NotUtf8 }), "{error}");
    }

    #[test]
    fn fields_may_be_added_and_optional_ones_null() {
        let line =
            r#"{"type":"message","at":"2026-01-01T01:00:00+01:00","id":"m1","chat":"c","person":"ann","name":null,
            "text":"hi","mentions_bot":null,"mentions":null,"reply_to":null,"mood":"later"}"#
                .replace('\n', " ");
        let timeline = Timeline::read(line.as_bytes()).unwrap();
        let Event::Message(message) = &timeline.lines()[0].event else { panic!("{timeline:?}") };
        assert_eq!((message.shown_name().as_str(), message.text.as_str()), ("ann", "hi"));
        assert_eq!(timeline.start().unwrap().to_string(), "2026-01-01T00:00:00Z");
    }

    #[test]
    fn a_text_too_long_is_cut_and_not_refused() {
        let text = "x".repeat(azera_types::MAX_TEXT_BYTES + 1);
        let line = format!(r#"{{"type":"edit","at":"2026-01-01T00:00:00Z","id":"m","text":"{text}"}}"#);
        let timeline = Timeline::read(line.as_bytes()).unwrap();
        let Event::Edit(edit) = &timeline.lines()[0].event else { panic!("{timeline:?}") };
        assert_eq!(edit.text.len(), azera_types::MAX_TEXT_BYTES);
    }
}
