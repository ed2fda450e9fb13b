//! Cuts a sentence where a speaker would pause, so that its sound can be handed over while the rest is made.

use crate::pronounce::Word;

/// Phoneme symbols of the first piece from which it may end. Short, so that the first sound comes soon.
const FIRST: usize = 25;
/// Phoneme symbols from which another piece may end at a clause border.
const CLAUSE: usize = 80;
/// Phoneme symbols from which a piece may end before a word such as "and".
const JOINED: usize = 130;
/// The most phoneme symbols in a piece: about 15 seconds.
const MOST: usize = 200;
/// The fewest phoneme symbols that may be left for the last piece.
const REST: usize = 20;

/// Returns the phonemes of a sentence in pieces. The last one ends with a mark, as a sentence does.
pub fn pieces(words: &[Word]) -> Vec<String> {
    let mut left: usize = words.iter().map(symbols).sum();
    let mut done = Vec::new();
    let mut piece = Piece::default();
    for (index, word) in words.iter().enumerate() {
        left -= symbols(word);
        for symbol in word.phonemes.chars() {
            piece.push(symbol);
            if piece.symbols >= MOST {
                done.extend(piece.take());
            }
        }
        if word.is_followed_by_space {
            piece.push(' ');
        }
        let is_joined = words.get(index + 1).is_some_and(|next| next.is_conjunction);
        let shortest = if done.is_empty() { FIRST } else { CLAUSE };
        let may_end =
            if ends_clause(&word.phonemes) { piece.symbols >= shortest } else { is_joined && piece.symbols >= JOINED };
        if may_end && left >= REST {
            done.extend(piece.take());
        }
    }
    if !piece.text.trim_end().ends_with(is_mark) {
        piece.text.truncate(piece.text.trim_end().len());
        piece.push('.');
    }
    done.extend(piece.take());
    done
}

#[derive(Default)]
struct Piece {
    text: String,
    symbols: usize,
}

impl Piece {
    fn push(&mut self, symbol: char) {
        // Marks in a row and spaces in a row would be pauses without end.
        let last = self.text.trim_end().chars().next_back();
        let repeats = match symbol {
            ' ' => self.text.is_empty() || self.text.ends_with(' '),
            symbol if is_mark(symbol) => last.is_none_or(is_mark),
            _ => false,
        };
        if !repeats {
            self.text.push(symbol);
            self.symbols += 1;
        }
    }

    /// Returns the piece and begins another one; `None` if there is nothing to say.
    fn take(&mut self) -> Option<String> {
        let piece = std::mem::take(self).text;
        let piece = piece.trim();
        piece.chars().any(char::is_alphabetic).then(|| piece.to_owned())
    }
}

fn symbols(word: &Word) -> usize {
    word.phonemes.chars().count() + usize::from(word.is_followed_by_space)
}

/// Returns true for a mark that the voice knows as a pause.
pub fn is_mark(symbol: char) -> bool {
    matches!(symbol, '.' | ',' | ';' | ':' | '!' | '?')
}

fn ends_clause(phonemes: &str) -> bool {
    phonemes.ends_with(is_mark)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a word for each word of a text, with its letters as phonemes.
    fn words(text: &str) -> Vec<Word> {
        let word =
            |word: &str| Word { phonemes: word.to_owned(), is_followed_by_space: true, is_conjunction: word == "and" };
        text.split_whitespace().map(word).collect()
    }

    #[test]
    fn a_short_sentence_stays_whole_and_gets_an_end() {
        assert_eq!(pieces(&words("hello, there")), ["hello, there."]);
        assert_eq!(pieces(&words("hello there?")), ["hello there?"]);
    }

    #[test]
    fn the_first_piece_ends_at_the_first_clause() {
        let found = pieces(&words("when the ferry leaves at six, the town is still asleep, and so am I."));
        assert_eq!(found, ["when the ferry leaves at six,", "the town is still asleep, and so am I."]);
    }

    #[test]
    fn a_sentence_without_commas_is_cut_before_and() {
        let text = "word ".repeat(30) + "and " + &"word ".repeat(30);
        let found = pieces(&words(&text));
        assert!(found.len() >= 2 && found.iter().any(|piece| piece.starts_with("and ")), "{found:?}");
    }

    #[test]
    fn no_piece_is_endless() {
        for text in ["a".repeat(5_000), "abcdefg ".repeat(700), "a, ".repeat(2_000)] {
            let found = pieces(&words(&text));
            assert!(found.iter().all(|piece| piece.chars().count() <= MOST + 1), "{text}");
            let letters = |text: &str| text.chars().filter(|c| c.is_alphabetic()).count();
            assert_eq!(found.iter().map(|piece| letters(piece)).sum::<usize>(), letters(&text));
        }
    }

    #[test]
    fn marks_alone_are_nothing_to_say() {
        assert!(pieces(&words("... , !")).is_empty());
        assert!(pieces(&[]).is_empty());
        assert_eq!(pieces(&words("so , , , what")), ["so , what."]);
    }
}
