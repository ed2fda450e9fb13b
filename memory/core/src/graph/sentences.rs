//! Splits a text into sentences and words that keep their place in the text.

use unicode_normalization::char::is_combining_mark;

use super::lexicon;
use crate::words::fold;

/// A word or a sign of a sentence, with its bytes in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) form: Form,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Form {
    /// A word: folded, and whether it begins with a capital letter.
    Word {
        folded: String,
        capital: bool,
    },
    /// The ending that makes the word before it an owner.
    Possessive,
    Comma,
    /// Any other sign.
    Sign,
}

impl Token {
    pub(super) fn word(&self) -> Option<&str> {
        match &self.form {
            Form::Word { folded, .. } => Some(folded),
            _ => None,
        }
    }

    pub(super) fn is_capital(&self) -> bool {
        matches!(self.form, Form::Word { capital: true, .. })
    }
}

/// A sentence.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Sentence {
    pub(super) tokens: Vec<Token>,
    /// True if it ends with a question mark.
    pub(super) is_question: bool,
}

/// Returns the sentences of a text. Links and addresses count as signs.
pub(super) fn sentences(text: &str) -> Vec<Sentence> {
    let mut done = Vec::new();
    let mut open = Sentence::default();
    let mut end = 0;
    for chunk in text.split_whitespace() {
        // The pieces of a text lie inside it.
        let from = chunk.as_ptr().addr() - text.as_ptr().addr();
        if text.get(end..from).is_some_and(|between| between.contains('\n')) {
            close(&mut open, &mut done);
        }
        end = from + chunk.len();
        if is_address(chunk) {
            open.tokens.push(Token { from, to: end, form: Form::Sign });
            continue;
        }
        take(chunk, from, &mut open);
        if let Some(mark) = ends_sentence(chunk, &open) {
            open.is_question = matches!(mark, '?' | '？');
            close(&mut open, &mut done);
        }
    }
    close(&mut open, &mut done);
    done
}

fn close(open: &mut Sentence, done: &mut Vec<Sentence>) {
    let sentence = std::mem::take(open);
    if !sentence.tokens.is_empty() {
        done.push(sentence);
    }
}

/// Returns true for links, mentions of accounts and names of files: they are no words.
fn is_address(chunk: &str) -> bool {
    chunk.contains("://") || chunk.starts_with(['@', '<', '#', '/', '`']) || chunk.contains('@')
}

/// Returns the mark that ends a sentence behind a chunk.
fn ends_sentence(chunk: &str, open: &Sentence) -> Option<char> {
    let bare = chunk.trim_end_matches(['"', '\'', ')', ']', '”', '’', '»', '*', '_']);
    let mark = bare.chars().next_back()?;
    match mark {
        '!' | '?' | '…' | ';' | ':' | '。' | '！' | '？' => Some(mark),
        '.' => {
            let last = open.tokens.iter().rev().find_map(|token| token.word().map(|word| (word, token.is_capital())));
            let is_short =
                last.is_some_and(|(word, capital)| lexicon::is_title(word) || capital && word.chars().count() == 1);
            (!is_short).then_some(mark)
        }
        _ => None,
    }
}

/// Adds the words and signs of a chunk without spaces.
fn take(chunk: &str, offset: usize, open: &mut Sentence) {
    let mut chars = chunk.char_indices().peekable();
    while let Some((from, c)) = chars.next() {
        let mut to = from + c.len_utf8();
        if !c.is_alphanumeric() {
            let form = if matches!(c, ',' | '、' | '，') { Form::Comma } else { Form::Sign };
            open.tokens.push(Token { from: offset + from, to: offset + to, form });
            continue;
        }
        while let Some((at, next)) = chars.peek().copied() {
            let behind = at + next.len_utf8();
            let joins = matches!(next, '\'' | '’' | '-' | '\u{200c}' | '\u{200d}')
                && chunk.get(behind..).and_then(|rest| rest.chars().next()).is_some_and(char::is_alphanumeric);
            if !next.is_alphanumeric() && !is_combining_mark(next) && !joins {
                break;
            }
            to = behind;
            chars.next();
        }
        push_word(chunk.get(from..to).unwrap_or_default(), offset + from, open);
    }
}

fn push_word(written: &str, from: usize, open: &mut Sentence) {
    let owner = ["'s", "’s", "'S", "’S"].iter().find_map(|ending| written.strip_suffix(ending));
    let bare = owner.unwrap_or(written);
    let to = from + bare.len();
    let folded = fold(bare).replace('’', "'");
    let capital = bare.chars().next().is_some_and(char::is_uppercase);
    open.tokens.push(Token { from, to, form: Form::Word { folded, capital } });
    if owner.is_some() {
        open.tokens.push(Token { from: to, to: from + written.len(), form: Form::Possessive });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_keep_their_place_and_sentences_end_at_their_marks() {
        let text = "Dr. Ann's cat, Mia, isn't ill. See https://a.example/Ben?\nZoë-Marie asks: why?";
        let found = sentences(text);
        let words = |sentence: &Sentence| {
            let words = sentence.tokens.iter().filter(|token| token.word().is_some());
            words.map(|token| text.get(token.from..token.to).unwrap()).collect::<Vec<_>>().join(" ")
        };
        let said: Vec<String> = found.iter().map(words).collect();
        assert_eq!(said, ["Dr Ann cat Mia isn't ill", "See", "Zoë-Marie asks", "why"]);
        assert!(found[3].is_question && !found[2].is_question);
        assert_eq!(found[0].tokens.iter().filter(|token| token.form == Form::Possessive).count(), 1);
    }
}
