//! How the words of concepts are found in a sentence.
//!
//! | in an item | matches |
//! |---|---|
//! | `word` | that word |
//! | `word*`, `*word` | any word that begins, or ends, like it |
//! | `one_two` | both words, with at most one word between them |
//! | `one+two` | both words, with nothing between them |
//! | `{8-17}` | each number of the range |
//! | `one~two` | both, with up to three words, or six characters of a script without blanks, between them |

use std::collections::HashMap;

use super::super::normal::normalise;
use super::super::pattern::Spacing;
use super::Mask;
use super::rule::STEPS_A_WORD;

/// Words that a `_` may leap over: "will not really need".
const SHORT_LEAP: usize = 1;

/// Words that a `~` may leap over.
const LEAP: usize = 3;

/// Characters that a `~` may leap over in a script without blanks.
const LEAP_CHARS: usize = 6;

/// Numbers that count as a `number`: amounts, not list items or years.
const NUMBERS: std::ops::RangeInclusive<u32> = 6..=900;

/// Short Arabic words that are written onto the next one.
const CLITICS: [&str; 12] = ["وال", "بال", "فال", "لل", "ال", "و", "ف", "ب", "ل", "س", "ح", "ه"];

/// Letters that are left of a word without its clitic.
const LEAST_LETTERS: usize = 3;

/// A concept at a place of a sentence.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mark {
    pub(super) language: usize,
    pub(super) at: usize,
    pub(super) concepts: Mask,
}

/// Why an item cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum ItemError {
    #[error("`{0}` holds no word")]
    Empty(String),
    #[error("`{0}`: a range is written {{8-17}}")]
    Range(String),
    #[error("`{0}`: a star stands at one end of a word of a language with blanks")]
    Star(String),
}

/// One word of an item.
#[derive(Debug)]
struct Word {
    text: Box<str>,
    open_start: bool,
    open_end: bool,
    /// Words, or characters, that may stand before it.
    leap: usize,
}

impl Word {
    fn matches(&self, word: &str) -> bool {
        match (self.open_start, self.open_end) {
            (false, false) => word == &*self.text,
            (false, true) => word.starts_with(&*self.text),
            (true, _) => word.ends_with(&*self.text),
        }
    }
}

/// A word or words that mean a concept.
#[derive(Debug)]
struct Item {
    language: usize,
    concepts: Mask,
    first: Word,
    rest: Box<[Word]>,
}

/// The items of all languages that treat blanks alike, by their first word.
#[derive(Debug)]
pub(super) struct Index {
    spacing: Spacing,
    number: Mask,
    items: Vec<Item>,
    by_start: HashMap<Box<str>, Vec<u32>>,
    by_end: HashMap<Box<str>, Vec<u32>>,
    /// The longest first word in characters.
    longest: usize,
    languages: Vec<usize>,
    /// Languages that write short words onto the next one ("l'arme").
    eliding: Vec<usize>,
}

impl Index {
    pub(super) fn new(spacing: Spacing, number: Mask) -> Self {
        Self {
            spacing,
            number,
            items: Vec::new(),
            by_start: HashMap::new(),
            by_end: HashMap::new(),
            longest: 0,
            languages: Vec::new(),
            eliding: Vec::new(),
        }
    }

    /// Lets the words of a language stand behind a short word that lost its vowel.
    pub(super) fn elide(&mut self, language: usize) {
        self.eliding.push(language);
    }

    pub(super) fn add(&mut self, item: &str, language: usize, concepts: Mask) -> Result<(), ItemError> {
        if !self.languages.contains(&language) {
            self.languages.push(language);
        }
        if let Some(items) = expanded(item)? {
            return items.iter().try_for_each(|item| self.add(item, language, concepts));
        }
        let mut words = self.words(item)?.into_iter();
        let first = words.next().ok_or_else(|| ItemError::Empty(item.to_owned()))?;
        self.longest = self.longest.max(first.text.chars().count());
        let index = if first.open_start { &mut self.by_end } else { &mut self.by_start };
        let number = u32::try_from(self.items.len()).unwrap_or(u32::MAX);
        index.entry(first.text.clone()).or_default().push(number);
        self.items.push(Item { language, concepts, first, rest: words.collect() });
        Ok(())
    }

