//! The words that decide about a prompt.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use azera_affect::DangerLexicon;

const FILE: &str = include_str!("../rules/words.txt");

/// The lists of `rules/words.txt`.
pub(crate) struct Words {
    pub(crate) refused: WordList,
    pub(crate) sexual: WordList,
    pub(crate) minor: WordList,
    harmless: WordList,
}

/// A list of phrases.
#[derive(Default)]
pub(crate) struct WordList {
    /// Phrases by their first word; a phrase is the rest of its words.
    phrases: HashMap<String, Vec<Phrase>>,
    /// Beginnings of words that stand alone.
    beginnings: HashSet<String>,
    /// Phrases of scripts without blanks between words.
    unspaced: Vec<String>,
}

struct Phrase {
    rest: Vec<String>,
    /// Whether the last word may go on.
    is_open: bool,
}

static WORDS: LazyLock<Words> = LazyLock::new(|| Words::parse(FILE));

impl Words {
    pub(crate) fn builtin() -> &'static Self {
        &WORDS
    }

    fn parse(file: &str) -> Self {
        let mut lists: HashMap<&str, WordList> = HashMap::new();
        let mut name = "";
        for line in file.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
            match line.strip_prefix("= ") {
                Some(next) => name = next,
                None => lists.entry(name).or_default().add(line),
            }
        }
        let mut take = |name: &str| lists.remove(name).unwrap_or_default();
        Self { refused: take("refused"), sexual: take("sexual"), minor: take("minor"), harmless: take("harmless") }
    }

    /// Returns the words of a normalised text, without those of harmless phrases.
    pub(crate) fn meant<'a>(&self, text: &'a str) -> Vec<&'a str> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let (mut meant, mut at) = (Vec::with_capacity(words.len()), 0);
        while at < words.len() {
            match self.harmless.length_at(words.get(at..).unwrap_or_default()) {
                Some(length) => at += length,
                None => {
                    meant.push(words[at]);
                    at += 1;
                }
            }
        }
        meant
    }
}

impl WordList {
    fn add(&mut self, line: &str) {
        let (line, is_open) = line.strip_suffix('*').map_or((line, false), |line| (line, true));
        let line = DangerLexicon::normalised(line);
        let mut words = line.split_whitespace().map(str::to_owned);
        let Some(first) = words.next() else { return };
        let rest: Vec<String> = words.collect();
        if first.chars().any(is_unspaced) {
            self.unspaced.push(line.trim().to_owned());
        } else if rest.is_empty() && is_open {
            self.beginnings.insert(first);
        } else {
            self.phrases.entry(first).or_default().push(Phrase { rest, is_open });
        }
    }

    /// Returns true if a phrase of the list is among the words.
    pub(crate) fn is_in(&self, words: &[&str]) -> bool {
        (0..words.len()).any(|at| self.length_at(words.get(at..).unwrap_or_default()).is_some())
    }

    /// Returns how many words of a phrase stand at the beginning.
    fn length_at(&self, words: &[&str]) -> Option<usize> {
        let (first, behind) = words.split_first()?;
        let begins = |phrase: &&Phrase| {
            phrase.rest.len() <= behind.len()
                && phrase.rest.iter().zip(behind).enumerate().all(|(at, (wanted, word))| {
                    word == wanted || phrase.is_open && at + 1 == phrase.rest.len() && word.starts_with(wanted.as_str())
                })
        };
        let phrases = self.phrases.get(*first).into_iter().flatten();
        let longest = phrases.filter(begins).map(|phrase| phrase.rest.len() + 1).max();
        longest
            .or_else(|| {
                let begun = first.char_indices().skip(1).map(|(at, _)| at).chain([first.len()]);
                let mut begun = begun.filter_map(|at| first.get(..at));
                begun.any(|begin| self.beginnings.contains(begin)).then_some(1)
            })
            .or_else(|| {
                let is_unspaced = first.chars().any(is_unspaced);
                (is_unspaced && self.unspaced.iter().any(|phrase| first.contains(phrase.as_str()))).then_some(1)
            })
    }
}

/// Returns true for letters of scripts without blanks between words.
fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}')
}
