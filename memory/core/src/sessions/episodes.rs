//! Reads one session: what was asked, and whether it ended with a problem. An assistant's claim that something works
//! proves nothing; a command that works, or the person's word, does.

use azera_types::{Text, Timestamp};

use super::command::{checks, shows_solved};
use super::says::{Says, admits, asks, says, subject};
use super::topics::{may_be_about, telling};
use super::{Ending, Episode, Log, Problem, ProblemKind, Resolution};
use crate::rows::{MessageRow, RanCommand};
use crate::shortened;

/// Longest title and longest quotation, in characters.
const TITLE_CHARS: usize = 100;
const QUOTED_CHARS: usize = 200;

/// A session with what was learnt of it.
pub(super) struct Read {
    pub(super) episode: Episode,
    /// Commands whose last run in it failed.
    pub(super) failing: Vec<String>,
}

/// Returns a session; `None` if its person said nothing in it.
pub(super) fn of(log: &Log) -> Option<Read> {
    let mut own = log.messages.iter().filter(|message| log.is_own(message));
    let first = own.next()?;
    let span = (log.messages.first()?.at, log.messages.last()?.at);
    let mut course = Course { log, open: None, solved: None, failing: Vec::new() };
    for message in log.messages.iter().filter(|message| log.is_own(message)) {
        course.said(message);
        for command in &message.ran {
            course.ran(message, command);
        }
    }
    course.ended();
    let ending = match (course.open, course.solved) {
        (Some(problem), _) => Ending::Open(problem),
        (None, Some((problem, resolution))) => Ending::Resolved(problem, resolution),
        (None, None) => Ending::Plain,
    };
    let episode = Episode {
        chat: log.chat.id.clone(),
        scope: log.scope.clone(),
        person: log.by.clone(),
        title: log.chat.title.as_deref().map_or_else(|| title(&first.text), Text::new),
        asked: first.id.clone(),
        span,
        requests: 1 + own.count(),
        commands: log.messages.iter().map(|message| message.ran.len()).sum(),
        ending,
        linked: Vec::new(),
    };
    Some(Read { episode, failing: course.failing })
}

fn title(text: &str) -> Text {
    let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    quoted(line, TITLE_CHARS)
}

pub(super) fn quoted(text: &str, chars: usize) -> Text {
    let words: Vec<&str> = text.split_whitespace().collect();
    shortened(&words.join(" "), "", chars)
}

/// What a session showed so far.
struct Course<'a> {
    log: &'a Log,
    open: Option<Problem>,
    solved: Option<(Problem, Resolution)>,
    failing: Vec<String>,
}

impl Course<'_> {
    fn said(&mut self, message: &MessageRow) {
        match says(&message.text) {
            Some(Says::Works(words)) => {
                let is_about = |open: &Problem| may_be_about(subject(words), &telling(open, self.log));
                if self.open.as_ref().is_some_and(is_about) {
                    self.failing.clear();
                    self.solve(message, quoted(words, QUOTED_CHARS), message.at);
                }
            }
            Some(Says::Fails(words)) => self.fail(ProblemKind::Said, words, message, message.at),
            None => {}
        }
    }

    fn ran(&mut self, message: &MessageRow, command: &RanCommand) {
        let text = command.text.as_str();
        match command.worked {
            None => {}
            Some(false) => {
                if !self.failing.iter().any(|failing| failing == text) {
                    self.failing.push(text.to_owned());
                }
                self.fail(ProblemKind::Command, text, message, command.at);
            }
            Some(true) => {
                let known = self.failing.len();
                self.failing.retain(|failing| !shows_solved(text, failing));
                let is_solved = match &self.open {
                    Some(open) if open.kind == ProblemKind::Command => shows_solved(text, &open.text),
                    // The person's complaint was about what failed before.
                    Some(_) => self.failing.len() < known,
                    None => false,
                };
                if is_solved {
                    self.solve(message, command.text.clone(), command.at);
                } else if self
                    .open
                    .as_ref()
                    .is_some_and(|open| open.kind == ProblemKind::Command && !checks(&open.text))
                {
                    // Something else worked after it, so the session went another way.
                    self.open = None;
                }
            }
        }
    }

    /// Notes how the session ended.
    fn ended(&mut self) {
        let Some(last) = self.log.messages.last() else { return };
        let (kind, words) = match self.log.is_own(last) {
            true if last.ran.is_empty() => (ProblemKind::Unanswered, asks(&last.text)),
            true => return,
            false => (ProblemKind::Admitted, admits(&last.text)),
        };
        if let Some(words) = words.filter(|_| self.open.is_none()) {
            self.fail(kind, words, last, last.at);
        }
    }

    fn fail(&mut self, kind: ProblemKind, text: &str, message: &MessageRow, at: Timestamp) {
        let text = quoted(text, QUOTED_CHARS);
        self.open = Some(Problem { kind, text, message: message.id.clone(), at });
        self.solved = None;
    }

    fn solve(&mut self, message: &MessageRow, text: Text, at: Timestamp) {
        let Some(problem) = self.open.take() else { return };
        let resolution = Resolution { chat: self.log.chat.id.clone(), text, message: message.id.clone(), at };
        self.solved = Some((problem, resolution));
    }
}