    fn words(&self, item: &str) -> Result<Vec<Word>, ItemError> {
        let spaced = self.spacing == Spacing::Words;
        let mut words = Vec::new();
        for (number, part) in item.split('~').enumerate() {
            let leap = match number {
                0 => 0,
                _ if spaced => LEAP,
                _ => LEAP_CHARS,
            };
            for (number, written) in part.split('_').enumerate() {
                let (open_start, open_end) = (written.starts_with('*'), written.ends_with('*'));
                if (open_start && open_end) || (!spaced && (open_start || open_end)) {
                    return Err(ItemError::Star(item.to_owned()));
                }
                let folded = normalise(written);
                let folded: Vec<&str> = match spaced {
                    true => folded.split_whitespace().collect(),
                    false => vec![folded.trim()],
                };
                if folded.iter().all(|word| word.is_empty()) {
                    return Err(ItemError::Empty(item.to_owned()));
                }
                let last = folded.len() - 1;
                words.extend(folded.into_iter().enumerate().map(|(at, word)| Word {
                    text: word.replace(' ', "").into(),
                    open_start: open_start && at == 0,
                    open_end: open_end && at == last,
                    leap: match (number, at) {
                        (0, 0) => leap,
                        (_, 0) if spaced => SHORT_LEAP,
                        _ => 0,
                    },
                }));
            }
        }
        Ok(words)
    }

    /// Adds the concepts of a normalised sentence.
    pub(super) fn mark(&self, sentence: &str, marks: &mut Vec<Mark>) {
        match self.spacing {
            Spacing::Words => self.mark_words(&sentence.split_whitespace().collect::<Vec<_>>(), marks),
            Spacing::None => self.mark_chars(&sentence.replace(' ', ""), marks),
        }
    }

    fn mark_words(&self, words: &[&str], marks: &mut Vec<Mark>) {
        for (number, word) in words.iter().enumerate() {
            let at = number * STEPS_A_WORD;
            if word.parse::<u32>().is_ok_and(|number| NUMBERS.contains(&number)) {
                self.mark_number(at, marks);
            }
            for (word, elided) in variants(word) {
                let ends = word.char_indices().map(|(from, c)| from + c.len_utf8());
                let starts = ends.filter_map(|end| self.by_start.get(word.get(..end)?));
                let endings = word.char_indices().filter_map(|(from, _)| self.by_end.get(word.get(from..)?));
                for item in starts.chain(endings).flatten() {
                    let Some(item) = self.items.get(*item as usize) else { continue };
                    let allowed = !elided || self.eliding.contains(&item.language);
                    if allowed && item.first.matches(word) && follow(&item.rest, words, number) {
                        marks.push(Mark { language: item.language, at, concepts: item.concepts });
                    }
                }
            }
        }
    }

    fn mark_chars(&self, text: &str, marks: &mut Vec<Mark>) {
        let mut in_number = false;
        for (at, (from, c)) in text.char_indices().enumerate() {
            let Some(rest) = text.get(from..) else { continue };
            if c.is_ascii_digit() && !in_number {
                let digits = rest.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
                if digits.parse::<u32>().is_ok_and(|number| NUMBERS.contains(&number)) {
                    self.mark_number(at, marks);
                }
            }
            let within = in_number && c.is_ascii_digit();
            in_number = c.is_ascii_digit();
            if within {
                continue;
            }
            for (end, c) in rest.char_indices().take(self.longest) {
                let (start, behind) = rest.split_at_checked(end + c.len_utf8()).unwrap_or((rest, ""));
                for item in self.by_start.get(start).into_iter().flatten() {
                    let Some(item) = self.items.get(*item as usize) else { continue };
                    if follow_chars(&item.rest, behind) {
                        marks.push(Mark { language: item.language, at, concepts: item.concepts });
                    }
                }
            }
        }
    }

    fn mark_number(&self, at: usize, marks: &mut Vec<Mark>) {
        marks.extend(self.languages.iter().map(|language| Mark { language: *language, at, concepts: self.number }));
    }
}

/// Returns an item once for each number of its range; `None` if it has no range.
fn expanded(item: &str) -> Result<Option<Vec<String>>, ItemError> {
    let Some((before, rest)) = item.split_once('{') else { return Ok(None) };
    let range = || ItemError::Range(item.to_owned());
    let (bounds, behind) = rest.split_once('}').ok_or_else(range)?;
    let (from, to) = bounds.split_once('-').ok_or_else(range)?;
    let bound = |text: &str| text.parse::<u32>().map_err(|_| range());
    Ok(Some((bound(from)?..=bound(to)?).map(|number| format!("{before}{number}{behind}")).collect()))
}

