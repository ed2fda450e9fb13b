//! A brake against loops. Models on servers get no penalty for repeating themselves, and a small one may write the same
//! paragraph until its limit. The brake watches the stream, and ends the reply where a passage comes again.

use crate::sentences::{ENDS, is_closing, is_wide_end};

/// A passage of at least this many characters is shown once.
const LONG_CHARS: usize = 60;

/// A passage of at least this many characters, such as a line of a refrain, is shown [`SHORT_TIMES`].
const SHORT_CHARS: usize = 12;

/// See [`SHORT_CHARS`].
const SHORT_TIMES: usize = 5;

/// Watches a streamed reply for passages that follow themselves. A passage is made of whole sentences or lines. Text is
/// held back while it may turn out to be a repetition. Code is let through as it is.
#[derive(Default)]
pub(super) struct Brake {
    text: Vec<char>,
    /// How much of the text has passed.
    passed: usize,
    /// Where sentences and lines begin.
    starts: Vec<usize>,
    repeats: Vec<Repeat>,
    /// True at the end of a sentence or a line, and at the beginning.
    is_between: bool,
    /// Backquotes at the beginning of the present line, and whether a block of code is open.
    quotes: usize,
    in_code: bool,
    /// Where the reply ends, because what follows is a repetition.
    end: Option<usize>,
}

/// A repetition that may be under way: the text from `second` on is that from `first` on, so far.
#[derive(Clone, Copy)]
struct Repeat {
    first: usize,
    second: usize,
    /// Characters of the passage, without white space after it.
    length: usize,
}

impl Brake {
    /// Takes a piece of the reply, and returns what can be shown now.
    pub(super) fn pass(&mut self, piece: &str) -> String {
        for c in piece.chars() {
            if self.end.is_none() {
                self.push(c);
            }
        }
        self.release()
    }

    /// Returns true if the reply ends here.
    pub(super) fn is_pulled(&self) -> bool {
        self.end.is_some()
    }

    /// Ends the reply, and returns the rest of it.
    pub(super) fn finish(&mut self) -> String {
        let whole = |repeat: &&Repeat| self.text.len() - repeat.second == repeat.length;
        if self.end.is_none() {
            self.end = self.repeats.iter().find(whole).map(|repeat| repeat.second);
        }
        self.repeats.clear();
        self.release()
    }

    fn push(&mut self, c: char) {
        let at = self.text.len();
        self.watch_code(c);
        let after_wide = self.text.last().is_some_and(|last| is_wide_end(*last)) && !is_closing(c);
        if self.starts.is_empty() || self.is_between || after_wide {
            if !c.is_whitespace() {
                self.begin(at);
                self.is_between = false;
            }
        } else if c == '\n' || (c.is_whitespace() && self.ends_sentence()) {
            self.is_between = true;
        }
        self.text.push(c);
        let text = &self.text;
        self.repeats.retain(|repeat| {
            let said = at - repeat.second;
            match said < repeat.length {
                true => text.get(repeat.first + said) == Some(&c),
                // The passage is over if a sentence or line is.
                false => c.is_whitespace() || text.get(at - 1).is_some_and(|last| is_wide_end(*last)),
            }
        });
        let over = self.repeats.iter().find(|repeat| at - repeat.second >= repeat.length);
        self.end = over.map(|repeat| repeat.second);
    }

    /// Opens a repetition for each passage that ends at `second`, where a sentence begins.
    fn begin(&mut self, second: usize) {
        if !self.in_code {
            let opened = self.starts.iter().filter_map(|first| {
                let passage = self.text.get(*first..second)?;
                let blank = passage.iter().rev().take_while(|c| c.is_whitespace()).count();
                let length = passage.len() - blank;
                let is_long = length >= LONG_CHARS && !self.is_periodic(*first, second);
                let counts = is_long || (length >= SHORT_CHARS && self.comes_often(*first, second));
                counts.then_some(Repeat { first: *first, second, length })
            });
            let opened: Vec<Repeat> = opened.collect();
            self.repeats.extend(opened);
        }
        self.starts.push(second);
    }

    /// Returns true if the passage is a shorter one several times. That one counts in its place.
    fn is_periodic(&self, first: usize, second: usize) -> bool {
        let inner = self.starts.iter().filter(|start| (first + 1..second).contains(*start));
        inner.map(|start| second - start).any(|period| {
            (second - first).is_multiple_of(period)
                && self.text.get(first..second - period) == self.text.get(first + period..second)
        })
    }

