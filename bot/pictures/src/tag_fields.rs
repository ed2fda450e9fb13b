//! The inside of a tag: quotes, fields, and where it ends.

use crate::opening::{Opening, opening};

/// Quotes that begin a value, and those that end it.
const QUOTES: [(char, &[char]); 7] = [
    ('"', &['"', '”', '“']),
    ('\'', &['\'', '’']),
    ('“', &['”', '"', '“']),
    ('„', &['“', '”', '"']),
    ('‘', &['’', '\'']),
    ('«', &['»']),
    ('`', &['`']),
];

/// Names of the field with the prompt.
const PROMPT: [&str; 4] = ["prompt", "description", "text", "image"];

/// Names of the field with the name.
const NAME: [&str; 4] = ["name", "title", "filename", "file"];

/// Where a tag ends, as far as it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// After this many characters, its bracket included.
    At(usize),
    /// More of the text tells.
    Open,
}

/// Finds the end of a tag. `text` follows its opening, and `close` is the bracket that ends it.
pub(crate) fn end(text: &[char], close: char) -> End {
    let (mut at, mut depth, mut value_begins) = (0, 1_usize, true);
    let mut quote: Option<Quote> = None;
    while let Some(c) = text.get(at) {
        match opening(text.get(at..).unwrap_or_default()) {
            Opening::Yes { length, .. } => {
                // A second tag while a quote is open whose bracket came already: the quote was never closed.
                if let Some(first) = quote.and_then(|quote| quote.first_close) {
                    return End::At(first + 1);
                }
                (depth, quote, value_begins) = (depth + 1, None, true);
                at += length;
                continue;
            }
            Opening::Maybe => return End::Open,
            Opening::No => {}
        }
        if let Some(open) = &mut quote {
            if *c == '\\' {
                at += 2;
                continue;
            }
            if *c == close && open.first_close.is_none() {
                open.first_close = Some(at);
            }
            if open.closed_by.contains(c) {
                match ends_value(text, at + 1, close) {
                    None => return End::Open,
                    Some(true) => quote = None,
                    Some(false) => {}
                }
            }
            at += 1;
            continue;
        }
        if *c == close {
            depth -= 1;
            if depth == 0 {
                return End::At(at + 1);
            }
        } else if let Some((_, closed_by)) = QUOTES.iter().find(|(open, _)| open == c).filter(|_| value_begins) {
            quote = Some(Quote { closed_by, first_close: None });
        }
        value_begins = matches!(c, '=' | ':' | '：') || value_begins && c.is_whitespace();
        at += 1;
    }
    End::Open
}

/// A quote that is open.
#[derive(Clone, Copy)]
struct Quote {
    closed_by: &'static [char],
    /// Where the first bracket within it stands.
    first_close: Option<usize>,
}

/// Returns true if a quote before `from` ends its value: a separator, the closing bracket or another field follows.
/// `None` if more of the text tells.
fn ends_value(text: &[char], from: usize, close: char) -> Option<bool> {
    let mut at = from;
    while text.get(at).is_some_and(|c| c.is_whitespace()) {
        at += 1;
    }
    match text.get(at)? {
        ',' | ';' | '|' | '}' | '，' | '、' | '/' => Some(true),
        c if *c == close => Some(true),
        // Another field, without a separator before it.
        c if c.is_alphabetic() && at > from => {
            while text.get(at).is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | ' ' | '"')) {
                at += 1;
            }
            text.get(at).map(|c| matches!(c, '=' | ':'))
        }
        _ => Some(false),
    }
}

/// The fields of a tag.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Fields {
    pub(crate) prompt: String,
    pub(crate) name: Option<String>,
}

/// Reads the fields of a tag. `inside` stands between its opening and its bracket.
pub(crate) fn fields(inside: &[char]) -> Fields {
    // Of a tag within a tag, the inner one is meant.
    let inner = (0..inside.len()).rev().find_map(|at| match opening(inside.get(at..)?) {
        Opening::Yes { length, .. } => Some(at + length),
        _ => None,
    });
    let inside = inside.get(inner.unwrap_or(0)..).unwrap_or_default();
    let mut fields = Fields::default();
    let mut rest: Vec<String> = Vec::new();
    for (key, value) in pairs(inside) {
        let value = plain(&value);
        match key {
            Some(key) if PROMPT.contains(&key.as_str()) && fields.prompt.is_empty() => fields.prompt = value,
            Some(key) if NAME.contains(&key.as_str()) => fields.name = Some(value).filter(|name| !name.is_empty()),
            None => rest.push(value),
            Some(_) => {}
        }
    }
    if fields.prompt.is_empty() {
        fields.prompt = rest.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join(", ");
    }
    fields
}

