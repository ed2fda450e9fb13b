//! Finds the names in a text: words with a capital letter that no list knows as another word. Scripts without capital
//! letters have none, and German, which writes every noun with one, has only those behind certain words.

use std::collections::HashSet;
use std::ops::Range;

use super::lexicon;
use super::sentences::{Form, Sentence, Token, sentences};
use crate::words::{fold, is_function_word};

/// Most words of a name.
const MAX_WORDS: usize = 4;

/// Most bytes of a name; a longer run of capitals is a title or a shout.
pub(super) const MAX_NAME_BYTES: usize = 64;

/// Words of a sentence from which most of them in capitals mean that somebody shouts.
const SHOUT: usize = 3;

/// German words that make a text German.
const GERMAN_WORDS: usize = 3;

/// A name in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Named {
    /// Its place in the text.
    pub(super) from: usize,
    pub(super) to: usize,
    /// The folded name without forms of address.
    pub(super) name: String,
    /// The tokens of its sentence that it covers.
    pub(super) tokens: Range<usize>,
}

/// Returns the names of each sentence.
pub(super) fn names(text: &str, sentences: &[Sentence]) -> Vec<Vec<Named>> {
    let words = || sentences.iter().flat_map(|sentence| &sentence.tokens).filter_map(Token::word);
    let finder = Finder {
        text,
        is_german: words().filter(|word| lexicon::is_german(word)).count() >= GERMAN_WORDS,
        inner: HashSet::new(),
    };
    let inner = sentences.iter().flat_map(|sentence| finder.find(sentence, false));
    let inner: HashSet<String> = inner.flat_map(|named| words_of(&named.name)).collect();
    let finder = Finder { inner, ..finder };
    sentences.iter().map(|sentence| finder.find(sentence, true)).collect()
}

/// Returns the names in a text, each folded and as it was written.
pub(crate) fn names_in(text: &str) -> Vec<(String, String)> {
    let found = names(text, &sentences(text));
    let written = |named: Named| Some((named.name, text.get(named.from..named.to)?.to_owned()));
    found.into_iter().flatten().filter_map(written).collect()
}

fn words_of(name: &str) -> Vec<String> {
    name.split(' ').map(str::to_owned).collect()
}

/// Returns a name as nodes are called: folded, without forms of address; `None` if nothing is left or it is too long.
pub(crate) fn folded_name(written: &str) -> Option<String> {
    let folded = fold(written).replace('’', "'");
    let words: Vec<&str> = folded
        .split(|c: char| c.is_whitespace() || c.is_control())
        .map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()))
        .filter(|word| !word.is_empty())
        .collect();
    let bare = words.iter().skip_while(|word| lexicon::is_title(word)).copied().collect::<Vec<_>>().join(" ");
    (!bare.is_empty() && bare.len() <= MAX_NAME_BYTES).then_some(bare)
}

struct Finder<'a> {
    text: &'a str,
    is_german: bool,
    /// Words of names inside sentences: they are names at the beginning of one, too.
    inner: HashSet<String>,
}

impl Finder<'_> {
    fn find(&self, sentence: &Sentence, initial_too: bool) -> Vec<Named> {
        let tokens = &sentence.tokens;
        if self.is_shouted(sentence) {
            return Vec::new();
        }
        let initial = tokens.iter().position(|token| token.word().is_some());
        let mut found = Vec::new();
        let mut at = 0;
        while at < tokens.len() {
            let is_initial = Some(at) == initial;
            let begins = is_candidate(tokens, at)
                && match is_initial {
                    true => initial_too && self.begins_sentence(tokens, at),
                    false => !self.is_german || is_cued(tokens, at),
                };
            if !begins {
                at += 1;
                continue;
            }
            let end = run_end(tokens, at);
            found.extend(self.named(tokens, at..end));
            at = end.max(at + 1);
        }
        found
    }

    fn named(&self, tokens: &[Token], run: Range<usize>) -> Option<Named> {
        let (first, last) = (tokens.get(run.start)?, tokens.get(run.end.checked_sub(1)?)?);
        let name = folded_name(self.text.get(first.from..last.to)?)?;
        Some(Named { from: first.from, to: last.to, name, tokens: run })
    }

    /// Returns true if most words of a sentence are in capitals throughout.
    fn is_shouted(&self, sentence: &Sentence) -> bool {
        let words: Vec<&str> = sentence
            .tokens
            .iter()
            .filter(|token| token.word().is_some())
            .filter_map(|token| self.text.get(token.from..token.to))
            .filter(|word| word.chars().nth(1).is_some())
            .collect();
        let loud = words.iter().filter(|word| word.chars().all(|c| !c.is_lowercase())).count();
        words.len() >= SHOUT && 2 * loud > words.len()
    }

    /// Returns true if the first word of a sentence is a name, as far as the words around it show.
    fn begins_sentence(&self, tokens: &[Token], at: usize) -> bool {
        let Some(word) = tokens.get(at).and_then(Token::word) else { return false };
        if self.inner.contains(word) || lexicon::is_title(word) {
            return true;
        }
        if is_function_word(word) || word.ends_with("ing") {
            return false;
        }
        let Some(next) = tokens.get(at + 1) else { return false };
        match &next.form {
            Form::Possessive => true,
            Form::Word { folded, capital: false } => !self.is_german && lexicon::shows_name_before(folded),
            Form::Word { folded, capital: true } => !self.is_german && !lexicon::is_no_name(folded),
            Form::Comma => {
                let behind = tokens.get(at + 2).and_then(Token::word);
                let role = tokens.get(at + 3).and_then(Token::word);
                let is_role = |word| lexicon::role(word).is_some() || lexicon::is_beside_role(word);
                matches!(behind, Some("also" | "aka" | "who" | "whose"))
                    || matches!(behind, Some("my" | "our" | "his" | "her")) && role.is_some_and(is_role)
            }
            Form::Sign => false,
        }
    }
}

