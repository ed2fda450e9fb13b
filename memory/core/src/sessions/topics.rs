//! What a problem is about, by the words that tell it.

use std::collections::HashSet;

use super::{Log, Problem};
use crate::words::document_words;

/// Shortest word that tells what a text is about, in characters.
const TELLING_CHARS: usize = 4;

/// Words that tell nothing about a problem.
const COMMON: &[&str] = &[
    "about",
    "again",
    "also",
    "always",
    "because",
    "been",
    "behoben",
    "danke",
    "does",
    "done",
    "every",
    "everything",
    "fail",
    "failed",
    "failing",
    "fails",
    "fine",
    "fixed",
    "from",
    "funktioniert",
    "geht",
    "good",
    "great",
    "green",
    "have",
    "here",
    "into",
    "jetzt",
    "just",
    "klappt",
    "like",
    "look",
    "läuft",
    "make",
    "more",
    "need",
    "only",
    "pass",
    "passes",
    "please",
    "problem",
    "resolved",
    "same",
    "should",
    "solved",
    "some",
    "still",
    "thank",
    "thanks",
    "that",
    "them",
    "then",
    "there",
    "they",
    "this",
    "trick",
    "very",
    "want",
    "well",
    "were",
    "what",
    "when",
    "where",
    "which",
    "wieder",
    "will",
    "with",
    "work",
    "worked",
    "working",
    "works",
    "would",
    "your",
];

/// Words that tell something only together with others.
const VAGUE: &[&str] = &["build", "builds", "code", "error", "errors", "test", "tests"];

/// Returns the words that tell what a problem is about: those of the problem, of the message it rests on, and of the
/// first message of its session.
pub(super) fn telling(problem: &Problem, log: &Log) -> HashSet<String> {
    let message = log.messages.iter().find(|message| message.id == problem.message);
    let first = log.messages.iter().find(|message| log.is_own(message));
    let texts = [Some(problem.text.as_str()), message.map(|one| one.text.as_str()), first.map(|one| one.text.as_str())];
    texts.into_iter().flatten().flat_map(words).collect()
}

/// Returns how many of the telling words a text has.
pub(super) fn shared(text: &str, telling: &HashSet<String>) -> usize {
    words(text).collect::<HashSet<_>>().intersection(telling).count()
}

/// Returns true if a part of a sentence names nothing, such as "it works now", or something that the problem is about.
pub(super) fn may_be_about(part: &str, telling: &HashSet<String>) -> bool {
    let named: HashSet<String> = words(part).filter(|word| !VAGUE.contains(&word.as_str())).collect();
    named.is_empty() || named.intersection(telling).next().is_some()
}

fn words(text: &str) -> impl Iterator<Item = String> {
    let tells = |word: &String| word.chars().count() >= TELLING_CHARS && !COMMON.contains(&word.as_str());
    document_words(text).into_iter().filter(tells)
}
