//! The sentences of what somebody said, without what they quote.

use std::ops::Range;

/// Bytes at the beginning of a message that are read.
const READ_BYTES: usize = 2_000;

/// Most sentences that are read of one message.
const MAX_SENTENCES: usize = 24;

/// A sentence with its place in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sentence<'a> {
    /// The sentence, with the sign that ends it.
    pub(super) text: &'a str,
    /// Its place.
    pub(super) range: Range<usize>,
    /// The same in lower case, with plain apostrophes.
    pub(super) plain: String,
}

impl Sentence<'_> {
    pub(super) fn is_question(&self) -> bool {
        self.text.trim_end().trim_end_matches(['"', '\'', ')', '”', '’']).ends_with(['?', '？'])
    }

    /// Returns true if it quotes somebody.
    pub(super) fn quotes(&self) -> bool {
        self.text.contains(['"', '“', '”', '„', '«', '»'])
    }

    /// Returns the words of it in lower case.
    pub(super) fn words(&self) -> impl Iterator<Item = &str> {
        words(&self.plain)
    }

    /// Returns true if one of these words is in it.
    pub(super) fn has_any(&self, wanted: &[&str]) -> bool {
        self.words().any(|word| wanted.contains(&word))
    }

    /// Returns true if one of these phrases is in it, as whole words.
    pub(super) fn has_phrase(&self, phrases: &[&str]) -> bool {
        phrases.iter().any(|phrase| find_phrase(&self.plain, phrase).is_some())
    }
}

/// Returns the words of a text, with their apostrophes.
pub(super) fn words(plain: &str) -> impl Iterator<Item = &str> {
    plain
        .split(|c: char| !c.is_alphanumeric() && c != '\'')
        .map(|word| word.trim_matches('\''))
        .filter(|word| !word.is_empty())
}

/// Returns where a phrase stands in a text, as whole words.
pub(super) fn find_phrase(plain: &str, phrase: &str) -> Option<usize> {
    let ends = |c: Option<char>| !c.is_some_and(|c| c.is_alphanumeric() || c == '\'');
    let is_whole = |(at, _): &(usize, &str)| {
        let (before, behind) = (plain.get(..*at), plain.get(at + phrase.len()..));
        ends(before.and_then(|text| text.chars().next_back())) && ends(behind.and_then(|text| text.chars().next()))
    };
    plain.match_indices(phrase).find(is_whole).map(|(at, _)| at)
}

/// Returns a text in lower case, with plain apostrophes.
pub(super) fn plain(text: &str) -> String {
    text.to_lowercase().replace('’', "'")
}

/// Returns the sentences of a text. Code and lines that quote somebody are left out.
pub(super) fn sentences(text: &str) -> Vec<Sentence<'_>> {
    let text = text.get(..text.floor_char_boundary(READ_BYTES)).unwrap_or(text);
    let mut found = Vec::new();
    let (mut from, mut is_code) = (0, false);
    for line in text.split_inclusive('\n') {
        let start = from;
        from += line.len();
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
            continue;
        }
        if !is_code && !line.trim_start().starts_with('>') {
            of_line(line, start, &mut found);
        }
    }
    found.truncate(MAX_SENTENCES);
    found
}

fn of_line<'a>(line: &'a str, offset: usize, found: &mut Vec<Sentence<'a>>) {
    let mut begin = 0;
    let mut chars = line.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let end = at + c.len_utf8();
        let next = chars.peek().map(|(_, next)| *next);
        let ends = match c {
            '!' | '?' | ';' | '…' | '。' | '！' | '？' => next.is_none_or(|next| !matches!(next, '!' | '?' | '…')),
            // A dot inside a number or an address ends nothing.
            '.' => next.is_none_or(char::is_whitespace),
            '\n' => true,
            _ => false,
        };
        if ends || next.is_none() {
            push(line, begin..end, offset, found);
            begin = end;
        }
    }
}

fn push<'a>(line: &'a str, range: Range<usize>, offset: usize, found: &mut Vec<Sentence<'a>>) {
    let Some(text) = line.get(range.clone()) else { return };
    let start = range.start + (text.len() - text.trim_start().len());
    let text = text.trim();
    if text.chars().any(char::is_alphanumeric) {
        let range = offset + start..offset + start + text.len();
        found.push(Sentence { text, range, plain: plain(text) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_keep_their_place_and_quoted_lines_are_left_out() {
        let text = "I paid 3.50. Really?!\n> I'm going to sleep\n```\nlet x = 1;\n```\nSee example.org now";
        let found = sentences(text);
        let shown: Vec<&str> = found.iter().map(|sentence| sentence.text).collect();
        assert_eq!(shown, ["I paid 3.50.", "Really?!", "See example.org now"]);
        assert!(found.iter().all(|sentence| text.get(sentence.range.clone()) == Some(sentence.text)));
        assert!(found[1].is_question() || found[1].text.ends_with('!'));
        assert_eq!(find_phrase("it's fixed up", "fixed"), Some(5));
        assert_eq!(find_phrase("unfixed", "fixed"), None);
    }
}
