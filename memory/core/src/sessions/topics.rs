//! What a problem is about, by the words that tell it.

use std::hash::{DefaultHasher, Hash, Hasher};

use super::Problem;
use super::heard::{Heard, beginning};
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

/// Telling words as sorted hashes, without repetition: thousands of messages have theirs in memory.
pub(super) type Words = Vec<u64>;

/// Returns the words that tell what a problem is about: those of the problem, of the message it rests on, and of the
/// first message of its session.
pub(super) fn telling(problem: &Problem, heard: &Heard<'_>) -> Words {
    let mut found = words(&problem.text);
    match heard.own.iter().find(|own| own.message.id == problem.message) {
        Some(own) => found.extend_from_slice(&own.words),
        None => {
            let message = heard.log.messages.iter().find(|message| message.id == problem.message);
            found.extend(message.map(|message| words(beginning(&message.text))).unwrap_or_default());
        }
    }
    if let Some(first) = heard.own.first() {
        found.extend_from_slice(&first.words);
    }
    sorted(found)
}

/// Returns how many words both have.
pub(super) fn shared(words: &Words, telling: &Words) -> usize {
    words.iter().filter(|word| telling.binary_search(word).is_ok()).count()
}

/// Returns true if both have a word.
pub(super) fn shares(words: &Words, telling: &Words) -> bool {
    words.iter().any(|word| telling.binary_search(word).is_ok())
}

/// Returns true if a part of a sentence names nothing, such as "it works now", or something that the problem is about.
pub(super) fn may_be_about(part: &str, telling: &Words) -> bool {
    let named = names(part);
    named.is_empty() || shares(&named, telling)
}

/// Returns the words that tell something also alone.
pub(super) fn names(text: &str) -> Words {
    sorted(spelled(text).filter(|word| !VAGUE.contains(&word.as_str())).map(|word| hash(&word)).collect())
}

/// Returns the telling words of a text.
pub(super) fn words(text: &str) -> Words {
    sorted(spelled(text).map(|word| hash(&word)).collect())
}

fn spelled(text: &str) -> impl Iterator<Item = String> {
    let tells = |word: &String| word.chars().count() >= TELLING_CHARS && !COMMON.contains(&word.as_str());
    document_words(text).into_iter().filter(tells)
}

fn hash(word: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    word.hash(&mut hasher);
    hasher.finish()
}

fn sorted(mut words: Words) -> Words {
    words.sort_unstable();
    words.dedup();
    words
}
