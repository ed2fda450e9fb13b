//! How words are pronounced: by misaki's lexicon and, for words that are not in it, by rules of our own.

mod letters;
mod scripts;
mod symbols;

use misaki_rs::{G2P, Language, MToken};

/// Words before which a speaker may pause.
const CONJUNCTIONS: &[&str] =
    &["and", "but", "or", "because", "so", "while", "when", "where", "which", "who", "that", "until", "although", "if"];

/// One word or mark of a sentence.
#[derive(Debug, Clone, PartialEq)]
pub struct Word {
    /// Phonemes; a mark stands for itself. Several words for a number or a spelled word.
    pub phonemes: String,
    /// True if a space follows.
    pub is_followed_by_space: bool,
    /// True for a word that begins a clause.
    pub is_conjunction: bool,
}

/// The accent of an English voice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accent {
    /// American English.
    American,
    /// British English.
    British,
}

/// The symbols of phonemes that a voice knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Symbols {
    /// Those of espeak-ng, which Piper's voices know. They are for the American accent.
    Espeak,
    /// Those of misaki, which Kokoro's voices know.
    Misaki,
}

/// Finds the phonemes of English.
pub struct Pronouncer {
    g2p: G2P,
    accent: Accent,
}

impl Pronouncer {
    /// Loads the lexicon of an accent: a quarter of a second, and 100 MB of memory.
    pub fn new(accent: Accent) -> Self {
        let language = match accent {
            Accent::American => Language::EnglishUS,
            Accent::British => Language::EnglishGB,
        };
        Self { g2p: G2P::with_fallback(language, None), accent }
    }

    /// Returns the words and marks of a sentence.
    pub fn words(&self, sentence: &str, symbols: Symbols) -> Vec<Word> {
        let plain: String = sentence.chars().map(plain).collect();
        // misaki fails only through a fallback of its own, and it has none.
        let tokens = self.g2p.g2p(&plain).map(|(_, tokens)| tokens).unwrap_or_default();
        tokens.iter().map(|token| self.word(token, symbols)).collect()
    }

    fn word(&self, token: &MToken, symbols: Symbols) -> Word {
        let known = token.phonemes.as_deref().filter(|phonemes| !phonemes.contains(self.g2p.unk.as_str()));
        // A word that is known as silent has letters or digits that the lexicon dropped.
        let known = known.filter(|phonemes| !phonemes.trim().is_empty() || !is_spoken(token));
        let phonemes = match known {
            Some(phonemes) => phonemes.to_owned(),
            None => self.unknown(&token.text),
        };
        Word {
            phonemes: match symbols {
                Symbols::Espeak => symbols::to_espeak(phonemes.trim()),
                Symbols::Misaki => symbols::to_kokoro(phonemes.trim()),
            },
            is_followed_by_space: !token.whitespace.is_empty(),
            is_conjunction: CONJUNCTIONS.contains(&token.text.to_lowercase().as_str()),
        }
    }

    /// Returns the phonemes of a word that is not in the lexicon. The rules for them are American.
    fn unknown(&self, word: &str) -> String {
        match self.accent {
            Accent::American => letters::pronounce(word, &|word| self.lexicon(word)),
            // Parts of the word that are in the lexicon are British already, and stay so.
            Accent::British => symbols::to_british(&letters::pronounce(word, &|word| self.lexicon(word))),
        }
    }

    /// Returns the phonemes of a word that stands in the lexicon.
    fn lexicon(&self, word: &str) -> Option<String> {
        let lexicon = &self.g2p.lexicon;
        if !lexicon.in_gold(word) && !lexicon.silvers.contains_key(word) {
            return None;
        }
        lexicon.get_word(word, "NN", None, None).map(|(phonemes, _)| phonemes)
    }
}

/// Returns true if a token is more than marks and symbols.
fn is_spoken(token: &MToken) -> bool {
    token.text.chars().any(|c| c.is_alphabetic())
}

/// Replaces what misaki takes for markup, and control characters.
fn plain(c: char) -> char {
    match c {
        '[' | ']' | '{' | '}' | '<' | '>' | '|' | '\\' | '`' | '❓' => ' ',
        c if c.is_control() => ' ',
        c => c,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use super::*;

    static PRONOUNCER: LazyLock<Pronouncer> = LazyLock::new(|| Pronouncer::new(Accent::American));

    fn phonemes(sentence: &str) -> String {
        let words = PRONOUNCER.words(sentence, Symbols::Espeak);
        words.iter().map(|word| word.phonemes.clone() + if word.is_followed_by_space { " " } else { "" }).collect()
    }

    #[test]
    fn a_sentence_keeps_its_marks() {
        assert_eq!(phonemes("Hello, world!"), "həlˈoʊ, wˈɜːld!");
        assert_eq!(phonemes("Is it late?"), "ˌɪz ɪt lˈeɪt?");
        assert_eq!(phonemes("Wait — no; fine: yes."), "wˈeɪt , nˈoʊ; fˈaɪn: jˈɛs.");
    }

    #[test]
    fn a_word_is_read_by_its_place_in_the_sentence() {
        let text = phonemes("Please read the report I read yesterday.");
        assert!(text.contains("ɹˈiːd") && text.contains("ɹˈɛd"), "{text}");
    }

    #[test]
    fn every_word_is_heard() {
        for word in
            ["Azera", "qzxwv", "kubectl", "Kovalenko", "x7k9", "naïveté", "Łódź", "Привет", "γνώση", "你好", "PGP"]
        {
            let found = phonemes(word);
            assert!(found.chars().any(char::is_alphabetic), "{word}: {found:?}");
            assert!(!found.contains('❓'), "{word}: {found:?}");
        }
    }

    #[test]
    fn odd_input_is_pronounced_or_silent() {
        for text in [
            "",
            " ",
            "...",
            "!?!?",
            "🙂🙂",
            "\u{0}\u{1}",
            "[a](/b/)",
            "[",
            "](",
            "-",
            "'",
            "''''",
            "’s",
            "--- - --",
            "$",
            "$ $5 5$ 1,2,3 1.2.3 -4 1e9 99999999999999999999999999",
            "a\u{301}\u{302}\u{303}",
            "\u{200d}\u{fe0f}",
            "١٢٣ ४५६",
            "ǅ ﬁ Ⅷ ½",
            "a-b-c-d-e_f_g",
            "http://x.y/z?q=1&r=2",
            "can't won't y'all o'clock",
            "\u{202e}abc",
            "ﷺ",
        ] {
            let words = PRONOUNCER.words(text, Symbols::Espeak);
            assert!(words.iter().all(|word| !word.phonemes.contains('❓')), "{text:?}: {words:?}");
        }
    }

    #[test]
    fn a_british_voice_says_words_as_the_british_do() {
        let british = Pronouncer::new(Accent::British);
        let said = |pronouncer: &Pronouncer, text: &str| -> String {
            pronouncer.words(text, Symbols::Misaki).into_iter().map(|word| word.phonemes).collect()
        };
        assert_eq!((said(&british, "hot"), said(&PRONOUNCER, "hot")), ("hˈɒt".to_owned(), "hˈɑt".to_owned()));
        assert_eq!((said(&british, "Zorb"), said(&PRONOUNCER, "Zorb")), ("zˈɔːb".to_owned(), "zˈɔɹb".to_owned()));
    }
}
