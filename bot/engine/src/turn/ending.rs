//! The end of a reply that its length limit cut: it is shown to the last whole sentence. What is shown cannot be
//! withdrawn, so towards the limit a sentence is shown only when it is whole.

use crate::sentences::{end_of_whole_sentences, end_of_wide_sentences};

/// Bytes of text for each token of the limit after which sentences are held until they are whole. A token has three to
/// five bytes in most languages, so this is about half of the limit.
const BYTES_PER_TOKEN: usize = 2;

/// The longest text without an end that is held, in bytes. Not every script has marks between sentences.
const LONGEST_HELD: usize = 300;

/// Holds back the sentence that a length limit may cut.
pub(super) struct Ending {
    /// Bytes that can pass before sentences are held.
    free: usize,
    held: String,
    /// True if `held` begins with a sentence, so that nothing of that one was shown.
    holds_whole: bool,
}

impl Ending {
    /// Begins a reply of at most this many tokens.
    pub(super) fn new(max_tokens: usize) -> Self {
        Self { free: max_tokens.saturating_mul(BYTES_PER_TOKEN), held: String::new(), holds_whole: false }
    }

    /// What of the reply can be shown now.
    pub(super) fn pass(&mut self, piece: &str) -> String {
        if piece.len() <= self.free {
            self.free -= piece.len();
            return piece.to_owned();
        }
        self.free = 0;
        self.held.push_str(piece);
        if let Some(end) = end_of_decided(&self.held) {
            self.holds_whole = true;
            return self.held.drain(..end).collect();
        }
        if self.held.len() <= LONGEST_HELD {
            return String::new();
        }
        self.holds_whole = false;
        let word = self.held.rfind(char::is_whitespace).filter(|at| *at > 0).unwrap_or(self.held.len());
        self.held.drain(..word).collect()
    }

    /// The rest of the reply. If it was cut, that is up to its last whole sentence. `is_all` is true if nothing was shown
    /// before: then a part of a sentence is better than nothing.
    pub(super) fn finish(&mut self, is_cut: bool, is_all: bool) -> String {
        let held = std::mem::take(&mut self.held);
        if !is_cut {
            return held;
        }
        match end_of_whole_sentences(&held) {
            Some(end) => held.get(..end).unwrap_or(&held).to_owned(),
            None if self.holds_whole && !is_all => String::new(),
            None => held,
        }
    }
}

/// Returns where the last sentence or line ends after which more text follows, with the white space after it: who speaks
/// the reply waits for that. A point at the very end may be one within a number.
fn end_of_decided(text: &str) -> Option<usize> {
    let line = text.rfind('\n').map(|at| at + 1);
    // The last word may not be over. What stands before it is.
    let before = text.trim_end_matches(|c: char| !c.is_whitespace());
    let end = end_of_whole_sentences(before).max(line).max(end_of_wide_sentences(text))?;
    let rest = text.get(end..)?;
    Some(end + rest.len() - rest.trim_start().len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pieces: &[&str], free_tokens: usize, is_cut: bool, want: &[&str]) {
        let mut ending = Ending::new(free_tokens);
        let mut shown: Vec<String> = pieces.iter().map(|piece| ending.pass(piece)).collect();
        let is_all = shown.iter().all(String::is_empty);
        shown.push(ending.finish(is_cut, is_all));
        assert_eq!(shown, want, "{pieces:?}");
    }

    #[test]
    fn nothing_is_held_far_from_the_limit() {
        check(&["One two", " three"], 100, true, &["One two", " three", ""]);
    }

    #[test]
    fn near_the_limit_a_sentence_is_shown_when_it_is_whole() {
        check(&["One. ", "Two", ". Three"], 0, true, &["One. ", "", "Two. ", ""]);
        check(&["One. ", "Two", ". Three"], 0, false, &["One. ", "", "Two. ", "Three"]);
        check(&["It is 3", ".5 km. ", "More"], 0, true, &["", "It is 3.5 km. ", "", ""]);
        check(&["\"Come!\" ", "she said"], 0, true, &["\"Come!\" ", "", ""]);
        check(&["- a\n- b", "\n- c"], 0, true, &["- a\n", "- b\n", ""]);
        check(
            &["\u{706f}\u{3002}", "\u{6ce2}\u{3002}\u{98a8}"],
            0,
            true,
            &["", "\u{706f}\u{3002}\u{6ce2}\u{3002}", ""],
        );
    }

    #[test]
    fn a_sentence_that_was_begun_is_shown_to_the_limit() {
        check(&["One tw", "o three"], 3, true, &["One tw", "", "o three"]);
        check(&["One two"], 0, true, &["", "One two"]);
    }

    #[test]
    fn a_point_within_a_word_or_after_a_number_of_a_list_is_no_end() {
        check(&["We go. ", "The trip costs 3.5 mil"], 0, true, &["We go. ", "", ""]);
        check(&["We go. ", "See example.com for"], 0, true, &["We go. ", "", ""]);
        check(&["1. apples\n2. pears\n3. pl"], 0, true, &["1. apples\n2. pears\n", ""]);
        check(&["He went. ", "Ask Dr. ", "Smith, e.g. ", "ab"], 0, true, &["He went. ", "", "", "", ""]);
    }

    #[test]
    fn a_text_without_marks_is_streamed() {
        let phrase = "\u{e17}\u{e30}\u{e40}\u{e25}\u{e2a}\u{e07}\u{e1a} ";
        let mut ending = Ending::new(0);
        let shown: Vec<String> = (0..40).map(|_| ending.pass(phrase)).collect();
        let longest = shown.iter().map(String::len).max();
        assert!(longest.is_some_and(|longest| longest > 0 && longest <= LONGEST_HELD + phrase.len()), "{longest:?}");
        let mut whole = shown.concat();
        whole.push_str(&ending.finish(true, false));
        assert_eq!(whole, phrase.repeat(40), "nothing of it is lost");
    }
}
