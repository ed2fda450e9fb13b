//! Splits a text into words with their meanings.

use std::ops::Range;

use super::lexicon::{Meaning, fold, meanings};

/// Words of a text that are read.
const MAX_WORDS: usize = 96;

/// Words in the longest phrase of the lexicon.
const LONGEST_PHRASE: usize = 5;

/// A word with its place in the text.
pub(super) struct Token {
    pub(super) folded: String,
    pub(super) range: Range<usize>,
    /// True if a sentence or a part of it ends before the word.
    pub(super) begins: bool,
}

/// Returns the meanings of the phrases that begin at a word, each with its number of words.
pub(super) fn meanings_at(tokens: &[Token], at: usize) -> impl Iterator<Item = (Meaning, usize)> {
    let rest = tokens.get(at..).unwrap_or_default();
    // A phrase does not go on in the next sentence.
    let whole = rest.iter().skip(1).take_while(|token| !token.begins).count() + 1;
    let words: Vec<&str> = rest.iter().take(whole.min(LONGEST_PHRASE)).map(|token| token.folded.as_str()).collect();
    meanings(&words).collect::<Vec<_>>().into_iter()
}

/// Splits a text into its words. A dot after a number belongs to the number.
pub(super) fn tokens(text: &str) -> Vec<Token> {
    let mut tokens: Vec<Token> = Vec::new();
    let mut start: Option<usize> = None;
    let mut begins = false;
    let mut last = ' ';
    for (index, c) in text.char_indices().chain([(text.len(), ' ')]) {
        let inside = c.is_alphanumeric() || (matches!(c, '\'' | '’') && start.is_some());
        match (inside, start) {
            (true, None) => start = Some(index),
            (false, Some(from)) => {
                let folded = fold(text.get(from..index).unwrap_or_default());
                let folded = folded.trim_end_matches('\'').to_owned();
                tokens.push(Token { folded, range: from..index, begins });
                begins = false;
                start = None;
            }
            _ => {}
        }
        let ends = matches!(c, '?' | '!' | ';' | ':' | '\n' | ',') || (c == '.' && !last.is_ascii_digit());
        // `March 14, 2026` goes on after its comma.
        begins |= !inside && ends && !(c == ',' && last.is_ascii_digit());
        last = c;
        if tokens.len() >= MAX_WORDS {
            break;
        }
    }
    tokens
}

/// Returns true if the words around a folded name show a person: `what did April say`, `with May`, `June's`.
pub(crate) fn shows_person(text: &str, name: &str) -> bool {
    let tokens = tokens(text);
    let has = |at: usize, wanted: Meaning| meanings_at(&tokens, at).any(|(meaning, _)| meaning == wanted);
    tokens.iter().enumerate().any(|(index, token)| {
        let is_owner = token.folded.strip_suffix("'s") == Some(name);
        let is_name = token.folded == name;
        let after = || index.checked_sub(1).is_some_and(|before| has(before, Meaning::PersonAfter));
        is_owner || (is_name && (after() || has(index + 1, Meaning::PersonBefore)))
    })
}
