use std::fmt;

use crate::Event;
use crate::code_spans::CodeSpans;
use crate::marks::{Found, Mark, mark_at};

/// The longest name of a channel, as in `<|channel|>analysis<|message|>`, in characters.
const MAX_CHANNEL_CHARS: usize = 120;

/// The channel that holds the reply. All others hold thinking.
const FINAL_CHANNEL: &str = "final";

/// The roles of which templates write turns.
const ROLES: [&str; 9] = ["assistant", "model", "user", "system", "tool", "developer", "bot", "chatbot", "ai"];

/// Where a reply begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Opening {
    /// Outside of thinking.
    #[default]
    Reply,
    /// Inside a thinking block that the prompt has opened.
    Thinking,
    /// Unknown: earlier replies held the end of a thinking block without its beginning. Nothing is emitted before the
    /// end of such a block, or of the reply.
    Either,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The prompt has already opened a thinking block, and its start has not been emitted yet.
    Opened,
    /// Inside a block of thinking, begun by this mark.
    Thinking(Mark),
    /// In the name of a channel.
    Channel,
    /// In the name of the role that begins a turn.
    Role,
    Content,
    /// After a further end of thinking. Content before it is thinking if more content follows.
    Stray,
}

/// What follows a step.
enum Step {
    /// The state has changed, and held text may be left.
    Continue,
    /// More text is needed.
    Wait,
    /// A stop string or the end of the turn ended the reply.
    Stop,
}

/// Converts the bytes that an engine generates to events. It emits only whole characters, separates thinking from
/// content, removes the marks of chat templates, and cuts off stop strings. A mark inside code is text.
///
/// A possible beginning of a stop string or mark is held back until it is decided. The content and the thinking do not
/// depend on where the bytes were cut.
pub struct ReplyText {
    state: State,
    /// The first bytes of an incomplete character; at most three.
    partial: Vec<u8>,
    held: String,
    stop: Vec<String>,
    code: CodeSpans,
    /// True if there is content that was not retracted.
    wrote: bool,
    /// True until something other than white space follows the beginning of the reply or of a part of it.
    fresh: bool,
    /// True if white space at the beginning of a part belongs to nothing.
    trims: bool,
    /// True if a thinking block has ended.
    thought: bool,
    /// True if an end of thinking came without its beginning.
    found_lone_end: bool,
    /// Content that may turn out to be thinking, with [`Opening::Either`].
    waiting: Option<String>,
    /// True if the content is JSON, in which nothing is removed once it has begun.
    is_json: bool,
    raw: bool,
    /// The last character of thinking.
    last: char,
}

impl fmt::Debug for ReplyText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ReplyText[{:?}, {} bytes held]", self.state, self.held.len())
    }
}

impl ReplyText {
    /// Creates a converter of a reply that ends before one of the stop strings.
    pub fn new(stop: Vec<String>, opening: Opening) -> Self {
        Self {
            state: if opening == Opening::Thinking { State::Opened } else { State::Content },
            partial: Vec::new(),
            held: String::new(),
            stop,
            code: CodeSpans::default(),
            wrote: false,
            fresh: true,
            trims: false,
            thought: false,
            found_lone_end: false,
            waiting: (opening == Opening::Either).then(String::new),
            is_json: false,
            raw: false,
            last: ' ',
        }
    }

    /// Expects JSON: marks inside it are text.
    #[must_use]
    pub fn of_json(self, is_json: bool) -> Self {
        Self { is_json, ..self }
    }

    /// Returns true if the next text belongs to a thinking block.
    pub fn is_thinking(&self) -> bool {
        matches!(self.state, State::Opened | State::Thinking(_))
    }

    /// Returns true if an end of thinking came without its beginning, so the prompt had opened the block.
    pub fn found_lone_end(&self) -> bool {
        self.found_lone_end
    }

