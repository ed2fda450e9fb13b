//! Cuts a list in JSON into its entries, without reading the whole file into memory. A broken entry costs that entry, as
//! long as its brackets and quotes are balanced.

use std::io::{self, BufRead};

use crate::{MAX_ELEMENT_BYTES, ReadError};

/// Most bytes before the list in an object.
const MAX_HEAD_BYTES: usize = 1 << 20;

/// An entry of the list.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Element {
    /// A whole entry, now in the buffer.
    Whole,
    /// An entry that is longer than [`MAX_ELEMENT_BYTES`]. It was skipped.
    TooLong,
}

/// The entries of one list.
pub(crate) struct Elements<R> {
    input: R,
    /// The number of the last entry, from 1.
    pub(crate) number: usize,
    max: usize,
}

/// Follows brackets and quotes.
#[derive(Default)]
struct Nesting {
    depth: usize,
    in_string: bool,
    escaped: bool,
}

impl Nesting {
    /// Takes the next byte; returns true if it closes the outermost bracket.
    fn take(&mut self, byte: u8) -> bool {
        if self.in_string {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.in_string = false,
                _ => {}
            }
            return false;
        }
        match byte {
            b'"' => self.in_string = true,
            b'[' | b'{' => self.depth += 1,
            b']' | b'}' => {
                self.depth = self.depth.saturating_sub(1);
                return self.depth == 0;
            }
            _ => {}
        }
        false
    }
}

impl<R: BufRead> Elements<R> {
    /// Returns the entries of an input that is one list.
    pub(crate) fn of_list(mut input: R) -> Result<Self, ReadError> {
        let mut first = next_byte(&mut input)?;
        // A byte order mark.
        if first == Some(0xef) {
            for mark in [0xbb, 0xbf] {
                if next_byte(&mut input)? != Some(mark) {
                    return Err(ReadError::Shape("the file is not JSON"));
                }
            }
            first = next_byte(&mut input)?;
        }
        while first.is_some_and(|byte| byte.is_ascii_whitespace()) {
            first = next_byte(&mut input)?;
        }
        match first {
            Some(b'[') => Ok(Self { input, number: 0, max: MAX_ELEMENT_BYTES }),
            _ => Err(ReadError::Shape("the file is not a list of conversations")),
        }
    }

    /// Returns the entries of the list that an object holds under `key`, and the object up to there, with `null` in the
    /// place of the list.
    pub(crate) fn of_key(mut input: R, key: &str) -> Result<(Self, Vec<u8>), ReadError> {
        let quoted = format!("\"{key}\"");
        let (mut head, mut nesting, mut named) = (Vec::new(), Nesting::default(), Named::No);
        loop {
            let Some(byte) = next_byte(&mut input)? else {
                return Err(ReadError::Shape("the file ends before its messages"));
            };
            if head.len() >= MAX_HEAD_BYTES {
                return Err(ReadError::Shape("the messages do not begin in the first megabyte of the file"));
            }
            named = match (named, byte) {
                (Named::Colon, b'[') => {
                    head.extend_from_slice(b"null}");
                    return Ok((Self { input, number: 0, max: MAX_ELEMENT_BYTES }, head));
                }
                (named, byte) if byte.is_ascii_whitespace() && !nesting.in_string => named,
                (Named::Key, b':') => Named::Colon,
                _ => Named::No,
            };
            let was_in_string = nesting.in_string;
            head.push(byte);
            nesting.take(byte);
            if was_in_string && !nesting.in_string && nesting.depth == 1 && head.ends_with(quoted.as_bytes()) {
                named = Named::Key;
            }
        }
    }

