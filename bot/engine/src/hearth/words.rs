//! Splits texts into comparable pieces, also in scripts without spaces between words.

use std::collections::HashSet;

/// A whole word, in quarters.
const WORD: usize = 4;

/// A word, or a letter of a script without spaces between words.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Piece {
    text: String,
    /// How much of a word it is, in quarters.
    quarters: usize,
}

/// A text as its pieces, in lower case, without punctuation and whitespace.
#[derive(Debug)]
pub(super) struct Words(Vec<Piece>);

impl Words {
    pub(super) fn of(text: &str) -> Self {
        let mut pieces = Vec::new();
        for word in text.split(|c: char| !c.is_alphanumeric()) {
            let mut begun = String::new();
            for c in word.chars() {
                match quarters(c) {
                    None => begun.extend(c.to_lowercase()),
                    Some(quarters) => {
                        finish(&mut begun, &mut pieces);
                        pieces.push(Piece { text: c.into(), quarters });
                    }
                }
            }
            finish(&mut begun, &mut pieces);
        }
        Self(pieces)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the approximate number of words.
    pub(super) fn len(&self) -> usize {
        self.0.iter().map(|piece| piece.quarters).sum::<usize>() / WORD
    }

    /// Returns the share of words that differ from each other, in percent. In a script without spaces, a word begins at
    /// every letter.
    pub(super) fn different(&self) -> usize {
        let words: Vec<&[Piece]> = (0..self.0.len()).filter_map(|first| run_from(&self.0[first..], 1)).collect();
        let different: HashSet<&[Piece]> = words.iter().copied().collect();
        (different.len() * 100).checked_div(words.len()).unwrap_or(100)
    }

    /// Returns true if `self` shares `run` consecutive words with `other` that do not occur in `but`.
    pub(super) fn shares_run(&self, run: usize, other: &Self, but: &Self) -> bool {
        (0..self.0.len()).filter_map(|first| run_from(&self.0[first..], run)).any(|run| other.has(run) && !but.has(run))
    }

    fn has(&self, run: &[Piece]) -> bool {
        self.0.windows(run.len()).any(|other| other == run)
    }
}

/// Returns the first pieces that make up this many words.
fn run_from(pieces: &[Piece], words: usize) -> Option<&[Piece]> {
    let mut quarters = 0;
    let last = pieces.iter().position(|piece| {
        quarters += piece.quarters;
        quarters >= words * WORD
    })?;
    pieces.get(..=last)
}

fn finish(begun: &mut String, pieces: &mut Vec<Piece>) {
    if !begun.is_empty() {
        pieces.push(Piece { text: std::mem::take(begun), quarters: WORD });
    }
}

/// Returns how much of a word a letter is, in quarters, in scripts without spaces; `None` in others. Chinese and
/// Japanese words have about two letters; Thai, Lao, Burmese and Khmer words about four.
fn quarters(c: char) -> Option<usize> {
    match c {
        '\u{3005}'..='\u{3007}'
        | '\u{3040}'..='\u{30ff}'
        | '\u{3400}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{9fff}'
        | '\u{f900}'..='\u{faff}'
        | '\u{ff66}'..='\u{ff9f}'
        | '\u{20000}'..='\u{3ffff}' => Some(2),
        '\u{0e00}'..='\u{0eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}' => Some(1),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_counted_in_any_script() {
        #[track_caller]
        fn check(text: &str, words: usize, different: usize) {
            let of = Words::of(text);
            assert_eq!((of.len(), of.different()), (words, different), "{text}");
        }
        check("", 0, 100);
        check("Tea, tea and more tea!", 5, 60);
        check("我昨天去了公园", 3, 100);
        check("公园公园公园", 3, 40);
        check("GPU很热", 2, 100);
        check("人々", 1, 100);
        check("ｱｲｱｲ", 2, 66);
    }

    #[test]
    fn a_loop_has_few_different_words_in_any_script() {
        for phrase in [
            "我昨天去了公园",
            "我在这里陪你",
            "ยายของฉันเลี้ยงห่านสีเทา",
            "I am here for you",
            "おばあさんは川の近くに住んでいます",
        ] {
            let once = Words::of(phrase).different();
            let again = Words::of(&format!("{phrase}。").repeat(6)).different();
            assert!(once >= 90 && again < 35, "{phrase}: {once}, then {again}");
        }
    }

    #[test]
    fn a_run_in_common_is_found_wherever_it_begins() {
        let shares = |said: &str, learned: &str, question: &str| {
            Words::of(said).shares_run(8, &Words::of(learned), &Words::of(question))
        };
        let learned = "我奶奶在河边的老磨坊后面养了十一只灰鹅，每天早上都要喂它们";
        assert!(shares("你的奶奶在河边的老磨坊后面养了十一只灰鹅呢", learned, "你好"));
        assert!(!shares("你的奶奶在河边的老磨坊后面养了十一只灰鹅呢", learned, learned), "whoever asked said it");
        assert!(!shares("我喜欢灰鹅，它们很可爱，你呢？", learned, "你好"));
        let learned = "ยายของฉันเลี้ยงห่านสีเทาสิบเอ็ดตัวอยู่หลังโรงสีเก่าริมแม่น้ำ";
        assert!(shares("อ๋อ ยายของคุณเลี้ยงห่านสีเทาสิบเอ็ดตัวอยู่หลังโรงสีเก่า", learned, "สวัสดี"));
        assert!(!shares("ฉันชอบห่านสีเทา", learned, "สวัสดี"));
        assert!(shares(
            "one two three four five six seven eight",
            "Two three four, five six seven eight nine. One two three four five six seven eight",
            ""
        ));
    }
}