    /// Returns true if the passage stands [`SHORT_TIMES`] in a row already.
    fn comes_often(&self, first: usize, second: usize) -> bool {
        let passage = self.text.get(first..second);
        (1..SHORT_TIMES).all(|times| {
            let from = first.checked_sub(times * (second - first));
            from.is_some_and(|from| self.text.get(from..from + (second - first)) == passage)
        })
    }

    fn ends_sentence(&self) -> bool {
        self.text.iter().rev().find(|c| !is_closing(**c)).is_some_and(|c| ENDS.contains(c))
    }

    /// Notes where a block of code begins and ends.
    fn watch_code(&mut self, c: char) {
        let is_line_start = self.text.last().is_none_or(|last| *last == '\n');
        self.quotes = match c {
            '`' if is_line_start => 1,
            '`' if self.quotes > 0 => self.quotes + 1,
            _ => 0,
        };
        if self.quotes == 3 {
            self.in_code = !self.in_code;
        }
    }

    /// Returns the text that is no part of an open repetition.
    fn release(&mut self) -> String {
        let held = self.end.or_else(|| self.repeats.iter().map(|repeat| repeat.second).min());
        let to = held.unwrap_or(self.text.len()).max(self.passed);
        let piece = self.text.get(self.passed..to).unwrap_or_default().iter().collect();
        self.passed = to;
        piece
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Passes a reply by character and in one piece. Returns what is shown, and whether the brake was pulled.
    #[track_caller]
    fn shown(text: &str) -> (String, bool) {
        let run = |pieces: Vec<String>| {
            let mut brake = Brake::default();
            let mut shown: String = pieces.iter().map(|piece| brake.pass(piece)).collect();
            shown.push_str(&brake.finish());
            (shown.trim().to_owned(), brake.is_pulled())
        };
        let by_char = run(text.chars().map(String::from).collect());
        assert_eq!(by_char, run(vec![text.to_owned()]), "however the stream is cut");
        by_char
    }

    #[track_caller]
    fn stays(text: &str) {
        assert_eq!(shown(text), (text.to_owned(), false));
    }

    const LINE: &str = "The keeper climbed the stairs and lit the lamp, for the storm had come early.";

    #[test]
    fn a_passage_that_follows_itself_is_shown_once() {
        for gap in [" ", "\n", "\n\n"] {
            assert_eq!(shown(&[LINE; 5].join(gap)), (LINE.to_owned(), true));
        }
        let two = "The keeper lit the lamp. The boats came home before the storm did.";
        assert_eq!(shown(&format!("Listen. {two} {two} {two}")), (format!("Listen. {two}"), true));
    }

    #[test]
    fn a_short_sentence_may_come_five_times() {
        let short = "I will not talk.";
        stays(&[short; 5].join(" "));
        assert_eq!(shown(&[short; 12].join(" ")), ([short; 5].join(" "), true));
        stays(&["No."; 12].join(" "));
        let line = "Row, row, row your boat.";
        stays(&[line; 4].join("\n"));
        let wide = "\u{706f}\u{53f0}\u{306e}\u{5149}\u{304c}\u{6d77}\u{3092}\u{7167}\u{3089}\u{3057}\u{305f}\u{3002}";
        assert_eq!(shown(&wide.repeat(9)), (wide.repeat(5), true));
    }

    #[test]
    fn refrains_lists_and_code_stay() {
        let refrain = "Turn, lamp, turn, and bring them home to me,\nturn, lamp, turn, across the sleeping sea.";
        stays(&format!(
            "{refrain}\n\nThe first ship came at dawn.\n\n{refrain}\n\nThe second never came.\n\n{refrain}"
        ));
        stays(
            "1. The keeper of the old lighthouse by the northern sea, who sings.\n2. The keeper of the old lighthouse \
               by the northern sea, who sleeps.",
        );
        let code = "println!(\"the keeper climbed the stairs and lit the lamp again\");\n";
        stays(&format!("```\n{}```", code.repeat(3)));
        stays(&format!("{LINE} The keeper climbed the stairs and lit the lamp, for the storm had gone."));
    }
}
