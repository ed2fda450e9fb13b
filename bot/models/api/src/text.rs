use std::fmt;

use crate::Event;

const THINK_OPEN: &str = "<think>";
const THINK_CLOSE: &str = "</think>";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Only white space so far, so a thinking block may still begin.
    Opening,
    /// The prompt has already opened the block, and its start has not been emitted yet.
    Opened,
    Thinking,
    /// The white space between the thinking block and the reply belongs to neither.
    Closed,
    Content,
}

/// Converts the bytes that an engine generates to events. It emits only whole characters, separates thinking from
/// content, and cuts off stop strings. A possible beginning of a stop string or tag is held back until it is decided,
/// so this never withholds more than the longest of them.
pub struct ReplyText {
    state: State,
    /// The first bytes of an incomplete character; at most three.
    partial: Vec<u8>,
    held: String,
    stop: Vec<String>,
}

impl fmt::Debug for ReplyText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ReplyText[{:?}, {} bytes held]", self.state, self.held.len())
    }
}

impl ReplyText {
    /// Creates a converter. `thinks` is true if the model uses thinking blocks, `inside` if the prompt has already
    /// opened one.
    pub fn new(stop: Vec<String>, thinks: bool, inside: bool) -> Self {
        let state = match (inside, thinks) {
            (true, _) => State::Opened,
            (false, true) => State::Opening,
            (false, false) => State::Content,
        };
        Self { state, partial: Vec::new(), held: String::new(), stop }
    }

    /// Returns true if the next text belongs to a thinking block.
    pub fn is_thinking(&self) -> bool {
        matches!(self.state, State::Opened | State::Thinking)
    }

    /// Takes some bytes of the reply, cut anywhere. Returns true if a stop string ended the reply.
    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<Event>) -> bool {
        self.partial.extend_from_slice(bytes);
        decode(&mut self.partial, &mut self.held);
        self.advance(out)
    }

    /// Emits the held-back text when the reply ends without a stop string.
    pub fn finish(&mut self, out: &mut Vec<Event>) {
        if !self.partial.is_empty() {
            self.partial.clear();
            self.held.push(char::REPLACEMENT_CHARACTER);
        }
        if self.state == State::Opening {
            self.state = State::Content;
        }
        if self.advance(out) {
            return;
        }
        let rest = std::mem::take(&mut self.held);
        match self.state {
            State::Thinking => {
                emit(rest, Event::Thinking, out);
                out.push(Event::ThinkingEnd);
            }
            State::Content => emit(rest, Event::Content, out),
            State::Opening | State::Opened | State::Closed => {}
        }
    }

    fn advance(&mut self, out: &mut Vec<Event>) -> bool {
        loop {
            match self.state {
                State::Opening => {
                    let seen = self.held.trim_start();
                    if seen.starts_with(THINK_OPEN) {
                        let start = self.held.len() - seen.len() + THINK_OPEN.len();
                        self.held.drain(..start);
                        self.state = State::Opened;
                    } else if THINK_OPEN.starts_with(seen) {
                        return false;
                    } else {
                        self.state = State::Content;
                    }
                }
                State::Opened => {
                    out.push(Event::ThinkingStart);
                    self.state = State::Thinking;
                }
                State::Thinking => match self.held.find(THINK_CLOSE) {
                    Some(end) => {
                        let rest = self.held.split_off(end + THINK_CLOSE.len());
                        let mut thought = std::mem::replace(&mut self.held, rest);
                        thought.truncate(end);
                        emit(thought, Event::Thinking, out);
                        out.push(Event::ThinkingEnd);
                        self.state = State::Closed;
                    }
                    None => {
                        let keep = undecided(&self.held, [THINK_CLOSE]);
                        emit(self.release(keep), Event::Thinking, out);
                        return false;
                    }
                },
                State::Closed => {
                    let start = self.held.len() - self.held.trim_start().len();
                    self.held.drain(..start);
                    if self.held.is_empty() {
                        return false;
                    }
                    self.state = State::Content;
                }
                State::Content => {
                    let met = self.stop.iter().filter_map(|stop| self.held.find(stop.as_str())).min();
                    if let Some(end) = met {
                        self.held.truncate(end);
                        emit(std::mem::take(&mut self.held), Event::Content, out);
                        return true;
                    }
                    let keep = undecided(&self.held, self.stop.iter().map(String::as_str));
                    emit(self.release(keep), Event::Content, out);
                    return false;
                }
            }
        }
    }

    /// Removes and returns all but the last `keep` bytes of the held text.
    fn release(&mut self, keep: usize) -> String {
        let tail = self.held.split_off(self.held.len() - keep);
        std::mem::replace(&mut self.held, tail)
    }
}

fn emit(text: String, event: impl Fn(String) -> Event, out: &mut Vec<Event>) {
    if !text.is_empty() {
        out.push(event(text));
    }
}

