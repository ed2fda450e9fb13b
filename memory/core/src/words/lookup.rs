//! The words of a question that a search looks up.

use super::languages::Languages;
use super::split::{Run, Script, runs};

/// The words of a question, as far as they are left when question words and grammar of scripts without spaces are cut
/// out. Words of scripts with spaces are complete.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct LookupWords {
    /// What the question is about, in its order.
    pub(crate) words: Vec<String>,
    /// Words that say little, such as "name".
    pub(crate) generic: Vec<String>,
}

/// Splits a text into words to look up.
pub(crate) fn lookup_words(text: &str) -> LookupWords {
    let languages = Languages::get();
    let mut found = LookupWords::default();
    for Run { script, text, .. } in runs(text) {
        match script {
            Script::Spaced => found.words.push(text),
            Script::Hangul => {
                let bare = without_particle(languages, &text);
                if languages.generic.contains(bare) || languages.generic.contains(&text) {
                    found.generic.push(bare.to_owned());
                } else if !languages.asks.contains(&text) && !languages.asks.contains(bare) {
                    found.words.push(bare.to_owned());
                }
            }
            _ => cut(languages, script, &text, &mut found),
        }
    }
    found
}

/// Returns the words of a text between spaces and other signs, each as it was written in lower case, and folded.
pub(crate) fn spaced_words(text: &str) -> impl Iterator<Item = (String, String)> {
    runs(text).into_iter().map(|run| (run.written.to_lowercase(), run.text))
}

/// Returns a Korean word without the longest of the known endings; a word of one syllable stays.
fn without_particle<'a>(languages: &Languages, word: &'a str) -> &'a str {
    let cut = languages.particles.iter().find_map(|ending| word.strip_suffix(ending.as_str()));
    cut.filter(|rest| !rest.is_empty()).unwrap_or(word)
}

/// Cuts the longest known question words and grammar out of a run without spaces, and keeps the pieces between them.
fn cut(languages: &Languages, script: Script, run: &str, found: &mut LookupWords) {
    let mut piece = String::new();
    let mut rest = run;
    while let Some(first) = rest.chars().next() {
        // One hiragana alone may be part of any word.
        let least = if script == Script::Hiragana { 2 } else { 1 };
        let longest = ends(rest).filter(|(count, _)| *count >= least).filter_map(|(_, end)| rest.split_at_checked(end));
        let known =
            longest.filter(|(word, _)| languages.asks.contains(*word) || languages.generic.contains(*word)).last();
        match known {
            Some((word, after)) => {
                keep(script, &mut piece, &mut found.words);
                if languages.generic.contains(word) {
                    found.generic.push(word.to_owned());
                }
                rest = after;
            }
            None => {
                piece.push(first);
                rest = rest.get(first.len_utf8()..).unwrap_or("");
            }
        }
    }
    keep(script, &mut piece, &mut found.words);
}

/// The characters of the longest known word.
const LONGEST: usize = 16;

/// Returns the ends of the first characters of a text, with how many characters lie before each.
fn ends(text: &str) -> impl Iterator<Item = (usize, usize)> + '_ {
    text.char_indices().take(LONGEST).enumerate().map(|(index, (at, c))| (index + 1, at + c.len_utf8()))
}

/// Keeps a piece as a word. One hiragana alone is a particle or an ending.
fn keep(script: Script, piece: &mut String, words: &mut Vec<String>) {
    let piece = std::mem::take(piece);
    if !piece.is_empty() && (script != Script::Hiragana || piece.chars().count() > 1) {
        words.push(piece);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn question_words_and_grammar_are_cut_out() {
        #[track_caller]
        fn check(text: &str, words: &[&str], generic: &[&str]) {
            let found = lookup_words(text);
            assert_eq!(
                (found.words, found.generic),
                (
                    words.iter().map(|it| (*it).to_owned()).collect(),
                    generic.iter().map(|it| (*it).to_owned()).collect()
                ),
                "{text}"
            );
        }
        check("犬の名前は何ですか？", &["犬"], &["名前"]);
        check("私の車は赤いですか", &["車", "赤"], &[]);
        check("你的狗叫什么名字？", &["狗"], &["叫", "名字"]);
        check("강아지 이름은 뭐예요?", &["강아지"], &["이름"]);
        check("강아지는 집에서 뭐 먹어?", &["강아지", "집", "먹어"], &[]);
        check("หมาของฉันชื่ออะไร", &["หมา"], &["ชื่อ"]);
        check("What did Zoë see in 2070?", &["what", "did", "zoe", "see", "in", "2070"], &[]);
    }
}
