//! A brake against loops. Models on servers get no penalty for repeating themselves, and a small one may write the same
//! paragraph until its limit. The brake watches the stream, and ends the reply where a passage comes again.

use crate::sentences::{ENDS, is_closing, is_wide_end};

/// The fewest characters of a passage, and how often it is shown in a row. People ask for choruses, and for a sentence
/// ten times; a loop has no end.
const TIMES: [(usize, usize); 3] = [(200, 2), (60, 3), (12, 20)];

/// The sentences and lines before the present one in which a passage may begin. This bounds the work for each new one.
const LOOK_BACK: usize = 100;

/// The fewest marks of a fence around code.
const FENCE: usize = 3;

/// Watches a streamed reply for passages that follow themselves. A passage is made of whole sentences or lines. Text is
/// held back while it may turn out to be a repetition. Code is let through as it is.
#[derive(Default)]
pub(super) struct Brake {
    text: Vec<char>,
    /// How much of the text has passed.
    passed: usize,
    /// Where the last sentences and lines begin.
    starts: Vec<usize>,
    repeats: Vec<Repeat>,
    /// True at the end of a sentence or a line, and at the beginning.
    is_between: bool,
    /// The mark of the fence that opened a block of code, and how often it stands there.
    fence: Option<(char, usize)>,
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
        if c == '\n' {
            self.watch_code();
        }
        let after_wide = self.text.last().is_some_and(|last| is_wide_end(*last)) && !is_closing(c);
        if self.starts.is_empty() || self.is_between || after_wide {
            if !c.is_whitespace() {
                self.begin(at, c);
                self.is_between = false;
            }
        } else if c == '\n' || (c.is_whitespace() && ends_sentence(&self.text)) {
            self.is_between = true;
        }
        self.text.push(c);
        let text = &self.text;
        self.repeats.retain(|repeat| {
            let said = at - repeat.second;
            match said < repeat.length {
                true => text.get(repeat.first + said) == Some(&c),
                // The passage is over if a sentence or line is. A line without a mark may go on after a blank.
                false if c.is_whitespace() => c == '\n' || text.get(..at).is_some_and(ends_sentence),
                false => text.get(at - 1).is_some_and(|last| is_wide_end(*last)),
            }
        });
        let over = self.repeats.iter().find(|repeat| at - repeat.second >= repeat.length);
        self.end = over.map(|repeat| repeat.second);
    }

    /// Opens a repetition for each passage that ends at `second`, where a sentence begins with `c`. Rows of a table may
    /// be alike.
    fn begin(&mut self, second: usize, c: char) {
        if self.fence.is_none() && c != '|' {
            let opened: Vec<Repeat> = self.starts.iter().filter_map(|first| self.repeat(*first, second)).collect();
            self.repeats.extend(opened);
        }
        if self.starts.len() == LOOK_BACK {
            self.starts.remove(0);
        }
        self.starts.push(second);
    }

    /// Returns the repetition of this passage, if it stands in a row as often as it is shown.
    fn repeat(&self, first: usize, second: usize) -> Option<Repeat> {
        let passage = self.text.get(first..second)?;
        let length = passage.iter().rposition(|c| !c.is_whitespace())? + 1;
        let (_, times) = TIMES.iter().find(|(chars, _)| length >= *chars)?;
        let mut before = (1..*times).map(|back| {
            let from = first.checked_sub(back * passage.len())?;
            self.text.get(from..from + passage.len())
        });
        let is_enough = before.all(|before| before == Some(passage)) && !self.is_periodic(first, second);
        is_enough.then_some(Repeat { first, second, length })
    }

    /// Returns true if the passage is a shorter one several times. That one counts in its place.
    fn is_periodic(&self, first: usize, second: usize) -> bool {
        let inner = self.starts.iter().filter(|start| (first + 1..second).contains(*start));
        inner.map(|start| second - start).any(|period| {
            (second - first).is_multiple_of(period)
                && self.text.get(first..second - period) == self.text.get(first + period..second)
        })
    }

    /// Notes at the end of a line whether it begins or ends a block of code.
    fn watch_code(&mut self) {
        let start = self.text.iter().rposition(|c| *c == '\n').map_or(0, |at| at + 1);
        let line: String = self.text.iter().skip(start).collect();
        let line = line.trim();
        let Some(mark) = line.chars().next().filter(|c| matches!(c, '`' | '~')) else { return };
        let rest = line.trim_start_matches(mark);
        let length = line.len() - rest.len();
        match self.fence {
            // Code between backquotes within one line is no block.
            None if length >= FENCE && (mark == '~' || !rest.contains('`')) => self.fence = Some((mark, length)),
            Some((open, least)) if open == mark && length >= least && rest.is_empty() => self.fence = None,
            _ => {}
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

fn ends_sentence(text: &[char]) -> bool {
    text.iter().rev().find(|c| !is_closing(**c)).is_some_and(|c| ENDS.contains(c))
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
    fn a_passage_that_follows_itself_ends_the_reply() {
        for gap in [" ", "\n", "\n\n"] {
            assert_eq!(shown(&[LINE; 6].join(gap)), ([LINE; 3].join(gap), true));
        }
        let two = "The keeper lit the lamp. The boats came home before the storm did.";
        assert_eq!(
            shown(&format!("Listen. {}", [two; 6].join(" "))),
            (format!("Listen. {}", [two; 3].join(" ")), true)
        );
        let song = format!("{LINE} {two} Then the wind turned, and nobody slept until the bells of the harbour rang.");
        assert_eq!(shown(&[song.as_str(); 4].join("\n\n")), ([song.as_str(); 2].join("\n\n"), true));
    }

    #[test]
    fn repetitions_that_people_ask_for_stay() {
        let line = "Turn, lamp, turn, and bring them safely home across the sea to me.";
        let chorus = [line, "The keeper sings it every night, and all the boats can hear.", line, "So turn, my lamp."];
        let chorus = chorus.join("\n");
        stays(&format!("The storm came early.\n\n{chorus}\n\n{chorus}"));
        stays(&[LINE; 3].join(" "));
        stays(&["I will not put out the lamp again."; 10].join("\n"));
        let row = format!("|{}|{}|", " ".repeat(40), " ".repeat(40));
        stays(&format!("| name | day |\n|---|---|\n{}", [row.as_str(); 30].join("\n")));
    }

    #[test]
    fn a_line_that_goes_on_after_the_same_beginning_stays() {
        let command = "cargo run --release --package azera -- memory check --deep --mend now";
        stays(&format!("{}\n{command} --quiet", [command; 3].join("\n")));
        assert_eq!(shown(&[command; 6].join("\n")), ([command; 3].join("\n"), true));
    }

    #[test]
    fn only_a_fence_hides_a_loop() {
        let code = "println!(\"the keeper climbed the stairs and lit the lamp again\");\n".repeat(9);
        for (open, close) in [("~~~", "~~~"), ("  ```rust", "  ```"), ("````\n```", "````"), ("```", "`````")] {
            stays(&format!("1. Run\n{open}\n{code}{close}"));
            let looped = format!("{open}\n{code}{close}\n{}", [LINE; 6].join("\n"));
            let first = format!("{open}\n{code}{close}\n{}", [LINE; 3].join("\n"));
            assert_eq!(shown(&looped), (first.trim().to_owned(), true), "{open}");
        }
        let inline = format!("```lamp```\n{}", [LINE; 6].join("\n"));
        assert_eq!(shown(&inline), (format!("```lamp```\n{}", [LINE; 3].join("\n")), true));
    }

    #[test]
    fn few_beginnings_are_kept() {
        let mut brake = Brake::default();
        let text = "a\n".repeat(3_000);
        assert_eq!(brake.pass(&text), text);
        assert_eq!(brake.starts.len(), LOOK_BACK);
    }

    #[test]
    fn a_short_sentence_may_come_twenty_times() {
        let short = "I will not talk.";
        stays(&[short; 20].join(" "));
        assert_eq!(shown(&[short; 32].join(" ")), ([short; 20].join(" "), true));
        stays(&["No."; 12].join(" "));
        let line = "Row, row, row your boat.";
        stays(&[line; 4].join("\n"));
        let wide = "\u{706f}\u{53f0}\u{306e}\u{5149}\u{304c}\u{6d77}\u{3092}\u{7167}\u{3089}\u{3057}\u{305f}\u{3002}";
        assert_eq!(shown(&wide.repeat(24)), (wide.repeat(20), true));
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
