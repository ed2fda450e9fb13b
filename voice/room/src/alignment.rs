//! Which spoken words belong to which written ones: "14:05" is said as "fourteen oh five".

/// The most pairs of words that are compared. Longer texts are aligned by their numbers of words alone.
const MOST_PAIRS: usize = 250_000;

/// Returns a number for each written word: as soon as so many spoken words are said, this word is said. Words stand between
/// white space.
pub(crate) fn spoken_until(written: &str, spoken: &str) -> Vec<usize> {
    let (written, spoken) = (plain_words(written), plain_words(spoken));
    let mut until = vec![0; written.len()];
    let (mut next, mut said) = (0, 0);
    for (at, of) in same_words(&written, &spoken).into_iter().chain([(written.len(), spoken.len())]) {
        spread(&mut until, &written, next..at, said..of);
        if let Some(until) = until.get_mut(at) {
            *until = of + 1;
        }
        (next, said) = (at + 1, of + 1);
    }
    until
}

/// Spreads spoken words evenly over written ones. Words that are marks alone are said with the word before.
fn spread(until: &mut [usize], written: &[String], words: std::ops::Range<usize>, spoken: std::ops::Range<usize>) {
    let of = written.get(words.clone()).unwrap_or_default();
    let count = of.iter().filter(|word| !word.is_empty()).count();
    let mut number = 0;
    for (at, word) in words.zip(of) {
        number += usize::from(!word.is_empty());
        if let Some(until) = until.get_mut(at) {
            *until = spoken.start + (spoken.len() * number).div_ceil(count.max(1));
        }
    }
}

/// Returns the words of a text without their marks and capitals.
fn plain_words(text: &str) -> Vec<String> {
    let plain = |word: &str| word.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
    text.split_whitespace().map(plain).collect()
}

/// Returns the places of a longest common subsequence of words, in both.
fn same_words(written: &[String], spoken: &[String]) -> Vec<(usize, usize)> {
    let (rows, columns) = (written.len(), spoken.len());
    if rows * columns > MOST_PAIRS {
        return Vec::new();
    }
    // The "and" of "five dollars and ninety-nine cents" stands for no word that was written.
    let count = |words: &[String], word: &String| words.iter().filter(|other| *other == word).count();
    let is_certain: Vec<bool> =
        written.iter().map(|word| !word.is_empty() && count(written, word) == count(spoken, word)).collect();
    let is_same =
        |row: usize, column: usize| is_certain.get(row) == Some(&true) && written.get(row) == spoken.get(column);
    // The length of the longest common subsequence from each pair of places on.
    let mut longest = vec![vec![0_u32; columns + 1]; rows + 1];
    let length = |longest: &[Vec<u32>], row: usize, column: usize| {
        longest.get(row).and_then(|row| row.get(column)).copied().unwrap_or_default()
    };
    for row in (0..rows).rev() {
        for column in (0..columns).rev() {
            let best = if is_same(row, column) {
                length(&longest, row + 1, column + 1) + 1
            } else {
                length(&longest, row + 1, column).max(length(&longest, row, column + 1))
            };
            if let Some(cell) = longest.get_mut(row).and_then(|row| row.get_mut(column)) {
                *cell = best;
            }
        }
    }
    let (mut row, mut column, mut same) = (0, 0, Vec::new());
    while row < rows && column < columns {
        if is_same(row, column) {
            same.push((row, column));
            (row, column) = (row + 1, column + 1);
        } else if length(&longest, row + 1, column) >= length(&longest, row, column + 1) {
            row += 1;
        } else {
            column += 1;
        }
    }
    same
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_are_said_as_written_belong_together() {
        assert_eq!(spoken_until("The ferry leaves. ", "The ferry leaves."), [1, 2, 3]);
        assert_eq!(spoken_until("**Well** - I THINK so", "Well, I think so"), [1, 1, 2, 3, 4]);
    }

    #[test]
    fn a_number_is_said_in_several_words() {
        assert_eq!(
            spoken_until(
                "At 14:05 it costs $5.99!",
                "At fourteen oh five it costs five dollars and ninety-nine cents!"
            ),
            [1, 4, 5, 6, 11]
        );
        assert_eq!(spoken_until("$5.99 and tax", "five dollars and ninety-nine cents and tax"), [3, 6, 7]);
        assert_eq!(spoken_until("3 km", "three kilometers"), [1, 2]);
    }

    #[test]
    fn what_is_not_said_takes_no_time() {
        assert_eq!(spoken_until("Look 🙂 here", "Look here"), [1, 1, 2]);
        assert_eq!(spoken_until("", "so"), Vec::<usize>::new());
        assert_eq!(spoken_until("🙂", ""), [0]);
        let code = spoken_until("This: ```let a = 1; let b = 2;``` Done", "This: I've put the code in the chat. Done");
        assert_eq!((code.first(), code.last()), (Some(&1), Some(&9)));
        assert!(code.is_sorted());
    }

    #[test]
    fn a_text_of_any_length_is_aligned() {
        let long = "word ".repeat(2_000);
        let until = spoken_until(&long, &long);
        assert_eq!((until.len(), until.first(), until.last()), (2_000, Some(&1), Some(&2_000)));
    }
}
