//! Splits a text into the words of the text index. Scripts without spaces have no words to split at, so their texts are
//! indexed by overlapping pairs of characters; a character with its marks counts as one. Chinese characters are indexed
//! one by one, too, because many are a word. Korean words carry endings, so that pairs of syllables find more than
//! whole words.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use super::fold::fold;

/// How the words of a script are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Script {
    /// Words stand between spaces.
    Spaced,
    /// Words stand between spaces and carry endings.
    Hangul,
    /// Chinese characters, also within Japanese.
    Han,
    Hiragana,
    Katakana,
    /// Thai, Lao, Khmer or Burmese.
    Southeast,
}

impl Script {
    fn of(c: char) -> Self {
        match u32::from(c) {
            0x3005 | 0x3007 | 0x3400..=0x4dbf | 0x4e00..=0x9fff | 0xf900..=0xfaff | 0x20000..=0x3ffff => Self::Han,
            0x3041..=0x309f => Self::Hiragana,
            0x30a1..=0x30ff | 0x31f0..=0x31ff | 0xff66..=0xff9f => Self::Katakana,
            0x1100..=0x11ff | 0x3130..=0x318f | 0xa960..=0xa97f | 0xac00..=0xd7ff | 0xffa0..=0xffdc => Self::Hangul,
            0x0e00..=0x0eff
            | 0x1000..=0x109f
            | 0x1780..=0x17ff
            | 0x19e0..=0x19ff
            | 0xa9e0..=0xa9ff
            | 0xaa60..=0xaa7f => Self::Southeast,
            _ => Self::Spaced,
        }
    }

    /// Returns true if words of this script stand without spaces between them.
    pub(super) fn is_unspaced(self) -> bool {
        !matches!(self, Self::Spaced | Self::Hangul)
    }
}

/// Letters of one script without anything between them, folded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) script: Script,
    pub(super) text: String,
    /// The same as it was written, in one normal form.
    pub(super) written: String,
}

/// Returns the runs of letters and digits in a text.
pub(super) fn runs(text: &str) -> Vec<Run> {
    let mut runs: Vec<(Script, String)> = Vec::new();
    let mut continues = false;
    for c in text.nfc() {
        let inside = c.is_alphanumeric() || continues && (is_combining_mark(c) || is_joiner(c));
        if !inside {
            continues = false;
            continue;
        }
        // Marks, joiners and the sign for a long vowel belong to whatever stands before them.
        let clings = continues && (is_combining_mark(c) || is_joiner(c) || c == 'ー');
        match runs.last_mut().filter(|(script, _)| continues && (clings || *script == Script::of(c))) {
            Some((_, run)) => run.push(c),
            None => runs.push((Script::of(c), c.to_string())),
        }
        continues = true;
    }
    let folded = |(script, written): (Script, String)| Run { script, text: fold(&written), written };
    runs.into_iter().map(folded).filter(|run| !run.text.is_empty()).collect()
}

/// Returns true for the invisible signs that join or separate letters within a word.
fn is_joiner(c: char) -> bool {
    matches!(c, '\u{200c}' | '\u{200d}')
}

/// Returns the words of a text under which it is found.
pub fn document_words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    for Run { script, text, .. } in runs(text) {
        match script {
            Script::Spaced => words.push(text),
            Script::Hangul => {
                let characters = characters(&text);
                // The first syllable alone: a word of one syllable before its ending.
                words.extend(characters.first().map(|first| (*first).to_owned()));
                words.extend(pairs(&characters));
            }
            Script::Han => {
                let characters = characters(&text);
                words.extend(characters.iter().map(|one| (*one).to_owned()));
                words.extend(pairs(&characters));
            }
            Script::Hiragana | Script::Katakana | Script::Southeast => {
                let characters = characters(&text);
                if script == Script::Southeast && characters.len() > 1 {
                    // A consonant with its marks is a syllable, and often a word.
                    let syllables = characters.iter().filter(|character| character.chars().count() > 1);
                    words.extend(syllables.map(|syllable| (*syllable).to_owned()));
                }
                match characters.as_slice() {
                    [_] => words.push(text),
                    several => words.extend(pairs(several)),
                }
            }
        }
    }
    words
}

