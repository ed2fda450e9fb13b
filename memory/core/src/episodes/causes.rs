//! Which earlier episode the reason of a later one points at: "because the boiler broke" points at the conversation in which
//! the same person said that the boiler broke. A wrong link misleads, so a statement counts only if it repeats most of
//! the reason's words, says them as plainly, and was made by the person who gives the reason.

use std::cell::OnceCell;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use azera_types::{PersonId, Timestamp};
use jiff::SignedDuration;

use super::Quote;
use super::matters::is_joke;
use super::phrases::REASONS;
use super::read::Part;
use super::sentences::{Sentence, find_phrase, plain, sentences, words};
use super::topic::{Topic, shared, topic};
use crate::rows::MessageRow;

/// Telling words that a reason and an earlier statement must share.
const SHARED: usize = 2;

/// Days after which a statement is no reason for something new.
const DAYS: i64 = 60;

/// Words by which a sentence says that something may be, that somebody thinks or says it, or that it nearly was, and not
/// that it is.
const MAY_BE: &[&str] = &[
    "if",
    "unless",
    "hope",
    "hopefully",
    "wish",
    "might",
    "maybe",
    "perhaps",
    "probably",
    "imagine",
    "dreamt",
    "dreamed",
    "could",
    "would",
    "think",
    "thinks",
    "thought",
    "believe",
    "believed",
    "guess",
    "suppose",
    "suspect",
    "afraid",
    "fear",
    "seems",
    "apparently",
    "supposedly",
    "almost",
    "nearly",
    "say",
    "says",
    "said",
    "told",
    "hear",
    "heard",
    "falls",
    "wenn",
    "hoffe",
    "hoffentlich",
    "vielleicht",
    "könnte",
    "würde",
    "denke",
    "dachte",
    "glaube",
    "glaubte",
    "fürchte",
    "befürchte",
    "scheint",
    "anscheinend",
    "angeblich",
    "fast",
    "beinahe",
    "sagt",
    "sagte",
    "meint",
    "meinte",
    "hörte",
    "gehört",
];

/// Words by which a sentence says that something is not.
const NEGATIONS: &[&str] = &[
    "not", "no", "never", "none", "nobody", "nothing", "without", "cannot", "hardly", "neither", "nor", "nicht", "nie",
    "kein", "keine", "keinen", "ohne", "pas", "jamais", "non", "mai", "nunca", "niet", "geen",
];

/// A statement that may be what a reason speaks of.
struct Statement<'a> {
    part: usize,
    message: &'a MessageRow,
    range: Range<usize>,
    topic: Topic,
    is_negated: bool,
}

/// Statements, and by the number of a word those that hold it.
type Statements<'a> = (Vec<Statement<'a>>, HashMap<u64, Vec<usize>>);

/// Everything that people stated, by their words. It is read once somebody gives a reason.
pub(super) struct Causes<'a> {
    parts: &'a [Part],
    said: OnceCell<Statements<'a>>,
}

impl<'a> Causes<'a> {
    pub(super) fn new(parts: &'a [Part]) -> Self {
        Self { parts, said: OnceCell::new() }
    }

    /// Returns the number of the part that the reason of a later part points at, and the statement there.
    pub(super) fn of(&self, number: usize, why: &Quote) -> Option<(usize, &'a MessageRow, Range<usize>)> {
        let person = why.author.person()?;
        let reason = behind_reason_word(&plain(&why.text))?;
        let (wanted, is_negated) = (topic(&reason), is_negated(&reason));
        if wanted.len() < SHARED {
            return None;
        }
        let since = why.at.checked_sub(SignedDuration::from_hours(DAYS * 24)).unwrap_or(Timestamp::MIN);
        let (statements, by_word) = self.said.get_or_init(|| read(self.parts));
        // In order, so that the newest one is the last.
        let mut candidates: BTreeMap<usize, usize> = BTreeMap::new();
        for statement in wanted.iter().filter_map(|word| by_word.get(word)).flatten() {
            *candidates.entry(*statement).or_default() += 1;
        }
        let fits = |statement: &&Statement<'a>| {
            let both = shared(&statement.topic, &wanted);
            both >= SHARED
                && 3 * both >= 2 * wanted.len()
                && statement.part < number
                && statement.is_negated == is_negated
                && statement.message.at >= since
                && statement.message.at < why.at
                && is_by(statement.message, person)
        };
        let found = candidates.into_keys().rev().filter_map(|candidate| statements.get(candidate)).find(fits)?;
        Some((found.part, found.message, found.range.clone()))
    }
}

fn is_by(message: &MessageRow, person: &PersonId) -> bool {
    message.author.person() == Some(person)
}

/// Returns what stands behind the word that begins a reason.
fn behind_reason_word(reason: &str) -> Option<String> {
    let word = REASONS.iter().find(|word| find_phrase(reason, word) == Some(0))?;
    reason.get(word.len()..).map(str::to_owned)
}

fn is_negated(plain: &str) -> bool {
    words(plain).any(|word| NEGATIONS.contains(&word) || word.ends_with("n't"))
}

/// Returns true if a sentence says that something is so, in the speaker's own name.
fn states(sentence: &Sentence<'_>) -> bool {
    !sentence.is_question() && !sentence.quotes() && !sentence.has_any(MAY_BE)
}

fn read(parts: &[Part]) -> Statements<'_> {
    let (mut statements, mut by_word): (Vec<Statement<'_>>, HashMap<u64, Vec<usize>>) = Default::default();
    for (part, conversation) in parts.iter().enumerate() {
        for message in conversation.messages.iter().filter(|message| message.author.person().is_some()) {
            if is_joke(&message.text) {
                continue;
            }
            for sentence in sentences(&message.text).into_iter().filter(states) {
                let (topic, is_negated) = (topic(sentence.text), is_negated(&sentence.plain));
                if topic.len() >= SHARED {
                    topic.iter().for_each(|word| by_word.entry(*word).or_default().push(statements.len()));
                    statements.push(Statement { part, message, range: sentence.range, topic, is_negated });
                }
            }
        }
    }
    (statements, by_word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hearsay_and_near_misses_are_no_statements() {
        #[track_caller]
        fn check(text: &str, want: bool) {
            assert!(sentences(text).iter().all(|sentence| states(sentence) == want), "{text}");
        }
        check("The boiler broke this morning.", true);
        check("Der Keller ist vollgelaufen.", true);
        check("I think the boiler broke.", false);
        check("Ben said that the boiler broke.", false);
        check("I heard the landlord sold the building.", false);
        check("I was afraid the boiler broke.", false);
        check("The boiler almost broke.", false);
        check("We nearly missed the ferry to the island.", false);
        check("Ich dachte, der Keller ist vollgelaufen.", false);
        check("Der Keller ist fast vollgelaufen.", false);
        check("Angeblich ist der Keller vollgelaufen.", false);
    }
}
