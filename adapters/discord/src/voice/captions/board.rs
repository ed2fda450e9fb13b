//! The lines that wait to be posted in the thread of a call's captions.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use azera_types::MessageId;
use serenity::all::{ChannelId, MessageId as ShownId};
use tokio::sync::Notify;
use tokio::time::Instant;

/// Most lines that wait. While Discord takes none, older ones are dropped.
const MAX_WAITING: usize = 200;

/// Longest text of a message, in characters. Discord allows 2,000.
const MESSAGE_CHARS: usize = 1_900;

/// Longest text of a line, in characters. What is longer becomes several lines.
const LINE_CHARS: usize = 900;

/// Stands for lines that were dropped.
const MISSING: &str = "*(some captions are missing)*";

/// A line of captions.
#[derive(Clone)]
pub(super) struct Line {
    /// The utterance or reply.
    pub(super) said: MessageId,
    pub(super) text: String,
    /// When it began to wait.
    pub(super) since: Instant,
}

#[derive(Default)]
struct Waiting {
    lines: VecDeque<Line>,
    /// True if lines were dropped since the last message.
    is_gap: bool,
    /// Said at the end, once the captions are over.
    farewell: Option<&'static str>,
}

/// The captions of a call, on their way into a thread.
pub(super) struct Board {
    /// Names these captions, and no others.
    pub(super) name: String,
    /// The voice channel, the text channel of the thread, and the thread.
    pub(super) voice: ChannelId,
    /// See `voice`.
    pub(super) parent: ChannelId,
    /// See `voice`.
    pub(super) thread: ChannelId,
    waiting: Mutex<Waiting>,
    /// The last message that was posted.
    last: Mutex<Option<ShownId>>,
    wake: Notify,
}

impl Board {
    pub(super) fn new(name: String, voice: ChannelId, parent: ChannelId, thread: ChannelId) -> Self {
        Self { name, voice, parent, thread, waiting: Mutex::default(), last: Mutex::default(), wake: Notify::new() }
    }

    /// Returns the last message that was posted.
    pub(super) fn last_posted(&self) -> Option<ShownId> {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that a message was posted.
    pub(super) fn posted(&self, message: ShownId) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(message);
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds what somebody said. Nothing comes after the end.
    pub(super) fn add(&self, said: &MessageId, name: &str, text: &str) {
        let since = Instant::now();
        let mut waiting = self.lock();
        if waiting.farewell.is_some() {
            return;
        }
        for text in lines(name, text) {
            waiting.lines.push_back(Line { said: said.clone(), text, since });
        }
        while waiting.lines.len() > MAX_WAITING {
            waiting.lines.pop_front();
            waiting.is_gap = true;
        }
        drop(waiting);
        self.wake.notify_one();
    }

    /// Ends the captions. Only the first farewell counts.
    pub(super) fn end(&self, farewell: &'static str) {
        self.lock().farewell.get_or_insert(farewell);
        self.wake.notify_one();
    }

    /// Returns the farewell, once the captions are over.
    pub(super) fn farewell(&self) -> Option<&'static str> {
        self.lock().farewell
    }

    /// Waits until there is something to do.
    pub(super) async fn woken(&self) {
        self.wake.notified().await;
    }

    /// Returns the lines that fit into the next message, oldest first.
    pub(super) fn next(&self) -> Vec<Line> {
        let waiting = self.lock();
        let mut chars = MISSING.len();
        let fits = |line: &&Line| {
            chars += line.text.chars().count() + 1;
            chars <= MESSAGE_CHARS
        };
        waiting.lines.iter().take_while(fits).cloned().collect()
    }

    /// Removes lines from the front, because they are posted or not to be posted. Others may have been dropped meanwhile.
    pub(super) fn done(&self, lines: &[Line]) {
        let mut waiting = self.lock();
        waiting.lines.retain(|line| !lines.iter().any(|done| done.said == line.said && done.text == line.text));
    }

    /// Returns whether lines were dropped since the last message.
    pub(super) fn is_gap(&self) -> bool {
        self.lock().is_gap
    }

    /// Records that a message said that lines are missing.
    pub(super) fn gap_is_said(&self) {
        self.lock().is_gap = false;
    }

    /// Records that a line is missing.
    pub(super) fn miss(&self) {
        self.lock().is_gap = true;
    }

    /// Drops all lines.
    pub(super) fn clear(&self) {
        let mut waiting = self.lock();
        waiting.is_gap |= !waiting.lines.is_empty();
        waiting.lines.clear();
    }