    /// Reads the next entry into `element`; returns `None` at the end of the list.
    pub(crate) fn next(&mut self, element: &mut Vec<u8>) -> Result<Option<Element>, ReadError> {
        element.clear();
        let cut = || ReadError::Shape("the file ends in the middle of its list");
        let first = loop {
            match next_byte(&mut self.input)?.ok_or_else(cut)? {
                b',' => {}
                byte if byte.is_ascii_whitespace() => {}
                b']' => return Ok(None),
                byte => break byte,
            }
        };
        self.number += 1;
        element.push(first);
        let mut nesting = Nesting::default();
        nesting.take(first);
        let mut too_long = false;
        loop {
            let available = fill(&mut self.input)?;
            if available.is_empty() {
                return Err(cut());
            }
            let (mut used, mut ended) = (0, false);
            for byte in available {
                // A number or a word has no bracket of its own.
                if nesting.depth == 0 && !nesting.in_string && matches!(byte, b',' | b']' | b'}') {
                    ended = true;
                    break;
                }
                used += 1;
                if nesting.take(*byte) {
                    ended = true;
                    break;
                }
            }
            too_long |= element.len() + used > self.max;
            if !too_long {
                element.extend_from_slice(available.get(..used).unwrap_or_default());
            }
            self.input.consume(used);
            if ended {
                break;
            }
        }
        if too_long {
            element.clear();
            return Ok(Some(Element::TooLong));
        }
        Ok(Some(Element::Whole))
    }
}

/// How much of `"key": [` was read.
#[derive(Clone, Copy)]
enum Named {
    No,
    Key,
    Colon,
}

fn fill(input: &mut impl BufRead) -> io::Result<&[u8]> {
    while let Err(error) = input.fill_buf() {
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    // Asking again returns the same bytes; the borrow of the first answer cannot leave the loop.
    input.fill_buf()
}

fn next_byte(input: &mut impl BufRead) -> io::Result<Option<u8>> {
    let byte = fill(input)?.first().copied();
    if byte.is_some() {
        input.consume(1);
    }
    Ok(byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the entries of a list, read in pieces of `piece` bytes.
    fn entries(text: &str, piece: usize, max: usize) -> Result<Vec<String>, String> {
        let input = io::BufReader::with_capacity(piece, text.as_bytes());
        let mut elements = Elements::of_list(input).map_err(|error| error.to_string())?;
        elements.max = max;
        let (mut found, mut element) = (Vec::new(), Vec::new());
        while let Some(read) = elements.next(&mut element).map_err(|error| error.to_string())? {
            found.push(match read {
                Element::Whole => String::from_utf8_lossy(&element).trim().to_owned(),
                Element::TooLong => format!("{} is too long", elements.number),
            });
        }
        Ok(found)
    }

    #[test]
    fn a_list_is_cut_into_its_entries() {
        #[track_caller]
        fn check(text: &str, want: &[&str]) {
            for piece in [1, 2, 7, 1024] {
                assert_eq!(entries(text, piece, 24).unwrap(), want, "{text} in pieces of {piece}");
            }
        }
        check("[]", &[]);
        check("\u{feff} [ {\"a\": [1]} , {} ]", &["{\"a\": [1]}", "{}"]);
        check("[1, \"a]b\", null]", &["1", "\"a]b\"", "null"]);
        check(r#"[{"a": "]}\"\\"},{"b":"["}]"#, &[r#"{"a": "]}\"\\"}"#, r#"{"b":"["}"#]);
        check("[{\"a\": nonsense], [}},2]", &["{\"a\": nonsense]", "[}", "}", "2"]);
        check("[{\"a\": \"a very long text that nobody reads\"}, {}]", &["1 is too long", "{}"]);
    }

    #[test]
    fn a_file_that_is_no_list_or_ends_early_is_refused() {
        for text in ["", "{}", "\u{feff}", "[", "[{\"a\": 1}", "[\"", "[1"] {
            assert!(entries(text, 4, 24).is_err(), "{text}");
        }
    }

    #[test]
    fn the_list_of_an_object_is_found_behind_its_other_fields() {
        let text =
            r#"{"a": {"messages": [0]}, "b": "messages", "c": "\"messages\": [", "messages" : [ {"d": 1} ], "e": 2}"#;
        let (mut elements, head) = Elements::of_key(text.as_bytes(), "messages").unwrap();
        let head: serde_json::Value = serde_json::from_slice(&head).unwrap();
        assert_eq!((&head["b"], &head["messages"]), (&"messages".into(), &serde_json::Value::Null));
        let mut element = Vec::new();
        assert_eq!(elements.next(&mut element).unwrap(), Some(Element::Whole));
        assert_eq!(element, br#"{"d": 1}"#);
        assert_eq!(elements.next(&mut element).unwrap(), None);
        assert!(Elements::of_key(&br#"{"a": 1}"#[..], "messages").is_err());
    }
}