/// Returns the words of a search as [`document_words`] has them.
pub fn query_words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    for Run { script, text, .. } in runs(text) {
        let characters = characters(&text);
        match (script, characters.as_slice()) {
            (Script::Spaced, _) | (_, [_]) => words.push(text),
            (_, several) => words.extend(pairs(several)),
        }
    }
    words
}

/// Returns true for a word of a script without spaces between words, or a pair of its characters, that is more than
/// grammar: all but hiragana alone.
pub fn carries_meaning(word: &str) -> bool {
    runs(word).iter().any(|run| !matches!(run.script, Script::Spaced | Script::Hiragana))
}

/// Returns true if two texts are written alike: both with Japanese syllables, or both in the same other script. Chinese
/// characters alone are Chinese, and beside Japanese syllables they are Japanese.
pub(crate) fn is_written_alike(one: &str, other: &str) -> bool {
    writing(one) == writing(other)
}

/// Returns the script that tells the language of a text best, or `None` for a text without letters.
fn writing(text: &str) -> Option<Script> {
    let rank = |script: &Script| match script {
        Script::Spaced => 0,
        Script::Han => 1,
        Script::Southeast | Script::Hangul => 2,
        Script::Katakana | Script::Hiragana => 3,
    };
    let best = runs(text).into_iter().map(|run| run.script).max_by_key(rank);
    best.map(|script| if script == Script::Katakana { Script::Hiragana } else { script })
}

/// Returns the characters of a text, each with its marks.
pub(super) fn characters(text: &str) -> Vec<&str> {
    let starts: Vec<usize> = text
        .char_indices()
        .filter(|(at, c)| *at == 0 || !is_combining_mark(*c) && !is_joiner(*c))
        .map(|(at, _)| at)
        .collect();
    let ends = starts.iter().skip(1).copied().chain([text.len()]);
    starts.iter().zip(ends).filter_map(|(start, end)| text.get(*start..end)).collect()
}

fn pairs<'a>(characters: &'a [&'a str]) -> impl Iterator<Item = String> + 'a {
    characters.windows(2).map(<[&str]>::concat)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_split_into_words_and_pairs() {
        #[track_caller]
        fn check(text: &str, want: &[&str]) {
            assert_eq!(document_words(text), want, "{text:?}");
        }
        check("Don't e-mail me №7731!", &["don", "t", "e", "mail", "me", "7731"]);
        check("Zoe\u{308} und Zo\u{eb}", &["zoe", "und", "zoe"]);
        check("नमस्ते दुनिया", &["नमस्ते", "दुनिया"]);
        check("うちの猫", &["うち", "ちの", "猫"]);
        check("ラーメン屋", &["ラー", "ーメ", "メン", "屋"]);
        check("我的猫", &["我", "的", "猫", "我的", "的猫"]);
        check("고양이는 집에", &["고", "고양", "양이", "이는", "집", "집에"]);
        check("กินข้าว", &["กิ", "ข้", "กิน", "นข้", "ข้า", "าว"]);
        check("10分 iPhone15を", &["10", "分", "iphone15", "を"]);
        check("🙂 \u{202e}abc\0def", &["abc", "def"]);
        check("", &[]);
    }

    #[test]
    fn a_text_has_one_way_of_writing() {
        assert!(is_written_alike("うちの猫です", "ラーメン"));
        assert!(is_written_alike("我的猫", "iPhone 是我的"));
        assert!(!is_written_alike("うちの猫です", "我的猫"));
        assert!(!is_written_alike("고양이", "the cat"));
    }

    #[test]
    fn every_word_of_a_search_is_a_word_of_the_same_text() {
        for text in
            ["うちの猫の名前はミソです。", "我家的猫叫团子", "고양이 이름은 나비", "แมวชื่อมะลิ", "ឆ្មា ဝက်", "Zoë 2070"]
        {
            let words = document_words(text);
            assert!(query_words(text).iter().all(|word| words.contains(word)), "{text}");
        }
        assert_eq!(query_words("猫"), ["猫"]);
        assert_eq!(query_words("我家"), ["我家"]);
    }
}
