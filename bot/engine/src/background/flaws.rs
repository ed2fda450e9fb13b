//! Flaws in texts that a model wrote. A text with a flaw is neither stored nor posted.

use std::collections::HashSet;

use crate::sentences::end_of_whole_sentences;

/// Minimum number of characters in a text.
const MIN_CHARS: usize = 40;

/// Number of consecutive words that a text may not share with the prompt's own words.
const ECHO_RUN: usize = 7;

/// Number of consecutive shared words from which they count as copied from the source lines.
const COPIED_RUN: usize = 5;

/// Maximum share of a text's words that may be copied, in percent; more only repeats the source.
const MAX_COPIED: usize = 60;

/// Minimum share of words that differ from each other, in percent.
const MIN_DIFFERENT: usize = 50;

/// Minimum share of characters that are letters or whitespace, in percent.
const MIN_LETTERS: usize = 80;

/// Minimum number of letters in a content word.
const MIN_CONTENT_LETTERS: usize = 4;

/// Maximum number of themes of a text.
const MAX_THEMES: usize = 5;

/// Longer words that say nothing about a text's theme.
const EMPTY_WORDS: [&str; 76] = [
    "about", "after", "again", "all", "also", "always", "been", "before", "being", "came", "come", "could", "does",
    "doing", "done", "down", "even", "every", "from", "going", "good", "have", "having", "here", "into", "just",
    "know", "last", "like", "little", "long", "made", "make", "many", "more", "most", "much", "must", "myself", "need",
    "never", "next", "only", "other", "over", "really", "said", "same", "should", "some", "still", "such", "than",
    "that", "their", "them", "then", "there", "they", "thing", "things", "think", "this", "time", "today", "told",
    "very", "want", "well", "went", "were", "what", "when", "will", "with", "would",
];

/// What is wrong with a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flaw {
    /// It is almost empty.
    Short,
    /// It repeats itself.
    Repeats,
    /// It is not made of words.
    NoText,
    /// It repeats the prompt's own words.
    Echo,
    /// It is about the subject of the prompt's example.
    Borrowed,
    /// It only repeats the source lines.
    Copy,
    /// It takes up nothing of the source lines.
    AboutNothing,
}

/// Returns the words of the source lines that a text takes up, or its flaw. `own_words` are the prompt's, `given` are
/// the source lines.
pub(super) fn themes(text: &str, own_words: &str, given: &str) -> Result<Vec<String>, Flaw> {
    if text.chars().count() < MIN_CHARS {
        return Err(Flaw::Short);
    }
    let letters = text.chars().filter(|c| c.is_alphabetic() || c.is_whitespace()).count();
    if letters * 100 < text.chars().count() * MIN_LETTERS {
        return Err(Flaw::NoText);
    }
    let said = words(text);
    let different: HashSet<&String> = said.iter().collect();
    if different.len() * 100 < said.len() * MIN_DIFFERENT {
        return Err(Flaw::Repeats);
    }
    if words_in_shared_runs(&said, &words(own_words), ECHO_RUN) > 0 {
        return Err(Flaw::Echo);
    }
    let given_words = words(given);
    let foreign = borrowed(own_words, &given_words);
    if said.iter().any(|word| foreign.contains(stem(word))) {
        return Err(Flaw::Borrowed);
    }
    if words_in_shared_runs(&said, &given_words, COPIED_RUN) * 100 > said.len() * MAX_COPIED {
        return Err(Flaw::Copy);
    }
    let stems: HashSet<&str> = given_words.iter().filter(|word| is_content_word(word)).map(|word| stem(word)).collect();
    let mut themes: Vec<String> = Vec::new();
    for word in said.iter().filter(|word| is_content_word(word) && stems.contains(stem(word))) {
        if themes.len() < MAX_THEMES && !themes.contains(word) {
            themes.push(word.clone());
        }
    }
    if themes.is_empty() { Err(Flaw::AboutNothing) } else { Ok(themes) }
}

/// Returns the content words and names of the prompt's example, without those that the source lines also hold.
fn borrowed(own_words: &str, given: &[String]) -> HashSet<String> {
    let given: HashSet<&str> = given.iter().map(|word| stem(word)).collect();
    let lines = own_words.lines().filter_map(|line| line.strip_prefix("- ")?.split_once(": "));
    lines
        .flat_map(|(who, what)| {
            let content = words(what).into_iter().filter(|word| is_content_word(word));
            words(who).into_iter().chain(content).collect::<Vec<_>>()
        })
        .map(|word| stem(&word).to_owned())
        .filter(|word| !given.contains(word.as_str()))
        .collect()
}

