//! Joins sessions about the same problem: a later one solves it, or goes on with it.

use azera_types::{ChatId, Text, Timestamp};

use super::command::shows_solved;
use super::episodes::{Read, quoted};
use super::failing::Failing;
use super::heard::Heard;
use super::says::Says;
use super::topics::{Words, shared, telling};
use super::{Ending, Episode, Problem, ProblemKind, Resolution};
use crate::rows::MessageRow;

/// Most later sessions of the project that are looked at for one problem.
const MAX_LATER: usize = 20;

/// Most commands that are compared for all problems together.
const MAX_COMPARED: usize = 1_000_000;

/// Words that a later message must share with a problem to be about it.
const SHARED_WORDS: usize = 2;

const QUOTED_CHARS: usize = 200;

/// What a later session shows about a problem.
enum Later {
    Solved(Resolution),
    GoesOn,
}

/// Returns the episodes with what later sessions show. `read` begins with the oldest session.
pub(super) fn linked(read: &[Read<'_>]) -> Vec<Episode> {
    let mut episodes: Vec<Episode> = read.iter().map(|read| read.episode.clone()).collect();
    let mut chains: Vec<(usize, usize)> = Vec::new();
    let mut left = MAX_COMPARED;
    for (number, own) in read.iter().enumerate() {
        let Ending::Open(problem) = &own.episode.ending else { continue };
        let mut search = Search::new(problem, own, left);
        let is_near = |(_, other): &(usize, &Read<'_>)| other.episode.scope == own.episode.scope;
        let mut near = read.iter().enumerate().skip(number + 1).filter(is_near).take(MAX_LATER);
        let later = near.find_map(|(other, read)| search.shows(read.heard).map(|later| (other, read, later)));
        let Search { problem, left: unused, .. } = search;
        left = unused;
        let ending = match later {
            None => Ending::Open(problem),
            Some((other, read, later)) => {
                chains.push((number, other));
                match later {
                    Later::Solved(resolution) => Ending::Resolved(problem, resolution),
                    Later::GoesOn => Ending::Continued(problem, read.episode.chat.clone()),
                }
            }
        };
        if let Some(episode) = episodes.get_mut(number) {
            episode.ending = ending;
        }
    }
    link(&mut episodes, &chains);
    episodes
}

/// Names in each episode the others of its chain.
fn link(episodes: &mut [Episode], chains: &[(usize, usize)]) {
    let mut group: Vec<usize> = (0..episodes.len()).collect();
    for (one, other) in chains {
        let (Some(&from), Some(&to)) = (group.get(*one), group.get(*other)) else { continue };
        group.iter_mut().filter(|group| **group == from).for_each(|group| *group = to);
    }
    let ids: Vec<ChatId> = episodes.iter().map(|episode| episode.chat.clone()).collect();
    for (number, episode) in episodes.iter_mut().enumerate() {
        let own = group.get(number);
        let others = ids.iter().enumerate().filter(|(other, _)| *other != number && group.get(*other) == own);
        episode.linked = others.map(|(_, id)| id.clone()).collect();
    }
}

/// Looks in later sessions for what became of a problem.
struct Search<'a> {
    own: &'a Read<'a>,
    problem: Problem,
    failing: Failing,
    telling: Words,
    /// Commands that may still be compared.
    left: usize,
}

impl<'a> Search<'a> {
    fn new(problem: &Problem, own: &'a Read<'a>, left: usize) -> Self {
        let telling = telling(problem, own.heard);
        Self { own, problem: problem.clone(), failing: own.failing.clone(), telling, left }
    }

    /// Returns what a later session shows first.
    fn shows(&mut self, heard: &Heard<'_>) -> Option<Later> {
        for own in &heard.own {
            let message = own.message;
            if message.at > self.problem.at {
                let words = shared(&own.words, &self.telling);
                match own.says {
                    Some(Says::Works(said)) if words >= SHARED_WORDS => {
                        self.failing.settled(&self.problem, &self.telling);
                        if !self.turns_to_next() {
                            let text = quoted(said, QUOTED_CHARS);
                            return Some(Later::Solved(resolution(heard, message, text, message.at)));
                        }
                    }
                    Some(Says::Fails(_)) if words >= SHARED_WORDS => return Some(Later::GoesOn),
                    None if self.problem.kind == ProblemKind::Unanswered && words * 2 > self.telling.len().max(1) => {
                        return Some(Later::GoesOn);
                    }
                    _ => {}
                }
            }
            for command in message.ran.iter().filter(|command| command.worked.is_some()) {
                if command.at <= self.problem.at {
                    continue;
                }
                self.left = self.left.checked_sub(1)?;
                if command.worked == Some(false) && self.is_about(&command.text) {
                    return Some(Later::GoesOn);
                }
                if command.worked == Some(true) && self.is_solved_by(&command.text) {
                    return Some(Later::Solved(resolution(heard, message, command.text.clone(), command.at)));
                }
            }
        }
        None
    }

    fn is_about(&self, command: &str) -> bool {
        match self.problem.kind {
            ProblemKind::Command => self.problem.text.as_str() == command,
            _ => self.failing.has(command),
        }
    }

    /// Notes a command that worked. Returns true if nothing of the problem is left.
    fn is_solved_by(&mut self, command: &str) -> bool {
        let has_mended = self.failing.worked(command);
        match self.problem.kind {
            ProblemKind::Command => shows_solved(command, &self.problem.text) && !self.turns_to_next(),
            _ => has_mended && self.failing.newest_check().is_none(),
        }
    }

    /// Goes on with the newest check that still fails. Returns false if there is none.
    fn turns_to_next(&mut self) -> bool {
        let Some(next) = self.failing.newest_check() else { return false };
        self.problem = next.clone();
        self.telling = telling(&self.problem, self.own.heard);
        true
    }
}

fn resolution(heard: &Heard<'_>, message: &MessageRow, text: Text, at: Timestamp) -> Resolution {
    Resolution { chat: heard.log.chat.id.clone(), text, message: message.id.clone(), at }
}