/// Splits the inside of a tag into values, each with its key in lower case, if it has one.
fn pairs(inside: &[char]) -> Vec<(Option<String>, String)> {
    let mut found: Vec<(Option<String>, String)> = Vec::new();
    let (mut key, mut value, mut at) = (None::<String>, String::new(), 0);
    while let Some(c) = inside.get(at) {
        let blank = value.trim_matches(is_noise).is_empty();
        let quoted = QUOTES.iter().find(|(open, _)| open == c).filter(|_| blank && (key.is_some() || found.is_empty()));
        if let Some((_, closed_by)) = quoted.filter(|_| !is_key(inside, at + 1)) {
            let (text, end) = quoted_text(inside, at + 1, closed_by);
            found.push((key.take(), text));
            (value, at) = (String::new(), end);
            continue;
        }
        if matches!(c, '=' | ':' | '：') {
            let (before, word) = last_word(&value);
            if is_field(&word) {
                push(&mut found, key.take(), &before);
                (key, value) = (Some(word), String::new());
                at += 1;
                continue;
            }
        }
        value.push(*c);
        at += 1;
    }
    push(&mut found, key, &value);
    found
}

fn push(found: &mut Vec<(Option<String>, String)>, key: Option<String>, value: &str) {
    let value = value.trim_matches(is_noise);
    if key.is_some() || !value.is_empty() {
        found.push((key, value.to_owned()));
    }
}

/// Returns true if a quoted key begins here, as in JSON.
fn is_key(inside: &[char], from: usize) -> bool {
    let word: String = inside.iter().skip(from).take_while(|c| c.is_alphanumeric()).collect();
    let behind = inside.get(from + word.chars().count()..).unwrap_or_default();
    let mut behind = behind.iter().filter(|c| !c.is_whitespace());
    is_field(&word) && behind.next().is_some_and(|c| matches!(c, '"' | '\'')) && behind.next() == Some(&':')
}

fn is_field(word: &str) -> bool {
    let word = word.to_lowercase();
    PROMPT.contains(&word.as_str())
        || NAME.contains(&word.as_str())
        || ["style", "size", "negative"].contains(&word.as_str())
}

/// Splits the last word off, in lower case.
fn last_word(value: &str) -> (String, String) {
    let trimmed = value.trim_end().trim_end_matches(['"', '\'']);
    let word: String = trimmed.chars().rev().take_while(|c| c.is_alphanumeric()).collect();
    let word: String = word.chars().rev().collect();
    let before = trimmed.strip_suffix(word.as_str()).unwrap_or(trimmed).trim_end_matches(['"', '\'']);
    (before.to_owned(), word.to_lowercase())
}

/// Returns a quoted text and where it ends, its quote included.
fn quoted_text(inside: &[char], from: usize, closed_by: &[char]) -> (String, usize) {
    let (mut text, mut at) = (String::new(), from);
    while let Some(c) = inside.get(at) {
        if *c == '\\'
            && let Some(next) = inside.get(at + 1)
        {
            text.push(if *next == 'n' { ' ' } else { *next });
            at += 2;
            continue;
        }
        // Behind the last character stands the bracket.
        if closed_by.contains(c) && ends_value(inside, at + 1, ']').unwrap_or(true) {
            return (text, at + 1);
        }
        text.push(*c);
        at += 1;
    }
    (text, at)
}

fn is_noise(c: char) -> bool {
    c.is_whitespace()
        || matches!(c, ',' | ';' | '|' | '{' | '}' | '=' | ':' | '*' | '`' | '"' | '\'' | '，' | '：' | '/')
}

/// Returns a text in one line, without control characters.
fn plain(text: &str) -> String {
    let words: Vec<&str> =
        text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty()).collect();
    words.join(" ")
}
