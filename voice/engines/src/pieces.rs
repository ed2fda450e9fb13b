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
/// The most symbols in a piece with the mark at its end.
pub const MOST_SYMBOLS: usize = MOST + 1;
/// The fewest phoneme symbols that may be left for the last piece.
const REST: usize = 20;

/// Phonemes that are spoken in one go.
#[derive(Debug, Default, PartialEq)]
pub struct Phonemes {
    /// The symbols, marks and spaces.
    pub text: String,
    /// For each word that ends here, how many symbols stand before its end. Words stand between white space.
    pub word_ends: Vec<usize>,
}

/// Returns the phonemes of a sentence in pieces. The last one ends with a mark, as a sentence does.
pub fn pieces(words: &[Word]) -> Vec<Phonemes> {
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
        if word.is_followed_by_space || index + 1 == words.len() {
            piece.end_word();
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
    if !piece.phonemes.text.trim_end().ends_with(is_mark) {
        piece.phonemes.text.truncate(piece.phonemes.text.trim_end().len());
        piece.push('.');
    }
    done.extend(piece.take());
    done
}

#[derive(Default)]
struct Piece {
    phonemes: Phonemes,
    symbols: usize,
    /// How many symbols stand before the end of the last phoneme that is no mark.
    sounds: usize,
}

impl Piece {
    fn push(&mut self, symbol: char) {
        // Marks in a row and spaces in a row would be pauses without end.
        let text = &mut self.phonemes.text;
        let last = text.trim_end().chars().next_back();
        let repeats = match symbol {
            ' ' => text.is_empty() || text.ends_with(' '),
            symbol if is_mark(symbol) => last.is_none_or(is_mark),
            _ => false,
        };
        if !repeats {
            text.push(symbol);
            self.symbols += 1;
            if symbol != ' ' && !is_mark(symbol) {
                self.sounds = self.symbols;
            }
        }
    }

    fn end_word(&mut self) {
        self.phonemes.word_ends.push(self.sounds);
    }

    /// Returns the piece and begins another one; `None` if there is nothing to say.
    fn take(&mut self) -> Option<Phonemes> {
        let Phonemes { text, word_ends } = std::mem::take(self).phonemes;
        let text = text.trim_end();
        text.chars().any(char::is_alphabetic).then(|| Phonemes { text: text.to_owned(), word_ends })
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

    /// Returns the phonemes of a text in pieces.
    fn texts(text: &str) -> Vec<String> {
        pieces(&words(text)).into_iter().map(|piece| piece.text).collect()
    }

    #[test]
    fn a_short_sentence_stays_whole_and_gets_an_end() {
        assert_eq!(texts("hello, there"), ["hello, there."]);
        assert_eq!(texts("hello there?"), ["hello there?"]);
    }

    #[test]
    fn the_end_of_each_word_is_known() {
        let found = pieces(&words("oh, when the ferry leaves at six, I stay in my warm bed ,"));
        let heard =
            |piece: &Phonemes| piece.word_ends.iter().map(|end| piece.text.get(..*end).unwrap().to_owned()).collect();
        let heard: Vec<Vec<String>> = found.iter().map(heard).collect();
        let [first, second] = heard.as_slice() else { panic!("{found:?}") };
        assert_eq!((first.len(), second.len()), (7, 7));
        assert_eq!((first[0].as_str(), first[6].as_str()), ("oh", "oh, when the ferry leaves at six"));
        assert_eq!((second[0].as_str(), second[5].as_str()), ("I", "I stay in my warm bed"));
        assert_eq!(second[5], second[6], "a mark between white space has no sound of its own");
    }

    #[test]
    fn the_first_piece_ends_at_the_first_clause() {
        let found = texts("when the ferry leaves at six, the town is still asleep, and so am I.");
        assert_eq!(found, ["when the ferry leaves at six,", "the town is still asleep, and so am I."]);
    }

    #[test]
    fn a_sentence_without_commas_is_cut_before_and() {
        let text = "word ".repeat(30) + "and " + &"word ".repeat(30);
        let found = texts(&text);
        assert!(found.len() >= 2 && found.iter().any(|piece| piece.starts_with("and ")), "{found:?}");
    }

    #[test]
    fn no_piece_is_endless() {
        for text in ["a".repeat(5_000), "abcdefg ".repeat(700), "a, ".repeat(2_000)] {
            let found = texts(&text);
            assert!(found.iter().all(|piece| piece.chars().count() <= MOST_SYMBOLS), "{text}");
            let letters = |text: &str| text.chars().filter(|c| c.is_alphabetic()).count();
            assert_eq!(found.iter().map(|piece| letters(piece)).sum::<usize>(), letters(&text));
        }
    }

    #[test]
    fn marks_alone_are_nothing_to_say() {
        assert!(texts("... , !").is_empty());
        assert!(pieces(&[]).is_empty());
        assert_eq!(texts("so , , , what"), ["so , what."]);
    }
}