/// Returns the number of bytes at the end of `text` that could begin one of `marks`.
fn undecided<'a>(text: &str, marks: impl IntoIterator<Item = &'a str>) -> usize {
    let begins = |mark: &str| {
        mark.char_indices().map(|(end, _)| end).rev().find(|end| {
            let tail = text.len().checked_sub(*end).and_then(|start| text.get(start..));
            tail.is_some_and(|tail| mark.starts_with(tail))
        })
    };
    marks.into_iter().filter_map(begins).max().unwrap_or(0)
}

/// Moves every complete character from `bytes` to `text`. Bytes that can never become a character turn into U+FFFD.
fn decode(bytes: &mut Vec<u8>, text: &mut String) {
    loop {
        match std::str::from_utf8(bytes) {
            Ok(valid) => {
                text.push_str(valid);
                bytes.clear();
                return;
            }
            Err(error) => {
                let valid: Vec<u8> = bytes.drain(..error.valid_up_to()).collect();
                text.push_str(&String::from_utf8_lossy(&valid));
                match error.error_len() {
                    Some(invalid) => {
                        bytes.drain(..invalid);
                        text.push(char::REPLACEMENT_CHARACTER);
                    }
                    None => return,
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Runs tokens through a [`ReplyText`] and writes the events as one line: `[` and `]` around thinking, `|` after
    /// each piece, `!` for a stop string.
    fn play(tokens: &[&[u8]], stop: &[&str], thinks: bool, inside: bool) -> String {
        let mut text = ReplyText::new(stop.iter().map(|s| (*s).to_owned()).collect(), thinks, inside);
        let mut line = String::new();
        let mut stopped = false;
        for token in tokens {
            let mut events = Vec::new();
            stopped = text.push(token, &mut events);
            show(&events, &mut line);
            if stopped {
                line.push('!');
                break;
            }
        }
        if !stopped {
            let mut events = Vec::new();
            text.finish(&mut events);
            show(&events, &mut line);
        }
        line
    }

    fn show(events: &[Event], line: &mut String) {
        for event in events {
            match event {
                Event::ThinkingStart => line.push('['),
                Event::ThinkingEnd => line.push(']'),
                Event::Thinking(piece) | Event::Content(piece) => {
                    line.push_str(piece);
                    line.push('|');
                }
                Event::Done(_) => unreachable!("the text never ends a reply"),
            }
        }
    }

    #[track_caller]
    fn check(tokens: &[&str], stop: &[&str], thinks: bool, inside: bool, expected: &str) {
        let tokens: Vec<&[u8]> = tokens.iter().map(|token| token.as_bytes()).collect();
        assert_eq!(play(&tokens, stop, thinks, inside), expected);
    }

    #[test]
    fn stop_strings_are_held_back_and_cut() {
        check(&["Hello", " there"], &["\nUser:"], false, false, "Hello| there|");
        check(&["Hi\n", "Us", "er: no"], &["\nUser:"], false, false, "Hi|!");
        check(&["Hi\n", "Us", "ual"], &["\nUser:"], false, false, "Hi|\nUsual|");
        check(&["ab", "c"], &["abc", "b"], false, false, "a|!");
        check(&["a", "a", "b"], &["aab"], false, false, "!");
        check(&["end\n"], &["\nUser:"], false, false, "end|\n|");
    }

    #[test]
    fn thinking_is_separated_from_content() {
        check(&["<thi", "nk>\nhm", "m</th", "ink>\n\nYes"], &[], true, false, "[\nhm|m|]Yes|");
        check(&["<think>a</think>b"], &["b"], true, false, "[a|]!");
        check(&["I <think>"], &[], true, false, "I <think>|");
        check(&["<think>x"], &[], false, false, "<think>x|");
        check(&["so", "</think>", "ok"], &[], true, true, "[so|]ok|");
        check(&["never ends"], &[], true, true, "[never ends|]");
        check(&["<thi"], &[], true, false, "<thi|");
        check(&["stop in thought b</think>x"], &["b"], true, true, "[stop in thought b|]x|");
    }

    #[test]
    fn only_whole_characters_are_emitted() {
        let (head, tail) = "🦊".as_bytes().split_at(2);
        assert_eq!(play(&[b"a", head, tail, b"b"], &[], false, false), "a|🦊|b|");
        assert_eq!(play(&[&[0xff], b"b"], &[], false, false), "\u{fffd}|b|");
        assert_eq!(play(&[head], &[], false, false), "\u{fffd}|");
    }

    proptest! {
        #[test]
        fn cutting_the_bytes_anywhere_does_not_change_the_text(text in ".{0,40}", cuts in prop::collection::vec(0usize..160, 0..8)) {
            let bytes = text.as_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let mut reply = ReplyText::new(vec!["zzzz".into()], false, false);
            let mut out = Vec::new();
            let mut stopped = false;
            for cut in cuts.windows(2) {
                stopped |= reply.push(&bytes[cut[0]..cut[1]], &mut out);
            }
            if !stopped {
                reply.finish(&mut out);
                let joined: String = out.iter().map(|event| match event {
                    Event::Content(piece) => piece.as_str(),
                    _ => "",
                }).collect();
                prop_assert_eq!(joined, text);
            }
        }
    }
}
