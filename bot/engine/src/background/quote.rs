//! Finds the words that a model quotes in the message that they were taken from.

use std::ops::Range;

use azera_memory::words::fold;
use azera_types::composed;

/// Minimum number of letters and digits in a statement that can repeat another. Shorter ones are the same by chance.
const MIN_REPEATED: usize = 12;

/// Returns where a quote stands in a text, in bytes. White space may differ, and so may the form of quotation marks, which
/// models write plainly; nothing else may. Whole words come before parts of words.
pub(super) fn locate(text: &str, quote: &str) -> Option<Range<usize>> {
    let quote = composed(quote);
    let wanted: Vec<char> = plain(&quote).map(|(_, c)| c).collect();
    let first = wanted.iter().position(|c| *c != ' ')?;
    let last = wanted.iter().rposition(|c| *c != ' ')?;
    let wanted = wanted.get(first..=last)?;
    if !wanted.iter().any(|c| c.is_alphanumeric()) {
        return None;
    }
    let said: Vec<(Range<usize>, char)> = plain(text).collect();
    let joins = |one: Option<&(Range<usize>, char)>, other: Option<&(Range<usize>, char)>| {
        let is_word = |it: Option<&(Range<usize>, char)>| it.is_some_and(|(_, c)| c.is_alphanumeric());
        is_word(one) && is_word(other)
    };
    let mut inside_a_word = None;
    for start in 0..said.len().saturating_sub(wanted.len() - 1) {
        let end = start + wanted.len();
        let window = said.get(start..end)?;
        if !window.iter().map(|(_, c)| c).eq(wanted) {
            continue;
        }
        let (Some((from, _)), Some((to, _))) = (window.first(), window.last()) else { continue };
        let span = from.start..to.end;
        let before = start.checked_sub(1).and_then(|before| said.get(before));
        if !joins(before, window.first()) && !joins(window.last(), said.get(end)) {
            return Some(span);
        }
        inside_a_word.get_or_insert(span);
    }
    // Scripts without spaces have no other boundaries.
    inside_a_word
}

/// Returns the characters of a text with the bytes that they stand for: runs of white space as one space, and quotation
/// marks in their plain form.
fn plain(text: &str) -> impl Iterator<Item = (Range<usize>, char)> {
    let mut chars = text.char_indices().peekable();
    std::iter::from_fn(move || {
        let (start, c) = chars.next()?;
        let mut end = start + c.len_utf8();
        if !c.is_whitespace() {
            let c = match c {
                '\u{2018}' | '\u{2019}' | '\u{2bc}' => '\'',
                '\u{201c}' | '\u{201d}' | '\u{201e}' => '"',
                c => c,
            };
            return Some((start..end, c));
        }
        while let Some((at, c)) = chars.next_if(|(_, c)| c.is_whitespace()) {
            end = at + c.len_utf8();
        }
        Some((start..end, ' '))
    })
}

/// Returns true if a part of a text reaches into a quotation of somebody else: a line that begins with `>`.
pub(super) fn is_quoted_from_others(text: &str, part: &Range<usize>) -> bool {
    let start = text.get(..part.start).and_then(|before| before.rfind('\n')).map_or(0, |at| at + 1);
    let lines = text.get(start..part.end).unwrap_or_default();
    lines.lines().any(|line| line.trim_start().starts_with('>'))
}

/// Returns true if a statement stands whole in an earlier text. Short statements repeat nothing: "on Friday" may answer
/// the question whether it is on Friday.
pub(super) fn repeats(statement: &str, earlier: &str) -> bool {
    let letters = |text: &str| fold(text).chars().filter(|c| c.is_alphanumeric()).collect::<String>();
    let statement = letters(statement);
    statement.chars().count() >= MIN_REPEATED && letters(earlier).contains(&statement)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_quote_is_found_to_the_byte() {
        #[track_caller]
        fn check(text: &str, quote: &str, want: Option<&str>) {
            assert_eq!(locate(text, quote).and_then(|span| text.get(span)), want, "{quote}");
        }
        check("I moved to Turin.", "moved to Turin", Some("moved to Turin"));
        check("I moved\n  to Turin.", " moved to Turin. ", Some("moved\n  to Turin."));
        check("it\u{2019}s \u{201c}Petrel\u{201d}", "it's \"Petrel\"", Some("it\u{2019}s \u{201c}Petrel\u{201d}"));
        check("caf\u{e9} at nine", "cafe\u{301} at nine", Some("caf\u{e9} at nine"));
        check("concatenate the cat", "cat", Some("cat"));
        check("猫の名前はミソです", "名前はミソ", Some("名前はミソ"));
        check("I moved to Turin.", "I moved to Rome.", None);
        check("I moved to Turin.", "i moved to turin", None);
        check("I moved to Turin.", "", None);
        check("I moved to Turin.", " . ", None);
        check("", "Turin", None);
        assert_eq!(locate("concatenate the cat", "cat"), Some(16..19));
    }

    #[test]
    fn lines_that_quote_others_are_recognized() {
        let text = "yes\n > it is blue\nno, green";
        assert!(is_quoted_from_others(text, &(7..14)));
        assert!(!is_quoted_from_others(text, &(0..3)) && !is_quoted_from_others(text, &(18..27)));
    }

    #[test]
    fn a_whole_repeated_statement_is_recognized() {
        assert!(repeats("Your berth is number twelve!", "I recall: your berth is number twelve."));
        assert!(!repeats("on Friday", "Is it on Friday?"));
        assert!(!repeats("my berth is number thirteen", "your berth is number twelve"));
    }

    proptest! {
        #[test]
        fn what_is_found_is_a_part_of_the_text(text in "[ab \n'\u{e9}猫]{0,12}", quote in "[ab '\u{e9}猫]{0,4}") {
            if let Some(span) = locate(&text, &quote) {
                let found = text.get(span).unwrap();
                let bare = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
                prop_assert_eq!(bare(found), bare(&quote));
            }
        }

        #[test]
        fn each_part_of_a_text_is_found(text in "\\PC{1,30}", from in 0_usize..30, length in 1_usize..10) {
            let text = composed(&text).into_owned();
            let part: String = text.chars().skip(from).take(length).collect();
            if part.chars().any(char::is_alphanumeric) {
                prop_assert!(locate(&text, &part).is_some());
            }
        }
    }
}