/// Returns true for a word that may be part of a name.
fn is_candidate(tokens: &[Token], at: usize) -> bool {
    let Some(token) = tokens.get(at).filter(|token| token.is_capital()) else { return false };
    let Some(word) = token.word() else { return false };
    let is_title = lexicon::is_title(word);
    let joined = is_title && tokens.get(after_title(tokens, at)).is_some_and(Token::is_capital);
    joined || !is_title && !lexicon::is_no_name(word) && word.chars().nth(1).is_some()
}

/// Returns the index behind a form of address and its full stop.
fn after_title(tokens: &[Token], at: usize) -> usize {
    match tokens.get(at + 1).map(|token| &token.form) {
        Some(Form::Sign) => at + 2,
        _ => at + 1,
    }
}

/// Returns the index behind the run of words that belong to the name at `at`.
fn run_end(tokens: &[Token], at: usize) -> usize {
    let is_title = |at: usize| tokens.get(at).and_then(Token::word).is_some_and(lexicon::is_title);
    let mut end = if is_title(at) { after_title(tokens, at) + 1 } else { at + 1 };
    let mut words = 1;
    while words < MAX_WORDS {
        let inside = tokens.get(end).and_then(Token::word).is_some_and(lexicon::is_inside_name);
        if is_candidate(tokens, end) && !is_title(end) {
            end += 1;
        } else if inside && is_candidate(tokens, end + 1) && !is_title(end + 1) {
            end += 2;
        } else {
            break;
        }
        words += 1;
    }
    end
}

/// Returns true if a German word before a capital letter shows a name, or another part of the name stands beside it.
fn is_cued(tokens: &[Token], at: usize) -> bool {
    let before = at.checked_sub(1).and_then(|before| tokens.get(before)).and_then(Token::word);
    let itself = tokens.get(at).and_then(Token::word).is_some_and(lexicon::is_german_cue);
    before.is_some_and(lexicon::is_german_cue) || !itself && is_candidate(tokens, at + 1)
}

#[cfg(test)]
mod tests {
    use super::super::sentences::sentences;
    use super::*;

    #[track_caller]
    fn check(text: &str, want: &[&str]) {
        let found: Vec<String> = names(text, &sentences(text)).into_iter().flatten().map(|it| it.name).collect();
        assert_eq!(found, want, "{text}");
    }

    #[test]
    fn words_with_a_capital_letter_are_names_unless_they_are_others() {
        check("I met Ann Smith and Ben on Monday.", &["ann smith", "ben"]);
        check("Hey Mel! Thanks for the photo, I really loved it", &["mel"]);
        check("Dr. Jones works with Mrs. Ó Briain.", &["jones", "o briain"]);
        check("Ann's brother studies at the University of Oslo.", &["ann", "university of oslo"]);
        check("Walking home I saw nobody. Yesterday was fine.", &[]);
        check("I LOVE THIS SO MUCH", &[]);
        check("Zoë lives in São Paulo.", &["zoe", "sao paulo"]);
        check("see https://Example.com/Ann and ann@Home.org", &[]);
    }

    #[test]
    fn a_name_holds_no_control_characters() {
        check("I met Dr\u{1f}Ann\0 and Dr\0Ben today.", &["ann", "ben"]);
        assert_eq!(folded_name("Ann\0\u{1f}Lee").as_deref(), Some("ann lee"));
        assert_eq!(folded_name(" Mrs. "), None);
    }

    #[test]
    fn a_name_inside_a_sentence_is_one_at_the_beginning() {
        check("Yesterday I saw Rex. Rex barks.", &["rex", "rex"]);
        check("Barley soup is good.", &[]);
    }

    #[test]
    fn german_nouns_are_no_names() {
        check("Ich habe heute mit dem Hund und der Katze in Berlin gespielt.", &["berlin"]);
        check("Das ist nicht das Haus von Anna Weber, und ich wohne auch in Köln.", &["anna weber", "koln"]);
    }
}
