//! Where sentences end.

/// What ends a sentence.
pub(crate) const ENDS: [char; 7] = ['.', '!', '?', '\u{2026}', '\u{3002}', '\u{ff01}', '\u{ff1f}'];

/// What ends a sentence in scripts that put no white space after it.
const WIDE_ENDS: [char; 3] = ['\u{3002}', '\u{ff01}', '\u{ff1f}'];

/// Returns true for a character that may stand between the end of a sentence and the next one.
pub(crate) fn is_closing(c: char) -> bool {
    matches!(c, '"' | '\'' | '\u{201d}' | '\u{300d}' | '*' | ')')
}

/// Returns true for an end after which the next sentence begins without white space.
pub(crate) fn is_wide_end(c: char) -> bool {
    WIDE_ENDS.contains(&c)
}

/// Returns where the last whole sentence of a text ends, in bytes.
pub(crate) fn end_of_whole_sentences(text: &str) -> Option<usize> {
    end_after(text, text.rfind(ENDS)?)
}

/// Returns where the last whole sentence ends after which white space is not needed and more text follows.
pub(crate) fn end_of_wide_sentences(text: &str) -> Option<usize> {
    end_after(text, text.rfind(WIDE_ENDS)?).filter(|end| *end < text.len())
}

/// Returns the end of a sentence whose last mark stands at this byte.
fn end_after(text: &str, at: usize) -> Option<usize> {
    let rest = text.get(at..)?;
    let closing = rest.chars().skip(1).take_while(|c| is_closing(*c));
    Some(at + rest.chars().next().map_or(0, char::len_utf8) + closing.map(char::len_utf8).sum::<usize>())
}
