//! Reads one session: what was asked, and whether it ended with a problem. An assistant's claim that something works
//! proves nothing; a command that works, or the person's word, does.

use azera_types::{Text, Timestamp};

use super::command::{checks, shows_solved};
use super::failing::Failing;
use super::heard::{Heard, Own};
use super::says::{Says, admits, asks, subject};
use super::topics::{may_be_about, telling};
use super::{Ending, Episode, Problem, ProblemKind, Resolution};
use crate::rows::{MessageRow, RanCommand};
use crate::shortened;

/// Longest title and longest quotation, in characters.
const TITLE_CHARS: usize = 100;
const QUOTED_CHARS: usize = 200;

/// A session with what was learnt of it.
pub(super) struct Read<'a> {
    pub(super) heard: &'a Heard<'a>,
    pub(super) episode: Episode,
    /// Commands whose last run in it failed.
    pub(super) failing: Failing,
}

/// Returns a session; `None` if its person said nothing in it.
pub(super) fn of<'a>(heard: &'a Heard<'a>) -> Option<Read<'a>> {
    let log = heard.log;
    let first = heard.own.first()?.message;
    let span = (log.messages.first()?.at, log.messages.last()?.at);
    let mut course = Course { heard, open: None, solved: None, failing: Failing::default() };
    for own in &heard.own {
        course.said(own);
        for command in &own.message.ran {
            course.ran(own.message, command);
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
        requests: heard.own.len(),
        commands: log.messages.iter().map(|message| message.ran.len()).sum(),
        ending,
        linked: Vec::new(),
    };
    Some(Read { heard, episode, failing: course.failing })
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
    heard: &'a Heard<'a>,
    open: Option<Problem>,
    solved: Option<(Problem, Resolution)>,
    failing: Failing,
}

impl Course<'_> {
    fn said(&mut self, own: &Own<'_>) {
        match own.says {
            Some(Says::Works(words)) => {
                let Some(open) = &self.open else { return };
                let telling = telling(open, self.heard);
                if may_be_about(subject(words), &telling) {
                    self.failing.settled(open, &telling);
                    self.solve(own.message, quoted(words, QUOTED_CHARS), own.message.at);
                }
            }
            Some(Says::Fails(words)) => self.fail(ProblemKind::Said, words, own.message, own.message.at),
            None => {}
        }
    }

    fn ran(&mut self, message: &MessageRow, command: &RanCommand) {
        let text = command.text.as_str();
        match command.worked {
            None => {}
            Some(false) => {
                self.fail(ProblemKind::Command, text, message, command.at);
                self.open.iter().for_each(|problem| self.failing.failed(problem.clone()));
            }
            Some(true) => {
                let has_mended = self.failing.worked(text);
                let is_solved = match &self.open {
                    Some(open) if open.kind == ProblemKind::Command => shows_solved(text, &open.text),
                    // The person's complaint was about what failed before.
                    Some(_) => has_mended && self.failing.newest_check().is_none(),
                    None => false,
                };
                let is_given_up = |open: &Problem| open.kind == ProblemKind::Command && !checks(&open.text);
                if is_solved {
                    self.solve(message, command.text.clone(), command.at);
                } else if self.open.as_ref().is_some_and(is_given_up) {
                    // Something else worked after it, so the session went another way.
                    self.open = None;
                    self.reopen();
                }
            }
        }
    }

    /// Notes how the session ended.
    fn ended(&mut self) {
        let Some(last) = self.heard.log.messages.last() else { return };
        let (kind, words) = match self.heard.log.is_own(last) {
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
        let resolution = Resolution { chat: self.heard.log.chat.id.clone(), text, message: message.id.clone(), at };
        self.solved = Some((problem, resolution));
        self.reopen();
    }

    /// Goes back to the newest check that failed before and was not mended.
    fn reopen(&mut self) {
        if let Some(problem) = self.failing.newest_check() {
            self.open = Some(problem.clone());
            self.solved = None;
        }
    }
}
