//! Finds words and phrases in text.

/// The endings that a found word may have in addition to the phrase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Inflection {
    /// Plural and possessive.
    Noun,
    /// Those, and the past and progressive of verbs.
    Verb,
}

impl Inflection {
    fn endings(self) -> &'static [&'static str] {
        match self {
            Self::Noun => &["", "s", "es", "'s", "’s"],
            Self::Verb => &["", "s", "es", "'s", "’s", "d", "ed", "ing"],
        }
    }
}

/// Returns true if `text` contains `phrase` as whole words, possibly with an English ending. A phrase ending in `*` is
/// the beginning of a word. In scripts without spaces between words, it matches anywhere. Both must be in the same
/// case.
pub(crate) fn contains_phrase(text: &str, phrase: &str, inflection: Inflection) -> bool {
    let (phrase, open) = match phrase.strip_suffix('*') {
        Some(stem) => (stem, true),
        None => (phrase, false),
    };
    let (Some(first), Some(last)) = (phrase.chars().next(), phrase.chars().next_back()) else { return false };
    // `contains` is many times faster than `match_indices`, and nearly every phrase is absent.
    text.contains(phrase)
        && text.match_indices(phrase).any(|(start, found)| {
            let before = text.get(..start).and_then(|before| before.chars().next_back());
            let after = text.get(start + found.len()..).unwrap_or_default();
            let begins = !before.is_some_and(|before| same_word(before, first));
            let ends = open
                || inflection.endings().iter().filter_map(|ending| Some((ending, after.strip_prefix(ending)?))).any(
                    |(ending, after)| {
                        let last = ending.chars().next_back().unwrap_or(last);
                        !after.chars().next().is_some_and(|after| same_word(last, after))
                    },
                );
            begins && ends
        })
}

/// Returns true if two neighbouring characters belong to one word. From U+2E80 on (Chinese, Japanese, Korean), and in
/// Thai, Lao, Khmer and Burmese, this needs a dictionary, so it is always false there.
fn same_word(a: char, b: char) -> bool {
    let spaced = |c: char| {
        c.is_alphanumeric()
            && c < '\u{2E80}'
            && !matches!(c, '\u{0E00}'..='\u{0EFF}' | '\u{1000}'..='\u{109F}' | '\u{1780}'..='\u{17FF}')
    };
    spaced(a) && spaced(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phrases_are_whole_words() {
        fn check(text: &str, phrase: &str, found: bool) {
            assert_eq!(contains_phrase(text, phrase, Inflection::Noun), found, "{phrase:?} in {text:?}");
        }
        check("the dragon sleeps", "dragon", true);
        check("two dragons.", "dragon", true);
        check("the dragon's hoard", "dragon", true);
        check("snapdragon", "dragon", false);
        check("dragonfly, then a dragon", "dragon", true);
        check("concatenate", "cat", false);
        check("a stack trace here", "stack trace", true);
        check("storytelling", "story*", true);
        check("history", "story*", false);
        check("千早は寝ている", "千早", true);
        check("c++ is fine", "c++", true);
        check("anything", "", false);
        check("anything", "*", false);
    }

    #[test]
    fn verbs_may_have_their_endings() {
        assert!(contains_phrase("it crashed", "crash", Inflection::Verb));
        assert!(contains_phrase("i am debugging", "debugg*", Inflection::Verb));
        assert!(!contains_phrase("it crashed", "crash", Inflection::Noun));
    }
}
