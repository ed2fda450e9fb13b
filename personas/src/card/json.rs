//! Reads the JSON of a card as editors leave it: UTF-8 or UTF-16, with a byte order mark, with half an emoji where a
//! text was cut.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::error::Error;

/// The object of a JSON text, and what was mended to read it.
pub(super) struct ReadJson {
    pub(super) object: Map<String, Value>,
    pub(super) mended: Vec<String>,
}

/// Reads a JSON object.
///
/// # Errors
///
/// [`Error::NotACard`] if it is no object, [`Error::Json`] if it cannot be parsed.
pub(super) fn read_object(bytes: &[u8]) -> Result<ReadJson, Error> {
    let mut mended = Vec::new();
    let text = decode(bytes, &mut mended);
    let text = text.trim_start_matches('\u{FEFF}').trim_matches(|c: char| c.is_ascii_whitespace() || c == '\0');
    if !text.starts_with('{') {
        let reason = "cards are JSON objects, PNG pictures or CharX archives".to_owned();
        return Err(Error::NotACard { reason });
    }
    let (text, halves) = without_lone_surrogates(text);
    if halves > 0 {
        mended.push(format!("{halves} half emoji in its texts became the replacement character U+FFFD"));
    }
    let object = serde_json::from_str(&text).map_err(|error| Error::Json {
        line: error.line(),
        column: error.column(),
        reason: error.to_string(),
    })?;
    Ok(ReadJson { object, mended })
}

/// Decodes UTF-8 or UTF-16. Bytes that are neither become U+FFFD.
fn decode<'a>(bytes: &'a [u8], mended: &mut Vec<String>) -> Cow<'a, str> {
    let wide = |to_unit: fn([u8; 2]) -> u16| {
        let units = bytes.chunks_exact(2).filter_map(|pair| pair.first_chunk::<2>()).map(|pair| to_unit(*pair));
        char::decode_utf16(units).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)).collect::<String>()
    };
    match bytes {
        [0xFF, 0xFE, ..] | [b'{', 0, ..] => Cow::Owned(wide(u16::from_le_bytes)),
        [0xFE, 0xFF, ..] | [0, b'{', ..] => Cow::Owned(wide(u16::from_be_bytes)),
        _ => {
            let text = String::from_utf8_lossy(bytes);
            if matches!(text, Cow::Owned(_)) {
                mended.push("bytes that are not UTF-8 became the replacement character U+FFFD".to_owned());
            }
            text
        }
    }
}

/// Replaces each `\uD800` to `\uDFFF` without its other half by `\uFFFD`. Returns the text and how many there were.
/// JSON has backslashes in strings only, so nothing else is touched.
fn without_lone_surrogates(json: &str) -> (Cow<'_, str>, usize) {
    const REPLACEMENT: &str = "\\uFFFD";
    if !json.contains("\\u") {
        return (Cow::Borrowed(json), 0);
    }
    let mut out = String::with_capacity(json.len());
    let (mut rest, mut halves) = (json, 0);
    while let Some((before, escape)) = rest.find('\\').and_then(|at| rest.split_at_checked(at)) {
        out.push_str(before);
        let next = escape.get(6..).unwrap_or_default();
        let length = match (escaped_unit(escape), escaped_unit(next)) {
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => 12,
            (Some(0xD800..=0xDFFF), _) => {
                halves += 1;
                out.push_str(REPLACEMENT);
                rest = next;
                continue;
            }
            (Some(_), _) => 6,
            // A backslash and the character that it escapes.
            (None, _) => 1 + escape.chars().nth(1).map_or(0, char::len_utf8),
        };
        let (whole, after) = escape.split_at_checked(length).unwrap_or((escape, ""));
        out.push_str(whole);
        rest = after;
    }
    out.push_str(rest);
    (Cow::Owned(out), halves)
}

/// Returns the UTF-16 unit of a `\uXXXX` at the start of a text.
fn escaped_unit(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| u16::from_str_radix(digits, 16).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_an_emoji_is_replaced_and_a_whole_one_stays() {
        fn check(json: &str, mended: &str, halves: usize) {
            let (text, found) = without_lone_surrogates(json);
            assert_eq!((text.as_ref(), found), (mended, halves), "{json}");
        }
        check(r#""\ud83d""#, r#""\uFFFD""#, 1);
        check(r#""\ud83d\ude00""#, r#""\ud83d\ude00""#, 0);
        check(r#""\ude00\ud83d!""#, r#""\uFFFD\uFFFD!""#, 2);
        check(r#""\ud83d\ud83d\ude00""#, r#""\uFFFD\ud83d\ude00""#, 1);
        check(r#""\\ud83d é\"\\""#, r#""\\ud83d é\"\\""#, 0);
        check(r#""\ud8"#, r#""\ud8"#, 0);
        check("\"\\\u{e9}\\u00e9\\", "\"\\\u{e9}\\u00e9\\", 0);
    }

    #[test]
    fn text_of_two_bytes_is_read() {
        let json = "{\"name\": \"Zoë 😀\"}";
        let wide = |to_bytes: fn(u16) -> [u8; 2]| json.encode_utf16().flat_map(to_bytes).collect::<Vec<_>>();
        let little = wide(u16::to_le_bytes);
        let marked = [&[0xFE, 0xFF], wide(u16::to_be_bytes).as_slice()].concat();
        for bytes in [json.as_bytes(), &[b"\xEF\xBB\xBF", json.as_bytes()].concat(), &little, &marked] {
            let read = read_object(bytes).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(read.object["name"], "Zoë 😀");
            assert_eq!(read.mended, [""; 0]);
        }
    }
}
