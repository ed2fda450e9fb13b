//! Names themes by the words that people use in them and not in others.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::LazyLock;

use crate::recall::is_filler;
use crate::words::{carries_meaning, has_number, is_function_word, lookup_words, spaced_words};

/// Words of a name.
const MAX_WORDS: usize = 3;

/// Fewest and most characters of a word in a name.
const MIN_CHARS: usize = 3;
const MAX_CHARS: usize = 24;

/// Letters at the beginning by which two words count as forms of one.
const STEM: usize = 4;

/// Words that stand in conversations about anything, beside those that questions and grammar have.
const EVERYWHERE: &str = "actually again ago almost already always amazing another anything appreciate awesome back bad been before \
    best better big bit come coming cool could day days definitely did didn does doesn doing don done down even \
    ever every everyone everything excited feel feeling feels few first forward from fun get gets getting give \
    glad goes going gonna good got great had haha happy hard has have having hear hello help hey hope how into \
    isn just keep kind know last let life like little lol long look looking looks lot lots love made make makes \
    making many maybe mean more most much myself need never new next nice not nothing now off oh okay one only \
    other out over own people pretty probably put quite read really right said same say see seems seen should \
    since some someone something soon sorry sounds special still stuff such super sure take talk tell than thank \
    thanks that the them then there these they thing things think this those though thought three time times \
    today together told tomorrow tonight too took totally try trying two use used very wait want wanted was wasn \
    way week weekend weeks well went were what when where which while who why will wish with without won wonder \
    wonderful work works would wow yeah year years yep yes yesterday yet you your";

static EVERYWHERE_SET: LazyLock<HashSet<&str>> = LazyLock::new(|| EVERYWHERE.split_whitespace().collect());

/// The words of a theme: in how many of its texts each stands, and how it is written most often.
#[derive(Debug, Default)]
pub(super) struct Words {
    texts: usize,
    counts: HashMap<String, BTreeMap<String, usize>>,
}

impl Words {
    pub(super) fn add(&mut self, text: &str) {
        self.texts += 1;
        for (folded, written) in telling(text) {
            *self.counts.entry(folded).or_default().entry(written).or_default() += 1;
        }
    }

    fn count(&self, word: &str) -> usize {
        self.counts.get(word).map_or(0, |written| written.values().sum())
    }

    /// Returns the words that stand in many texts of this theme and in few of the others, the most telling first.
    pub(super) fn name<'a>(&self, others: impl Iterator<Item = &'a Words> + Clone) -> Vec<String> {
        let all: usize = others.clone().map(|other| other.texts).sum::<usize>() + self.texts;
        let fewest = if self.texts >= 3 { 2 } else { 1 };
        let score = |word: &str| {
            let here = self.count(word);
            let elsewhere: usize = others.clone().map(|other| other.count(word)).sum();
            let rarity = (1.0 + all as f32 / (1.0 + (here + elsewhere) as f32)).ln();
            here as f32 * rarity
        };
        let mut scored: Vec<(f32, &String)> =
            self.counts.keys().filter(|word| self.count(word) >= fewest).map(|word| (score(word), word)).collect();
        scored.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
        let mut chosen: Vec<&String> = Vec::new();
        for (_, word) in scored {
            if chosen.len() < MAX_WORDS && chosen.iter().all(|other| !is_form(other, word)) {
                chosen.push(word);
            }
        }
        chosen.into_iter().map(|word| self.written(word)).collect()
    }

    fn written(&self, word: &str) -> String {
        let written = self.counts.get(word).into_iter().flatten();
        written.max_by_key(|(_, count)| **count).map_or_else(|| word.to_owned(), |(written, _)| written.clone())
    }
}

/// Returns the words of a text that may name its matter, each once: folded, and as it is written.
fn telling(text: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for (written, folded) in spaced_words(text) {
        if carries_meaning(&written) {
            // Without spaces, the pieces between grammar are the best there is.
            found.extend(lookup_words(&written).words.into_iter().map(|piece| (piece.clone(), piece)));
        } else {
            found.insert(folded, written);
        }
    }
    found.retain(|folded, _| {
        let chars = folded.chars().count();
        let fits = if carries_meaning(folded) { chars <= MAX_CHARS } else { (MIN_CHARS..=MAX_CHARS).contains(&chars) };
        fits && !EVERYWHERE_SET.contains(folded.as_str())
            && !is_filler(folded)
            && !is_function_word(folded)
            && !has_number(folded)
    });
    found
}

/// Returns true if two words begin alike, as forms of one word do.
fn is_form(one: &str, other: &str) -> bool {
    let common = one.chars().zip(other.chars()).take_while(|(a, b)| a == b).count();
    let longest = one.chars().count().max(other.chars().count());
    common >= STEM && common + 3 >= longest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(texts: &[&str]) -> Words {
        let mut words = Words::default();
        texts.iter().for_each(|text| words.add(text));
        words
    }

    #[test]
    fn a_theme_is_named_by_words_that_others_do_not_have() {
        let boats =
            words(&["we sail the boat at dawn", "Ann's boat needs a new mast", "the mast of our boat broke at dawn"]);
        let soup = words(&["the soup at dawn was good", "we had soup", "more soup at dawn"]);
        assert_eq!(boats.name([&soup].into_iter())[..2], ["boat", "mast"]);
        assert_eq!(soup.name([&boats].into_iter())[0], "soup");
    }

    #[test]
    fn a_name_has_each_word_in_one_form_as_people_write_it() {
        let found = words(&["Zoë paints a painting", "the painting by Zoë", "Zoë painted"]).name(std::iter::empty());
        assert_eq!(found, ["zoë", "painting"]);
        assert!(words(&["we went there", "and then some"]).name(std::iter::empty()).is_empty());
    }

    #[test]
    fn scripts_without_spaces_have_names_too() {
        let found = words(&["私の犬は元気です", "犬と散歩した"]).name(std::iter::empty());
        assert!(found.iter().any(|word| word == "犬"), "{found:?}");
    }
}