/// Returns a word as it is, and without what is written onto it: an Arabic clitic, or a short word that lost its vowel ("l'arme").
/// The second value is true for the latter.
fn variants(word: &str) -> impl Iterator<Item = (&str, bool)> {
    let arabic = word.chars().next().is_some_and(|c| ('\u{600}'..='\u{6ff}').contains(&c));
    let bare = CLITICS.into_iter().filter(move |_| arabic).filter_map(|clitic| word.strip_prefix(clitic));
    let elided = word.strip_prefix("qu").or_else(|| word.strip_prefix(['j', 'l', 'd', 'm', 't', 's', 'n', 'c']));
    let elided = elided.filter(|rest| rest.starts_with(['a', 'e', 'i', 'o', 'u', 'y', 'h']));
    let shorter = bare.map(|bare| (bare, false)).chain(elided.map(|rest| (rest, true)));
    std::iter::once((word, false)).chain(shorter.filter(|(bare, _)| bare.chars().count() >= LEAST_LETTERS))
}

/// Returns true if the other words of an item stand behind the one at `at`.
fn follow(rest: &[Word], words: &[&str], at: usize) -> bool {
    let Some((next, rest)) = rest.split_first() else { return true };
    (at + 1..=at + 1 + next.leap)
        .any(|at| words.get(at).is_some_and(|word| next.matches(word)) && follow(rest, words, at))
}

fn follow_chars(rest: &[Word], behind: &str) -> bool {
    let Some((next, rest)) = rest.split_first() else { return true };
    let starts = behind.char_indices().map(|(at, _)| at).take(next.leap + 1);
    starts.filter_map(|at| behind.get(at..)?.strip_prefix(&*next.text)).any(|behind| follow_chars(rest, behind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(spacing: Spacing, item: &str, text: &str, want: bool) {
        let mut index = Index::new(spacing, 1 << 9);
        index.elide(0);
        index.add(item, 0, 1).unwrap();
        let mut marks = Vec::new();
        index.mark(&normalise(text), &mut marks);
        assert_eq!(marks.iter().any(|mark| mark.concepts == 1), want, "{item:?} in {text:?}: {marks:?}");
    }

    #[test]
    fn items_of_languages_with_blanks_match_words() {
        let check = |item, text, want| check(Spacing::Words, item, text, want);
        check("pill*", "All the PILLS", true);
        check("pill", "All the pills", false);
        check("*tabletten", "die Schlaftabletten", true);
        check("kill_myself", "I will kill myself", true);
        check("kill_myself", "I will kill fucking myself", true);
        check("kill_myself", "I will kill them and myself", false);
        check("kill+myself", "I will kill myself", true);
        check("kill+myself", "I will kill fucking myself", false);
        check("take~life", "take my own life", true);
        check("take~life", "take one two three four life", false);
        check("قتل*", "سأقتل وقتلت", true);
        check("moi-même", "Moi-même", true);
        check("arme", "j'ai pris l'arme", true);
        check("im_{8-17}", "I'm 13", true);
        check("im_{8-17}", "I'm 31", false);
    }

    #[test]
    fn items_of_scripts_without_blanks_match_characters() {
        let check = |item, text, want| check(Spacing::None, item, text, want);
        check("橋", "今 橋の上", true);
        check("薬~飲", "薬を全部飲んだ", true);
        check("薬~飲", "薬があるので明日からは飲んだ", false);
        check("死にたい", "死 にたい", true);
    }

    #[test]
    fn only_some_languages_elide() {
        let mut index = Index::new(Spacing::Words, 1 << 9);
        index.add("ate", 0, 1).unwrap();
        let mut marks = Vec::new();
        index.mark(" i am late ", &mut marks);
        assert!(marks.is_empty(), "{marks:?}");
    }

    #[test]
    fn amounts_are_numbers_and_years_are_not() {
        #[track_caller]
        fn check(spacing: Spacing, text: &str, want: bool) {
            let mut index = Index::new(spacing, 1);
            index.add("x", 0, 2).unwrap();
            let mut marks = Vec::new();
            index.mark(&normalise(text), &mut marks);
            assert_eq!(marks.iter().any(|mark| mark.concepts == 1), want, "{text:?}");
        }
        check(Spacing::Words, "60 of them", true);
        check(Spacing::Words, "since 2019", false);
        check(Spacing::None, "錠剤が60個", true);
        check(Spacing::None, "2019年", false);
    }
}
