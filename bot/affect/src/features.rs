//! The features of a sentence besides its embedding: words, pairs of words, and letter n-grams within words. An
//! embedding captures the topic of a sentence well, and its tone much less.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

/// The most characters of a text that are read.
const MAX_CHARS: usize = 2_000;

/// The least number of sentences that must contain a word or pair.
const MIN_WORD_SENTENCES: usize = 2;

/// The least number of sentences that must contain a letter n-gram.
const MIN_LETTER_SENTENCES: usize = 3;

/// The lengths of letter n-grams.
const LETTERS: std::ops::RangeInclusive<usize> = 2..=4;

/// Feature numbers with their values.
pub(crate) type Sparse = Vec<(u32, f32)>;

/// The known words and letter n-grams, each with its number and its rarity.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(crate) struct Vocabulary {
    words: HashMap<String, (u32, f32)>,
    letters: HashMap<String, (u32, f32)>,
}

impl Vocabulary {
    pub(crate) fn of<'a>(texts: impl Iterator<Item = &'a str> + Clone) -> Self {
        let mut next = 0;
        let words = counted(texts.clone().map(words), MIN_WORD_SENTENCES, &mut next);
        let letters = counted(texts.map(letters), MIN_LETTER_SENTENCES, &mut next);
        Self { words, letters }
    }

    pub(crate) fn len(&self) -> usize {
        self.words.len() + self.letters.len()
    }

    /// Returns true if every feature number is below [`Vocabulary::len`].
    pub(crate) fn is_numbered(&self) -> bool {
        let mut numbers = self.words.values().chain(self.letters.values());
        numbers.all(|(number, _)| usize::try_from(*number).is_ok_and(|number| number < self.len()))
    }

    /// Returns the features of a text. The vector of each kind has length 1.
    pub(crate) fn features(&self, text: &str) -> Sparse {
        let mut features = weighed(&self.words, words(text));
        features.extend(weighed(&self.letters, letters(text)));
        features
    }
}

/// Numbers the features that occur in at least `least` sentences. The weight is the smoothed inverse document
/// frequency: `ln((1 + sentences) / (1 + sentences with the feature)) + 1`.
fn counted(sentences: impl Iterator<Item = Vec<String>>, least: usize, next: &mut u32) -> HashMap<String, (u32, f32)> {
    let mut holding: BTreeMap<String, usize> = BTreeMap::new();
    let mut all = 0;
    for mut sentence in sentences {
        all += 1;
        sentence.sort_unstable();
        sentence.dedup();
        for word in sentence {
            *holding.entry(word).or_default() += 1;
        }
    }
    let mut numbered = HashMap::new();
    for (word, holding) in holding.into_iter().filter(|(_, holding)| *holding >= least) {
        let rarity = ((1 + all) as f32 / (1 + holding) as f32).ln() + 1.0;
        numbered.insert(word, (*next, rarity));
        *next += 1;
    }
    numbered
}

/// Returns sublinear term frequency times rarity, normalized to length 1.
fn weighed(known: &HashMap<String, (u32, f32)>, words: Vec<String>) -> Sparse {
    let mut times: BTreeMap<u32, (f32, f32)> = BTreeMap::new();
    for word in words {
        if let Some((number, rarity)) = known.get(&word) {
            times.entry(*number).or_insert((0.0, *rarity)).0 += 1.0;
        }
    }
    let mut features: Sparse =
        times.into_iter().map(|(number, (times, rarity))| (number, (1.0 + times.ln()) * rarity)).collect();
    let length = features.iter().map(|(_, value)| value * value).sum::<f32>().sqrt();
    if length > 0.0 {
        features.iter_mut().for_each(|(_, value)| *value /= length);
    }
    features
}

/// Returns the words, the runs of `?` and `!`, and the other marks, then each pair of neighbours.
fn words(text: &str) -> Vec<String> {
    let mut single: Vec<String> = Vec::new();
    let mut kind = ' ';
    for c in text.chars().take(MAX_CHARS).flat_map(char::to_lowercase) {
        let own = match c {
            c if c.is_whitespace() => ' ',
            c if c.is_alphanumeric() || c == '_' => 'a',
            '?' | '!' => '!',
            _ => '.',
        };
        match single.last_mut() {
            Some(last) if own == kind && matches!(own, 'a' | '!') => last.push(c),
            _ if own != ' ' => single.push(c.into()),
            _ => {}
        }
        kind = own;
    }
    let pairs: Vec<String> = single.windows(2).map(|pair| pair.join(" ")).collect();
    single.extend(pairs);
    single
}

/// Returns the letter n-grams of each word, with a blank before and after the word.
fn letters(text: &str) -> Vec<String> {
    let mut runs = Vec::new();
    let text: String = text.chars().take(MAX_CHARS).flat_map(char::to_lowercase).collect();
    for word in text.split_whitespace() {
        let padded: Vec<char> = std::iter::once(' ').chain(word.chars()).chain([' ']).collect();
        for length in LETTERS {
            if padded.len() <= length {
                runs.push(padded.iter().collect());
                break;
            }
            runs.extend(padded.windows(length).map(|run| run.iter().collect::<String>()));
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_is_split_into_words_marks_and_pairs() {
        assert_eq!(
            words("Oh no, really?!"),
            ["oh", "no", ",", "really", "?!", "oh no", "no ,", ", really", "really ?!"]
        );
        assert_eq!(words(""), [""; 0]);
        assert_eq!(words("🦊🦊"), ["🦊", "🦊", "🦊 🦊"]);
    }

    #[test]
    fn letter_ngrams_stay_within_words() {
        assert_eq!(letters("ab c"), [" a", "ab", "b ", " ab", "ab ", " ab ", " c", "c ", " c "]);
    }

    #[test]
    fn features_of_each_kind_have_length_one() {
        let texts = ["the tide is high", "the tide is low", "the tide turns"];
        let vocabulary = Vocabulary::of(texts.into_iter());
        let length = |features: Sparse| features.iter().map(|(_, value)| value * value).sum::<f32>();
        assert!((length(vocabulary.features("the tide is here")) - 2.0).abs() < 1e-5);
        assert_eq!(vocabulary.features("ÖÄÜ"), []);
        let numbers = vocabulary.features(texts[0]).into_iter().map(|(number, _)| number as usize);
        assert!(numbers.max().unwrap() < vocabulary.len());
    }
}
