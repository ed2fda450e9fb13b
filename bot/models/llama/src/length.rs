//! How long a reply may get. Thoughts have a limit of their own: a thinking model would otherwise spend the whole reply
//! on them, and answer nothing.

use std::collections::VecDeque;

use llama_cpp_2::token::LlamaToken;

/// The limit of the thoughts before a reply.
#[derive(Debug)]
pub(crate) struct Thoughts {
    /// The most tokens.
    pub(crate) most: usize,
    /// The tokens that end a thinking block; empty if they are unknown.
    pub(crate) closing: Vec<LlamaToken>,
}

/// Counts the tokens of a reply and of its thoughts.
#[derive(Debug)]
pub(crate) struct Length {
    max_tokens: usize,
    thoughts: Option<Thoughts>,
    generated: usize,
    thought: usize,
    /// The tokens that come next instead of what the model chooses.
    forced: VecDeque<LlamaToken>,
    /// True if the present token is one of these.
    is_forced: bool,
}

impl Length {
    /// Creates the count of a reply of at most `max_tokens`. Without `thoughts`, thinking counts as part of the reply.
    pub(crate) fn new(max_tokens: usize, thoughts: Option<Thoughts>) -> Self {
        Self { max_tokens, thoughts, generated: 0, thought: 0, forced: VecDeque::new(), is_forced: false }
    }

    /// Returns the most tokens of the reply, its thoughts and their end together.
    pub(crate) fn most(&self) -> usize {
        let thoughts =
            self.thoughts.as_ref().map_or(0, |thoughts| thoughts.most.saturating_add(thoughts.closing.len()));
        self.max_tokens.saturating_add(thoughts)
    }

    /// Returns the tokens so far.
    pub(crate) fn generated(&self) -> usize {
        self.generated
    }

    /// Returns the next token of the end of the thoughts, if they have reached their limit.
    pub(crate) fn next_of_closing(&mut self) -> Option<LlamaToken> {
        let token = self.forced.pop_front();
        self.is_forced = token.is_some();
        token
    }

    /// Counts a token, which began inside a thinking block or left one open. Returns true if the reply has reached its
    /// limit.
    pub(crate) fn count(&mut self, was_thinking: bool, is_thinking: bool) -> bool {
        self.generated += 1;
        let Some(thoughts) = &self.thoughts else { return self.generated >= self.max_tokens };
        if was_thinking || self.is_forced {
            self.thought += 1;
            // The thoughts end once. A model that begins to think again is at its limit soon.
            if is_thinking && self.thought == thoughts.most {
                self.forced.extend(&thoughts.closing);
            }
        }
        self.generated - self.thought >= self.max_tokens || self.generated >= self.most()
    }
}

#[cfg(test)]
mod tests {
    use azera_model_api::{Event, Opening, ReplyText};

    use super::*;

    const CLOSING: [&str; 3] = ["\n", "</think>", "\n\n"];

    /// Lets a model go on that thinks `thinks` tokens by itself, and then speaks without an end. Returns the thoughts,
    /// the reply, and the number of tokens.
    fn run(max_tokens: usize, thoughts: Option<usize>, thinks: usize) -> (String, String, usize) {
        let closing = (0..3).map(LlamaToken::new).collect();
        let mut length = Length::new(max_tokens, thoughts.map(|most| Thoughts { most, closing }));
        let mut text = ReplyText::new(Vec::new(), Opening::Thinking);
        let mut events = Vec::new();
        let mut own = (0..thinks).map(|_| "hm ").chain(["</think>"]).chain(std::iter::repeat("word "));
        loop {
            let was_thinking = text.is_thinking();
            let piece = match length.next_of_closing() {
                Some(token) => CLOSING[usize::try_from(token.0).unwrap()],
                // Whoever thought to the limit and was stopped goes on with the reply.
                None if !was_thinking => "word ",
                None => own.next().unwrap(),
            };
            text.push(piece.as_bytes(), &mut events);
            if length.count(was_thinking, text.is_thinking()) {
                break;
            }
        }
        text.finish(true, &mut events);
        let (mut thought, mut said) = (String::new(), String::new());
        for event in events {
            match event {
                Event::Thinking(piece) => thought.push_str(&piece),
                Event::Content(piece) => said.push_str(&piece),
                _ => {}
            }
        }
        (thought, said, length.generated())
    }

    #[test]
    fn thoughts_end_at_their_own_limit_and_the_reply_keeps_its_length() {
        let (thought, said, generated) = run(20, Some(100), 300);
        assert_eq!(thought.matches("hm").count(), 100, "{thought}");
        assert_eq!(said.matches("word").count(), 20, "{said}");
        assert_eq!(generated, 123, "the end of the thoughts has three tokens");
    }

    #[test]
    fn thoughts_that_end_by_themselves_leave_the_reply_its_length() {
        let (thought, said, generated) = run(20, Some(100), 30);
        assert_eq!((thought.matches("hm").count(), said.matches("word").count(), generated), (30, 20, 51));
    }

    #[test]
    fn thoughts_whose_end_is_unknown_go_on_to_the_limit_of_both() {
        let mut length = Length::new(2, Some(Thoughts { most: 3, closing: Vec::new() }));
        let is_over: Vec<bool> = (0..5).map(|_| length.count(true, true)).collect();
        assert_eq!(is_over, [false, false, false, false, true]);
        assert!(length.next_of_closing().is_none());
    }

    #[test]
    fn without_a_limit_of_their_own_thoughts_are_part_of_the_reply() {
        let (thought, said, generated) = run(20, None, 300);
        assert_eq!((thought.matches("hm").count(), said.as_str(), generated), (20, "", 20));
    }
}
