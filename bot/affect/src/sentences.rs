//! Splits a message into sentences.

use std::ops::Range;

/// Abbreviations whose full stop does not end a sentence.
const ABBREVIATIONS: [&str; 14] =
    ["mr", "mrs", "ms", "dr", "st", "prof", "no", "vs", "e.g", "i.e", "approx", "ca", "bzw", "z.b"];

/// Marks that may stand between the end of a sentence and the blank after it.
const CLOSING: [char; 7] = ['"', '”', '’', '\'', ')', ']', '*'];

/// Returns the sentences of a text as byte ranges, in order and without surrounding blanks. A sentence ends at a full
/// stop, question mark, exclamation mark or ellipsis before a blank, at a line break, or at the end of the text.
pub(crate) fn sentences(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut start = 0;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let mut end = at + c.len_utf8();
        let ended = match c {
            '\n' | '。' | '！' | '？' => true,
            '.' | '!' | '?' | '…' => {
                let belongs = |next: char| matches!(next, '.' | '!' | '?' | '…') || CLOSING.contains(&next);
                while let Some((at, next)) = chars.next_if(|(_, next)| belongs(*next)) {
                    end = at + next.len_utf8();
                }
                let before_blank = chars.peek().is_none_or(|(_, next)| next.is_whitespace());
                before_blank && !(c == '.' && text.get(start..at).is_some_and(is_abbreviation))
            }
            _ => false,
        };
        if ended {
            found.extend(trimmed(text, start..end));
            start = end;
        }
    }
    found.extend(trimmed(text, start..text.len()));
    found
}

/// Returns the byte range of the sentences that a part of a text touches, or the part itself if it touches none.
pub fn sentences_around(text: &str, part: &Range<usize>) -> Range<usize> {
    let touched = sentences(text).into_iter().filter(|range| range.start < part.end && part.start < range.end);
    let around = touched.reduce(|one, next| one.start..next.end);
    around.map_or(part.clone(), |around| around.start.min(part.start)..around.end.max(part.end))
}

/// Returns true if the text ends with an abbreviation: a known one, or a single letter.
fn is_abbreviation(so_far: &str) -> bool {
    let word = so_far.rsplit([' ', '\t', '(']).next().unwrap_or_default().to_lowercase();
    ABBREVIATIONS.contains(&word.as_str())
        || (word.chars().count() == 1 && word != "i" && word.chars().all(char::is_alphabetic))
}

fn trimmed(text: &str, range: Range<usize>) -> Option<Range<usize>> {
    let part = text.get(range.clone())?;
    let start = range.start + (part.len() - part.trim_start().len());
    let end = start + part.trim().len();
    (start < end).then_some(start..end)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str, want: &[&str]) {
        let got: Vec<&str> = sentences(text).into_iter().filter_map(|range| text.get(range)).collect();
        assert_eq!(got, want);
    }

    #[test]
    fn a_text_is_split_into_sentences() {
        check("", &[]);
        check(" \n ", &[]);
        check("one", &["one"]);
        check("I passed. Really?! Yes", &["I passed.", "Really?!", "Yes"]);
        check("Half past 7.30 at Dr. Vance's. Bring J. too...", &["Half past 7.30 at Dr. Vance's.", "Bring J. too..."]);
        check("\"Stay.\" she said.\nNo", &["\"Stay.\"", "she said.", "No"]);
        check("寒い。帰る", &["寒い。", "帰る"]);
        check("a.b.c is v1.2", &["a.b.c is v1.2"]);
    }

    #[test]
    fn a_part_grows_to_the_sentences_that_it_touches() {
        let check = |part: Range<usize>, want: &str| {
            let text = "I passed. Really?! Yes";
            assert_eq!(text.get(sentences_around(text, &part)), Some(want), "{part:?}");
        };
        check(2..4, "I passed.");
        check(2..11, "I passed. Really?!");
        check(19..20, "Yes");
        check(9..10, " ");
    }

    proptest! {
        #[test]
        fn only_blanks_are_left_out(text in "[a-zé。 .!?\"\n…]{0,60}|\\PC{0,40}") {
            let mut rest = 0;
            for range in sentences(&text) {
                prop_assert!(text.get(rest..range.start).unwrap().trim().is_empty());
                prop_assert!(!text.get(range.clone()).unwrap().trim().is_empty());
                rest = range.end;
            }
            prop_assert!(text.get(rest..).unwrap().trim().is_empty());
        }
    }
}