/// Returns true if a text holds a number that the source lines do not.
pub(super) fn invents_numbers(text: &str, given: &str) -> bool {
    let is_number = |word: &String| word.chars().all(|c| c.is_ascii_digit());
    let given: HashSet<String> = words(given).into_iter().filter(is_number).collect();
    words(text).iter().any(|word| is_number(word) && !given.contains(word))
}

/// Returns how much a text says: the number of its different content words.
pub(super) fn weight(text: &str) -> usize {
    words(text).into_iter().filter(|word| is_content_word(word)).collect::<HashSet<_>>().len()
}

/// Returns the text up to the end of its last whole sentence, because a token limit may have cut the rest. Returns
/// `None` without a whole sentence.
pub(super) fn whole_sentences(text: &str) -> Option<&str> {
    let text = text.trim();
    text.get(..end_of_whole_sentences(text)?)
}

fn words(text: &str) -> Vec<String> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
}

fn is_content_word(word: &str) -> bool {
    let long = word.chars().count() >= MIN_CONTENT_LETTERS || word.chars().all(|c| c.is_ascii_digit());
    long && !EMPTY_WORDS.contains(&word)
}

/// Returns a word without its plural ending.
fn stem(word: &str) -> &str {
    word.strip_suffix("es").or_else(|| word.strip_suffix('s')).unwrap_or(word)
}

/// Returns how many words of a text lie in runs of `length` words that another text holds, too.
fn words_in_shared_runs(said: &[String], other: &[String], length: usize) -> usize {
    let runs: HashSet<&[String]> = other.windows(length).collect();
    let mut covered = HashSet::new();
    for (start, run) in said.windows(length).enumerate() {
        if runs.contains(run) {
            covered.extend(start..start + length);
        }
    }
    covered.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIVEN: &str = "- Ann: my sister Ines lands at 18:40 on Friday\n- Bob: the greenhouse roof leaks again";
    const OWN: &str = "Heard today:\n- Eve: my bicycle has a flat tyre\n- Eve: I like greenhouses\nEve pumped it up with her breath until it rose over the roofs";

    #[track_caller]
    fn check(text: &str, want: Result<&[&str], Flaw>) {
        let themes = themes(text, OWN, GIVEN);
        let want = want.map(|words| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
        assert_eq!(themes, want, "{text}");
    }

    #[test]
    fn a_text_has_themes_or_a_flaw() {
        check(
            "I dreamt that the greenhouse was a ship, and rain fell upwards through its open roofs.",
            Ok(&["greenhouse", "roofs"]),
        );
        check("I dreamt.", Err(Flaw::Short));
        check("I dreamt that Eve stood in the greenhouse and waited for rain.", Err(Flaw::Borrowed));
        check("I dreamt that the greenhouse rode away on a bicycle of glass.", Err(Flaw::Borrowed));
        check("I dreamt that a mountain walked into the sea and sang to whales.", Err(Flaw::AboutNothing));
        check("I dreamt that Eve pumped it up with her breath until it rose over the roofs.", Err(Flaw::Echo));
        check("My sister Ines lands at 18 40 on Friday, the greenhouse roof leaks again.", Err(Flaw::Copy));
        check("roof roof roof roof roof roof roof roof roof roof", Err(Flaw::Repeats));
        check("#### ---- 1234567890 **** //// 99999999 roof $$$$ 8888", Err(Flaw::NoText));
    }

    #[test]
    fn a_number_not_in_the_source_is_invented() {
        let given = "- Talks: I heard 9 messages of 2 people.";
        assert!(!invents_numbers("I heard 9 messages this week, which is little.", given));
        assert!(invents_numbers("I heard 9 messages and dreamt 4 times.", given));
    }

    #[test]
    fn a_text_ends_with_a_sentence() {
        assert_eq!(whole_sentences("One. Two and"), Some("One."));
        assert_eq!(whole_sentences(" She said \"go!\" and then "), Some("She said \"go!\""));
        assert_eq!(whole_sentences("\u{6211}\u{68a6}\u{3002}\u{7136}"), Some("\u{6211}\u{68a6}\u{3002}"));
        assert_eq!(whole_sentences("no end"), None);
    }
}