    /// Returns what is written below the last line, once the captions are over and all lines are posted.
    pub(super) fn last_words(&self) -> Option<String> {
        let waiting = self.lock();
        let farewell = waiting.farewell.filter(|_| waiting.lines.is_empty())?;
        Some(if waiting.is_gap { format!("{MISSING}\n{farewell}") } else { farewell.to_owned() })
    }
}

/// Returns true if the text of a message of the bot consists of captions.
pub(super) fn is_caption(text: &str) -> bool {
    let is_line = |line: &str| line == MISSING || (line.starts_with("**") && line.contains(":** "));
    !text.is_empty() && text.lines().all(is_line)
}

/// Returns the text of a message with these lines; `is_gap` says that some are missing before them.
pub(super) fn content(lines: &[&Line], is_gap: bool) -> String {
    let texts = lines.iter().map(|line| line.text.as_str());
    is_gap.then_some(MISSING).into_iter().chain(texts).collect::<Vec<_>>().join("\n")
}

/// Returns what somebody said as lines: one, unless it is very long.
fn lines(name: &str, text: &str) -> Vec<String> {
    let name: String = one_line(name).chars().filter(|c| !matches!(c, '*' | '_' | '`' | '~' | '|')).collect();
    let mut parts: Vec<String> = Vec::new();
    for word in one_line(text).split(' ').filter(|word| !word.is_empty()) {
        // A word without an end is cut.
        let word: String = word.chars().take(LINE_CHARS).collect();
        match parts.last_mut() {
            Some(part) if part.chars().count() + word.chars().count() < LINE_CHARS => {
                part.push(' ');
                part.push_str(&word);
            }
            _ => parts.push(word),
        }
    }
    parts.into_iter().map(|part| format!("**{name}:** {part}")).collect()
}

/// Puts a text into one line. Code blocks are not read aloud, so they are no captions either.
fn one_line(text: &str) -> String {
    let outside = text.split("```").step_by(2).collect::<Vec<_>>().join(" ");
    outside.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> MessageId {
        MessageId::new(text).unwrap()
    }

    fn board() -> Board {
        Board::new(String::new(), ChannelId::new(1), ChannelId::new(2), ChannelId::new(3))
    }

    #[tokio::test]
    async fn what_fits_into_one_message_comes_together() {
        let board = board();
        board.add(&id("a"), "Ann", "Hello\nthere.");
        board.add(&id("b"), "*Bob*", &"word ".repeat(300));
        let next = board.next();
        let texts: Vec<&str> = next.iter().map(|line| line.text.as_str()).collect();
        assert_eq!(texts[0], "**Ann:** Hello there.");
        assert!(texts[1].starts_with("**Bob:** word word") && texts.len() == 3, "{texts:?}");
        assert!(content(&next.iter().collect::<Vec<_>>(), false).chars().count() <= 2_000);
        board.done(&next);
        assert!(board.next().is_empty());
    }

    #[tokio::test]
    async fn too_many_lines_leave_a_gap_that_is_said() {
        let board = board();
        for number in 0..MAX_WAITING + 10 {
            board.add(&id(&number.to_string()), "Ann", "Hello.");
        }
        let first = board.next().remove(0);
        assert_eq!(first.said, id("10"));
        assert!(board.is_gap());
        assert_eq!(content(&[&first], true), format!("{MISSING}\n**Ann:** Hello."));
        board.gap_is_said();
        board.done(&[first]);
        assert!(!board.is_gap());
        assert_eq!(board.next()[0].said, id("11"));
        board.end("Over.");
        board.end("Over again.");
        board.add(&id("late"), "Ann", "Hello.");
        assert_eq!(board.farewell(), Some("Over."));
        assert_eq!(board.last_words(), None, "lines wait");
        assert!(board.next().iter().all(|line| line.said != id("late")));
        board.clear();
        assert_eq!(board.last_words(), Some(format!("{MISSING}\nOver.")));
        board.gap_is_said();
        assert_eq!(board.last_words().as_deref(), Some("Over."));
        board.miss();
        assert!(board.is_gap());
    }

    #[test]
    fn captions_are_told_from_notices() {
        let said = lines("Ann", "Hello *there*.");
        let line = Line { said: id("a"), text: said[0].clone(), since: Instant::now() };
        assert!(is_caption(&content(&[&line], true)));
        for notice in ["*The call is over, and so are its captions.*", "", "Captions of what is said in <#1>."] {
            assert!(!is_caption(notice), "{notice}");
        }
    }

    #[test]
    fn code_is_no_caption() {
        assert_eq!(lines("Azera", "Run this:\n```sh\nls\n```\nand wait."), ["**Azera:** Run this: and wait."]);
        assert!(lines("Azera", "```\nls\n```").is_empty());
        assert_eq!(lines("A", &"x".repeat(2_000))[0].chars().count(), LINE_CHARS + 7);
    }
}
