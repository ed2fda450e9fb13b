//! Joins sessions about the same problem: a later one solves it, or goes on with it.

use std::collections::HashSet;

use azera_types::{ChatId, Text};

use super::command::shows_solved;
use super::episodes::{Read, quoted};
use super::says::{Says, says};
use super::topics::{shared, telling};
use super::{Ending, Episode, Log, Problem, ProblemKind, Resolution};
use crate::rows::MessageRow;

/// Words that a later message must share with a problem to be about it.
const SHARED_WORDS: usize = 2;

const QUOTED_CHARS: usize = 200;

/// What a later session shows about a problem.
enum Later {
    Solved(Resolution),
    GoesOn,
}

/// Returns the episodes with what later sessions show. `read` and `logs` begin with the oldest session.
pub(super) fn linked(read: Vec<Read>, logs: &[Log]) -> Vec<Episode> {
    let mut episodes: Vec<Episode> = read.iter().map(|read| read.episode.clone()).collect();
    let mut chains: Vec<(usize, usize)> = Vec::new();
    for (number, read) in read.iter().enumerate() {
        let Ending::Open(problem) = &read.episode.ending else { continue };
        let own = logs.iter().find(|log| log.chat.id == read.episode.chat);
        let telling = own.map(|log| telling(problem, log)).unwrap_or_default();
        let later = episodes.iter().enumerate().skip(number + 1).find_map(|(other, episode)| {
            let log = logs.iter().find(|log| log.chat.id == episode.chat && log.scope == read.episode.scope)?;
            shows(log, problem, &read.failing, &telling).map(|later| (other, later))
        });
        let Some((other, later)) = later else { continue };
        chains.push((number, other));
        let Some(chat) = episodes.get(other).map(|episode| episode.chat.clone()) else { continue };
        if let Some(episode) = episodes.get_mut(number) {
            episode.ending = match later {
                Later::Solved(resolution) => Ending::Resolved(problem.clone(), resolution),
                Later::GoesOn => Ending::Continued(problem.clone(), chat),
            };
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

/// Returns what a later session shows first about a problem.
fn shows(log: &Log, problem: &Problem, failing: &[String], telling: &HashSet<String>) -> Option<Later> {
    let is_later = |at| at > problem.at;
    for message in log.messages.iter().filter(|message| log.is_own(message)) {
        let words = || shared(&message.text, telling);
        if is_later(message.at) {
            match says(&message.text) {
                Some(Says::Works(said)) if words() >= SHARED_WORDS => {
                    return Some(Later::Solved(resolution(log, message, quoted(said, QUOTED_CHARS), message.at)));
                }
                Some(Says::Fails(_)) if words() >= SHARED_WORDS => return Some(Later::GoesOn),
                None if problem.kind == ProblemKind::Unanswered && words() * 2 > telling.len().max(1) => {
                    return Some(Later::GoesOn);
                }
                _ => {}
            }
        }
        for command in message.ran.iter().filter(|command| is_later(command.at)) {
            let is_same = |failed: &str| match command.worked {
                Some(true) => shows_solved(&command.text, failed),
                Some(false) => command.text.as_str() == failed,
                None => false,
            };
            let is_about = match problem.kind {
                ProblemKind::Command => is_same(&problem.text),
                _ => failing.iter().any(|failed| is_same(failed)),
            };
            match command.worked.filter(|_| is_about) {
                Some(true) => {
                    return Some(Later::Solved(resolution(log, message, command.text.clone(), command.at)));
                }
                Some(false) => return Some(Later::GoesOn),
                None => {}
            }
        }
    }
    None
}

fn resolution(log: &Log, message: &MessageRow, text: Text, at: azera_types::Timestamp) -> Resolution {
    Resolution { chat: log.chat.id.clone(), text, message: message.id.clone(), at }
}
