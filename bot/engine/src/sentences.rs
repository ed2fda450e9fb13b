//! Where sentences end.

/// What ends a sentence: also the Arabic and Urdu marks, the dandas of India, and the marks of Burmese and Amharic.
pub(crate) const ENDS: [char; 13] = [
    '.', '!', '?', '\u{2026}', '\u{3002}', '\u{ff01}', '\u{ff1f}', '\u{61f}', '\u{6d4}', '\u{964}', '\u{965}',
    '\u{104b}', '\u{1362}',
];

/// What ends a sentence in scripts that put no white space after it.
const WIDE_ENDS: [char; 3] = ['\u{3002}', '\u{ff01}', '\u{ff1f}'];

/// Shortened words before whose point no sentence is over, besides single letters.
const SHORTENED: [&str; 12] = ["dr", "mr", "mrs", "ms", "prof", "st", "vs", "nr", "bzw", "ca", "mme", "sra"];

/// Returns true for a character that may stand between the end of a sentence and the next one.
pub(crate) fn is_closing(c: char) -> bool {
    matches!(c, '"' | '\'' | '\u{2019}' | '\u{201d}' | '\u{300d}' | '*' | '_' | ')')
}

/// Returns true for an end after which the next sentence begins without white space.
pub(crate) fn is_wide_end(c: char) -> bool {
    WIDE_ENDS.contains(&c)
}

/// Returns where the last whole sentence of a text ends, in bytes. A sentence ends before white space or at the end of
/// the text, and not after the number of a list. Within the text it does not end after a shortened word either.
pub(crate) fn end_of_whole_sentences(text: &str) -> Option<usize> {
    text.rmatch_indices(ENDS).find_map(|(at, mark)| {
        let end = end_after(text, at)?;
        let rest = text.get(end..)?;
        let is_over = rest.is_empty() || rest.starts_with(char::is_whitespace) || mark.starts_with(is_wide_end);
        let before = text.get(..at)?;
        let is_part = mark == "." && (is_list_number(before) || (!rest.is_empty() && is_shortened(before)));
        (is_over && !is_part).then_some(end)
    })
}

/// Returns true if the last line is a number and nothing else, so that a point makes it the number of a list.
fn is_list_number(text: &str) -> bool {
    let line = text.rsplit('\n').next().unwrap_or_default().trim_start();
    !line.is_empty() && line.chars().all(char::is_numeric)
}

/// Returns true if the point after this text belongs to its last word: single letters as in "e.g." and "J. Smith", or a
/// shortened word.
fn is_shortened(text: &str) -> bool {
    let word = text.rsplit(char::is_whitespace).next().unwrap_or_default();
    let word = word.trim_start_matches(|c: char| !c.is_alphanumeric());
    let is_letter = |part: &str| {
        let mut chars = part.chars();
        chars.next().is_some_and(|c| c.is_lowercase() || c.is_uppercase()) && chars.next().is_none()
    };
    (word != "I" && word.split('.').all(is_letter)) || SHORTENED.contains(&word.to_lowercase().as_str())
}

/// Returns where the last whole sentence ends after which white space is not needed and more text follows.
pub(crate) fn end_of_wide_sentences(text: &str) -> Option<usize> {
    end_after(text, text.rfind(WIDE_ENDS)?).filter(|end| *end < text.len())
}

/// Returns the end of a sentence whose last mark stands at this byte.
fn end_after(text: &str, at: usize) -> Option<usize> {
    let mut chars = text.get(at..)?.chars();
    let mark = chars.next()?;
    // German and French quotes close with these; in Chinese the first one opens the next sentence.
    let closes = |c: &char| is_closing(*c) || (!is_wide_end(mark) && matches!(c, '\u{201c}' | '\u{ab}' | '\u{bb}'));
    Some(at + mark.len_utf8() + chars.take_while(closes).map(char::len_utf8).sum::<usize>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_ends_before_white_space_and_not_after_a_shortened_word() {
        #[track_caller]
        fn check(text: &str, whole: Option<&str>) {
            assert_eq!(end_of_whole_sentences(text).and_then(|end| text.get(..end)), whole, "{text}");
        }
        check("The trip costs 3.5 mil", None);
        check("We leave. See example.com for", Some("We leave."));
        check("It costs 3.", Some("It costs 3."));
        check("It was 1984. Then", Some("It was 1984."));
        check("1. apples\n2. pears\n3. pl", None);
        check("He left. Ask Dr. Smith, e.g. about (i.e. for", Some("He left."));
        check("We met at 5 p.m.", Some("We met at 5 p.m."));
        check("1. apples\n2.", None);
        check("So do I. Then J. Smith", Some("So do I."));
        check("Well... and", Some("Well..."));
        check("\u{201e}Komm.\u{201c} Sie", Some("\u{201e}Komm.\u{201c}"));
        check("\u{92f}\u{939} \u{939}\u{948}\u{964} \u{935}\u{939}", Some("\u{92f}\u{939} \u{939}\u{948}\u{964}"));
        check("\u{645}\u{627}\u{61f} \u{646}", Some("\u{645}\u{627}\u{61f}"));
        check("\u{706f}\u{3002}\u{6ce2}", Some("\u{706f}\u{3002}"));
    }
}
