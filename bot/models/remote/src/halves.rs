//! Characters that a server splits between two pieces of a reply: some bytes of one, or one of its UTF-16 surrogates as
//! an escape. Neither is valid in JSON, so they become marks before it is parsed, and are joined afterwards.

/// Begins the mark of a byte that is not UTF-8; two hexadecimal digits follow. Unicode keeps this code point free of
/// characters.
const BYTE: char = '\u{fdd0}';

/// Begins the mark of a lone surrogate; four hexadecimal digits follow.
const SURROGATE: char = '\u{fdd1}';

/// Decodes a line. Bytes that are not UTF-8 become marks.
pub(crate) fn marked(line: &[u8]) -> String {
    let mut text = String::with_capacity(line.len());
    for chunk in line.utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            text.push_str(&format!("{BYTE}{byte:02x}"));
        }
    }
    text
}

/// Turns the escapes of lone surrogates in JSON into marks.
pub(crate) fn without_lone_surrogates(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        out.push_str(before);
        let used = match surrogate(escape) {
            Some(high @ 0xd800..=0xdbff) => {
                let low = escape.get(ESCAPE..).and_then(surrogate);
                if low.is_some_and(|low| low >= 0xdc00) {
                    out.push_str(escape.get(..2 * ESCAPE).unwrap_or_default());
                    2 * ESCAPE
                } else {
                    out.push_str(&format!("{SURROGATE}{high:04x}"));
                    ESCAPE
                }
            }
            Some(low) => {
                out.push_str(&format!("{SURROGATE}{low:04x}"));
                ESCAPE
            }
            None => {
                let escaped = escape.chars().take(2).map(char::len_utf8).sum();
                out.push_str(escape.get(..escaped).unwrap_or_default());
                escaped
            }
        };
        rest = escape.get(used..).unwrap_or_default();
    }
    out.push_str(rest);
    out
}

/// The bytes of an escape such as `\ud83e`.
const ESCAPE: usize = 6;

/// Returns the surrogate whose escape begins the text.
fn surrogate(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    let unit = u16::from_str_radix(digits, 16).ok()?;
    (0xd800..=0xdfff).contains(&unit).then_some(unit)
}

/// Joins the marked halves of characters, also over several texts.
#[derive(Default)]
pub(crate) struct Halves {
    high: Option<u16>,
    bytes: Vec<u8>,
}

impl Halves {
    /// Returns the text with whole characters. A half at its end waits for the next text.
    pub(crate) fn join(&mut self, text: String) -> String {
        if self.is_empty() && !text.contains([BYTE, SURROGATE]) {
            return text;
        }
        let mut out = String::with_capacity(text.len());
        let mut chars = text.chars();
        while let Some(c) = chars.next() {
            let mut digits =
                |count: usize| u16::from_str_radix(&chars.by_ref().take(count).collect::<String>(), 16).ok();
            match c {
                BYTE => match digits(2).and_then(|byte| u8::try_from(byte).ok()) {
                    Some(byte) => self.byte(byte, &mut out),
                    None => out.push(char::REPLACEMENT_CHARACTER),
                },
                SURROGATE => match digits(4) {
                    Some(unit) => self.unit(unit, &mut out),
                    None => out.push(char::REPLACEMENT_CHARACTER),
                },
                c => {
                    self.give_up(&mut out);
                    out.push(c);
                }
            }
        }
        out
    }

    /// Returns the replacement of a half whose other half never came.
    pub(crate) fn finish(&mut self) -> String {
        let mut out = String::new();
        self.give_up(&mut out);
        out
    }

    fn is_empty(&self) -> bool {
        self.high.is_none() && self.bytes.is_empty()
    }

    fn unit(&mut self, unit: u16, out: &mut String) {
        if let Some(high) = self.high
            && let Some(Ok(c)) = char::decode_utf16([high, unit]).next()
        {
            self.high = None;
            out.push(c);
            return;
        }
        self.give_up(out);
        if (0xd800..0xdc00).contains(&unit) {
            self.high = Some(unit);
        } else {
            out.push(char::REPLACEMENT_CHARACTER);
        }
    }

    fn byte(&mut self, byte: u8, out: &mut String) {
        if self.high.is_some() {
            self.give_up(out);
        }
        self.bytes.push(byte);
        match std::str::from_utf8(&self.bytes) {
            Ok(text) => {
                out.push_str(text);
                self.bytes.clear();
            }
            // The character is not complete yet.
            Err(error) if error.error_len().is_none() => {}
            Err(_) if self.bytes.len() == 1 => self.give_up(out),
            Err(_) => {
                self.bytes.pop();
                self.give_up(out);
                self.byte(byte, out);
            }
        }
    }

    fn give_up(&mut self, out: &mut String) {
        if !self.is_empty() {
            *self = Self::default();
            out.push(char::REPLACEMENT_CHARACTER);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(json: &str) -> String {
        serde_json::from_str(&without_lone_surrogates(json)).unwrap()
    }

    #[test]
    fn halves_are_joined_over_pieces() {
        #[track_caller]
        fn check(pieces: &[&str], expected: &str) {
            let mut halves = Halves::default();
            let mut text: String = pieces.iter().map(|piece| halves.join(read(piece))).collect();
            text.push_str(&halves.finish());
            assert_eq!(text, expected, "{pieces:?}");
        }
        check(&[r#""an owl \ud83e""#, r#""\udd89 hoots""#], "an owl \u{1f989} hoots");
        check(&[r#""an owl \uD83E\uDD89""#], "an owl \u{1f989}");
        check(&[r#""a\ud83e""#, r#""b""#], "a\u{fffd}b");
        check(&[r#""a\udd89b""#], "a\u{fffd}b");
        check(&[r#""\ud83e\ud83e""#, r#""\udd89""#], "\u{fffd}\u{1f989}");
        check(&[r#""a\ud83e""#], "a\u{fffd}");
        check(&[r#""C:\\ud83e \n\u00fc""#], "C:\\ud83e \n\u{fc}");
    }

    proptest! {
        #[test]
        fn bytes_cut_anywhere_are_joined(text in "\\PC{0,12}", cuts in prop::collection::vec(0_usize..40, 0..5)) {
            let bytes = text.as_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let mut halves = Halves::default();
            let mut joined: String = cuts.windows(2).map(|cut| halves.join(marked(&bytes[cut[0]..cut[1]]))).collect();
            joined.push_str(&halves.finish());
            prop_assert_eq!(joined, text);
        }

        #[test]
        fn any_bytes_become_a_text_without_marks(bytes in prop::collection::vec(any::<u8>(), 0..24)) {
            let mut halves = Halves::default();
            let text = halves.join(marked(&bytes)) + &halves.finish();
            prop_assert!(!text.contains([BYTE, SURROGATE]) || String::from_utf8_lossy(&bytes).contains([BYTE, SURROGATE]));
        }
    }
}