    /// Takes some bytes of the reply, cut anywhere. Returns true if a stop string or the end of the turn ended the
    /// reply.
    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<Event>) -> bool {
        self.partial.extend_from_slice(bytes);
        decode(&mut self.partial, &mut self.held);
        self.advance(false, out)
    }

    /// Emits the held-back text when the reply ends without a stop string. `is_cut` is true if the reply was cut for
    /// its length. Then it may have ended inside a thinking block.
    pub fn finish(&mut self, is_cut: bool, out: &mut Vec<Event>) {
        if !self.partial.is_empty() {
            self.partial.clear();
            self.held.push(char::REPLACEMENT_CHARACTER);
        }
        if self.advance(true, out) {
            return;
        }
        if self.is_thinking() {
            out.push(Event::ThinkingEnd);
        }
        if is_cut && let Some(thought) = self.waiting.take() {
            self.emit_thought(thought, out);
        }
        self.flush(out);
    }

    fn advance(&mut self, is_whole: bool, out: &mut Vec<Event>) -> bool {
        loop {
            let step = match self.state {
                State::Opened => {
                    out.push(Event::ThinkingStart);
                    self.state = State::Thinking(Mark::Open);
                    Step::Continue
                }
                State::Thinking(begun_by) => self.think(begun_by, is_whole, out),
                State::Channel => self.channel(is_whole, out),
                State::Role => self.role(is_whole),
                State::Content => self.content(is_whole, out),
                State::Stray => self.stray(is_whole, out),
            };
            match step {
                Step::Continue => {}
                Step::Wait => return false,
                Step::Stop => {
                    self.held.clear();
                    self.flush(out);
                    return true;
                }
            }
        }
    }

    fn content(&mut self, is_whole: bool, out: &mut Vec<Event>) -> Step {
        if self.fresh {
            self.code = CodeSpans::default();
        }
        let mut at = 0;
        let met = loop {
            let rest = self.held.get(at..).unwrap_or_default();
            let Some(c) = rest.chars().next() else { break None };
            if self.stop.iter().any(|stop| rest.starts_with(stop.as_str())) {
                self.emit_content(at, out);
                return Step::Stop;
            }
            if !is_whole && self.stop.iter().any(|stop| stop.len() > rest.len() && stop.starts_with(rest)) {
                break None;
            }
            if matches!(c, '<' | '[') && !self.raw && !self.code.is_inside() {
                match mark_at(rest, is_whole) {
                    Found::Undecided => break None,
                    Found::Mark(mark, length) if self.counts(mark) => break Some((mark, length)),
                    Found::Mark(..) | Found::Nothing => {}
                }
            }
            if !c.is_whitespace() {
                self.raw |= self.fresh && self.is_json && matches!(c, '{' | '[' | '"');
                self.fresh = false;
                self.wrote = true;
            }
            self.code.push(c);
            at += c.len_utf8();
        };
        let Some((mark, length)) = met else {
            // White space at the beginning belongs to the reply only if text follows it.
            if !self.fresh || is_whole {
                self.emit_content(at, out);
            }
            return Step::Wait;
        };
        if self.fresh {
            self.held.drain(..at);
        } else {
            self.emit_content(at, out);
        }
        self.held.drain(..length);
        self.meet(mark, out)
    }

    /// Returns true if a mark in the content is one, and not text.
    fn counts(&self, mark: Mark) -> bool {
        match mark {
            Mark::OpenFirst => !self.wrote,
            Mark::CloseFirst => false,
            _ => true,
        }
    }

    /// Handles a mark in the content, which is already removed.
    fn meet(&mut self, mark: Mark, out: &mut Vec<Event>) -> Step {
        match mark {
            Mark::Open | Mark::OpenFirst => {
                self.flush(out);
                out.push(Event::ThinkingStart);
                self.last = ' ';
                self.state = State::Thinking(mark);
            }
            Mark::Channel => {
                self.flush(out);
                self.state = State::Channel;
            }
            Mark::Close if self.thought && self.wrote => self.state = State::Stray,
            Mark::Close => self.retract(out),
            Mark::Turn | Mark::End if self.wrote => return Step::Stop,
            Mark::Turn => self.state = State::Role,
            Mark::End | Mark::Message | Mark::Other | Mark::CloseFirst => {}
        }
        Step::Continue
    }

    fn think(&mut self, begun_by: Mark, is_whole: bool, out: &mut Vec<Event>) -> Step {
        let mut at = 0;
        while let Some(c) = self.held.get(at..).and_then(|rest| rest.chars().next()) {
            let rest = self.held.get(at..).unwrap_or_default();
            let mut length = c.len_utf8();
            if matches!(c, '<' | '[') {
                match mark_at(rest, is_whole) {
                    Found::Undecided => break,
                    Found::Mark(mark, mark_length) => {
                        let before = self.held.get(..at).and_then(|text| text.chars().next_back()).unwrap_or(self.last);
                        let after = rest.get(mark_length..).and_then(|rest| rest.chars().next());
                        if before == '`' && after.is_none() && !is_whole {
                            break;
                        }
                        if before != '`' || after != Some('`') {
                            return self.end_thought(begun_by, mark, at, mark_length, out);
                        }
                        // The thinking quotes a mark.
                        length = mark_length;
                    }
                    Found::Nothing => {}
                }
            }
            at += length;
        }
        self.emit_thinking(at, out);
        Step::Wait
    }

    /// Emits the thinking before a mark, and ends the thinking if the mark does.
    fn end_thought(&mut self, begun_by: Mark, mark: Mark, at: usize, length: usize, out: &mut Vec<Event>) -> Step {
        self.emit_thinking(at, out);
        let ends = match mark {
            Mark::Close => true,
            Mark::CloseFirst => begun_by == Mark::OpenFirst,
            Mark::End | Mark::Channel | Mark::Turn => begun_by == Mark::Channel,
            _ => false,
        };
        if !ends || !matches!(mark, Mark::Channel | Mark::Turn) {
            self.held.drain(..length);
        }
        if ends {
            out.push(Event::ThinkingEnd);
            self.thought = true;
            self.begin_part();
        }
        Step::Continue
    }

    fn channel(&mut self, is_whole: bool, out: &mut Vec<Event>) -> Step {
        let mut at = 0;
        let (name_end, text_start) = loop {
            let rest = self.held.get(at..).unwrap_or_default();
            let Some(c) = rest.chars().next() else {
                if !is_whole && self.held.chars().count() <= MAX_CHANNEL_CHARS {
                    return Step::Wait;
                }
                break (at, None);
            };
            let found = if c == '<' { mark_at(rest, is_whole) } else { Found::Nothing };
            at += match found {
                Found::Undecided => return Step::Wait,
                Found::Mark(Mark::Message, length) => break (at, Some(at + length)),
                Found::Mark(Mark::Other, length) => length,
                Found::Mark(..) => break (at, None),
                Found::Nothing if c == '\n' || at > MAX_CHANNEL_CHARS => break (at, None),
                Found::Nothing => c.len_utf8(),
            };
        };
        let name: String = self.held.get(..name_end).unwrap_or_default().trim_start().to_lowercase();
        let name = name.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
        let is_final = name == FINAL_CHANNEL;
        // Without the mark before the text, only the name is known to be no text.
        let blanks = self.held.len() - self.held.trim_start().len();
        let start = text_start.unwrap_or((blanks + name.len()).min(name_end));
        self.held.drain(..self.held.floor_char_boundary(start));
        if is_final {
            self.begin_part();
        } else {
            out.push(Event::ThinkingStart);
            self.last = ' ';
            self.state = State::Thinking(Mark::Channel);
        }
        Step::Continue
    }

    fn role(&mut self, is_whole: bool) -> Step {
        let name: String = self.held.chars().take_while(|c| c.is_alphabetic()).collect();
        let role = ROLES.contains(&name.to_lowercase().as_str());
        let next = self.held.chars().nth(name.chars().count());
        let may_become = ROLES.iter().any(|role| role.starts_with(&name.to_lowercase()));
        if next.is_none() && !is_whole && may_become {
            return Step::Wait;
        }
        if role && matches!(next, None | Some('\n' | '<')) {
            self.held.drain(..name.len());
        }
        self.begin_part();
        Step::Continue
    }

    fn stray(&mut self, is_whole: bool, out: &mut Vec<Event>) -> Step {
        let blanks = self.held.len() - self.held.trim_start().len();
        self.held.drain(..blanks);
        if self.held.is_empty() {
            return Step::Wait;
        }
        match mark_at(&self.held, is_whole) {
            Found::Undecided => return Step::Wait,
            Found::Mark(Mark::End, _) => return Step::Stop,
            Found::Mark(Mark::Other | Mark::Message | Mark::Close, length) => {
                self.held.drain(..length);
            }
            Found::Mark(..) => self.state = State::Content,
            Found::Nothing => self.retract(out),
        }
        Step::Continue
    }

    /// Makes thinking of the content so far.
    fn retract(&mut self, out: &mut Vec<Event>) {
        self.found_lone_end |= self.wrote;
        match self.waiting.take() {
            Some(thought) => self.emit_thought(thought, out),
            None if self.wrote => out.push(Event::Retracted),
            None => {}
        }
        self.thought = true;
        self.wrote = false;
        self.begin_part();
    }

    /// Goes on with content whose beginning is trimmed.
    fn begin_part(&mut self) {
        self.state = State::Content;
        self.fresh = true;
        self.trims = true;
    }

    /// Removes the first `end` bytes of the held text and emits them as content, unless they still have to wait.
    fn emit_content(&mut self, end: usize, out: &mut Vec<Event>) {
        let tail = self.held.split_off(end);
        let mut text = std::mem::replace(&mut self.held, tail);
        if self.trims {
            text = text.trim_start().to_owned();
            self.trims = text.is_empty();
        }
        match &mut self.waiting {
            Some(waiting) => waiting.push_str(&text),
            None => emit(text, Event::Content, out),
        }
    }

    /// Removes the first `end` bytes of the held text and emits them as thinking.
    fn emit_thinking(&mut self, end: usize, out: &mut Vec<Event>) {
        let tail = self.held.split_off(end);
        let text = std::mem::replace(&mut self.held, tail);
        self.last = text.chars().next_back().unwrap_or(self.last);
        emit(text, Event::Thinking, out);
    }

    fn emit_thought(&self, thought: String, out: &mut Vec<Event>) {
        if !thought.is_empty() {
            out.extend([Event::ThinkingStart, Event::Thinking(thought), Event::ThinkingEnd]);
        }
    }

    /// Emits the content that waited.
    fn flush(&mut self, out: &mut Vec<Event>) {
        emit(self.waiting.take().unwrap_or_default(), Event::Content, out);
    }
}

fn emit(text: String, event: impl Fn(String) -> Event, out: &mut Vec<Event>) {
    if !text.is_empty() {
        out.push(event(text));
    }
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
mod tests;
