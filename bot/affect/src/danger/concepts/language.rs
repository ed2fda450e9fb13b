//! Which languages a message may be in.
//!
//! Words are matched without accents, so a word of one language often looks like one of another: Vietnamese "cán" (to run over) is
//! English "can". Only the languages whose commonest words stand in a message tell something of it.

use std::collections::HashSet;

use super::super::normal::normalise;

/// The commonest words of each language; none for a language that its script gives away.
#[derive(Debug, Default)]
pub(super) struct CommonWords(Vec<HashSet<String>>);

impl CommonWords {
    /// Adds the next language. The words are separated by blanks.
    pub(super) fn add(&mut self, words: &str) {
        self.0.push(words.split_whitespace().map(|word| normalise(word).trim().to_owned()).collect());
    }

    /// Returns for each language whether a message may be in it: it has two fifths of the common words that the likeliest language has.
    /// So related languages help each other, two may share a message, and a short message may be in any.
    pub(super) fn likely(&self, sentences: &[String]) -> Vec<bool> {
        self.with(sentences, |count, most| 5 * count + 2 >= 2 * most)
    }

    /// Returns for each language whether no other has more common words in a message.
    pub(super) fn likeliest(&self, sentences: &[String]) -> Vec<bool> {
        self.with(sentences, |count, most| count == most)
    }

    fn with(&self, sentences: &[String], passes: impl Fn(usize, usize) -> bool) -> Vec<bool> {
        let count = |common: &HashSet<String>| {
            sentences
                .iter()
                .flat_map(|sentence| sentence.split_whitespace())
                .filter(|word| common.contains(*word))
                .count()
        };
        let counts: Vec<usize> = self.0.iter().map(count).collect();
        let most = counts.iter().copied().max().unwrap_or_default();
        self.0.iter().zip(counts).map(|(common, count)| common.is_empty() || passes(count, most)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_language_without_its_common_words_in_a_message_is_unlikely() {
        let mut common = CommonWords::default();
        common.add("can you me with the my");
        common.add("tôi bạn của và không");
        common.add("");
        let likely = |text: &str| common.likely(&[normalise(text)]);
        assert_eq!(likely("Can you help me with my homework?"), [true, false, true]);
        assert_eq!(likely("Tôi không biết bạn của tôi"), [false, true, true]);
        assert_eq!(likely("can pin"), [true, true, true]);
        assert_eq!(common.likeliest(&[normalise("can pin")]), [true, false, true]);
    }
}
