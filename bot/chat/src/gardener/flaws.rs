//! What is wrong with something a model wrote. What has a flaw is not kept and not posted.

use std::collections::HashSet;

/// Characters something written has at least.
const MIN_CHARS: usize = 40;

/// Words in a row that a text may have in common with its prompt's own words, or with what it is about.
const MAX_RUN: usize = 7;

/// Share of a text's words that may stand in what it is about, in percent: more is that over again.
const MAX_COPIED: usize = 70;

/// Share of the words that must be different from each other, in percent.
const MIN_DIFFERENT: usize = 50;

/// Share of the characters that must be letters or blanks, in percent.
const MIN_LETTERS: usize = 80;

/// Letters from which a word says something.
const TELLING_LETTERS: usize = 4;

/// Words a text is said to be about at most.
const MAX_THEMES: usize = 5;

/// Longer words that say nothing of what a text is about.
const EMPTY_WORDS: [&str; 76] = [
    "about", "after", "again", "all", "also", "always", "been", "before", "being", "came", "come", "could", "does",
    "doing", "done", "down", "even", "every", "from", "going", "good", "have", "having", "here", "into", "just",
    "know", "last", "like", "little", "long", "made", "make", "many", "more", "most", "much", "must", "myself", "need",
    "never", "next", "only", "other", "over", "really", "said", "same", "should", "some", "still", "such", "than",
    "that", "their", "them", "then", "there", "they", "thing", "things", "think", "this", "time", "today", "told",
    "very", "want", "well", "went", "were", "what", "when", "will", "with", "would",
];

/// What is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flaw {
    /// There is next to nothing.
    Short,
    /// It says the same again and again.
    Repeats,
    /// It is not made of words.
    NoText,
    /// It tells the prompt's own words.
    Echo,
    /// It tells what it was given and nothing else.
    Copy,
    /// It takes up nothing of what it was given.
    AboutNothing,
}

/// What a text takes up of what it is about, or what is wrong with it. `own_words` are the prompt's, `given` is what it is
/// about.
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
    if shares_run(&said, &words(own_words)) {
        return Err(Flaw::Echo);
    }
    let given_words = words(given);
    let known: HashSet<&String> = given_words.iter().collect();
    let copied = said.iter().filter(|word| known.contains(word)).count();
    if copied * 100 > said.len() * MAX_COPIED {
        return Err(Flaw::Copy);
    }
    let stems: HashSet<&str> = given_words.iter().filter(|word| is_telling(word)).map(|word| stem(word)).collect();
    let mut themes: Vec<String> = Vec::new();
    for word in said.iter().filter(|word| is_telling(word) && stems.contains(stem(word))) {
        if themes.len() < MAX_THEMES && !themes.contains(word) {
            themes.push(word.clone());
        }
    }
    if themes.is_empty() { Err(Flaw::AboutNothing) } else { Ok(themes) }
}

/// How much a text says: its telling words, each once.
pub(super) fn weight(text: &str) -> usize {
    words(text).into_iter().filter(|word| is_telling(word)).collect::<HashSet<_>>().len()
}

/// The text up to the end of its last sentence: what a limit cut off is not told. `None` without a whole sentence.
pub(super) fn whole_sentences(text: &str) -> Option<&str> {
    let text = text.trim();
    let end = text.rfind(['.', '!', '?', '\u{2026}'])?;
    let rest = text.get(end..)?;
    let closing = rest.chars().skip(1).take_while(|c| matches!(c, '"' | '\'' | '\u{201d}' | '*' | ')'));
    let length = rest.chars().next().map_or(0, char::len_utf8) + closing.map(char::len_utf8).sum::<usize>();
    text.get(..end + length)
}

fn words(text: &str) -> Vec<String> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
}

fn is_telling(word: &str) -> bool {
    let long = word.chars().count() >= TELLING_LETTERS || word.chars().all(|c| c.is_ascii_digit());
    long && !EMPTY_WORDS.contains(&word)
}

/// A word without the ending that most often tells its forms apart.
fn stem(word: &str) -> &str {
    word.strip_suffix("es").or_else(|| word.strip_suffix('s')).unwrap_or(word)
}

fn shares_run(said: &[String], own: &[String]) -> bool {
    let runs: HashSet<&[String]> = own.windows(MAX_RUN).collect();
    said.windows(MAX_RUN).any(|run| runs.contains(run))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIVEN: &str = "- Ann: my sister Ines lands at 18:40 on Friday\n- Bob: the greenhouse roof leaks again";
    const OWN: &str = "Eve pumped it up with her breath until it rose over the roofs";

    #[track_caller]
    fn check(text: &str, want: Result<&[&str], Flaw>) {
        let themes = themes(text, OWN, GIVEN);
        assert_eq!(
            themes.as_ref().map(|it| it.iter().map(String::as_str).collect::<Vec<_>>()),
            want.map(<[_]>::to_vec).as_ref().map_err(|e| e),
            "{text}"
        );
    }

    #[test]
    fn what_is_told_and_what_is_wrong() {
        check(
            "I dreamt that the greenhouse was a ship, and rain fell upwards through its open roofs.",
            Ok(&["greenhouse", "roofs"]),
        );
        check("I dreamt.", Err(Flaw::Short));
        check("I dreamt that a mountain walked into the sea and sang to whales.", Err(Flaw::AboutNothing));
        check("I dreamt that Eve pumped it up with her breath until it rose over the roofs.", Err(Flaw::Echo));
        check("My sister Ines lands at 18 40 on Friday, the greenhouse roof leaks again.", Err(Flaw::Copy));
        check("roof roof roof roof roof roof roof roof roof roof", Err(Flaw::Repeats));
        check("#### ---- 1234567890 **** //// 99999999 roof $$$$ 8888", Err(Flaw::NoText));
    }

    #[test]
    fn a_text_ends_with_a_sentence() {
        assert_eq!(whole_sentences("One. Two and"), Some("One."));
        assert_eq!(whole_sentences(" She said \"go!\" and then "), Some("She said \"go!\""));
        assert_eq!(whole_sentences("no end"), None);
    }
}
