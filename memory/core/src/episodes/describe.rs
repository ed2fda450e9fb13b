//! Says what an episode was about in people's own words: a title, a reason, and the names that were mentioned.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;

use azera_types::{Author, MemoryId, PersonId};

use super::Quote;
use super::marks::Marks;
use super::matters::is_joke;
use super::phrases::REASONS;
use super::read::Part;
use super::sentences::{Sentence, find_phrase, sentences};
use super::settle::quoted;
use super::topic::{Topic, topic};
use crate::domains::Episodes;
use crate::rows::MessageRow;
use crate::{Error, ReadScope, graph};

/// Most messages of one episode in which a title, a reason and names are looked for, the newest ones.
const LOOKED_AT: usize = 200;

/// Most people and names that are listed.
const MAX_PEOPLE: usize = 20;
const MAX_NAMES: usize = 12;

/// Most words of a title that count: a long message is not more typical because it has more words.
const COUNTED_WORDS: usize = 12;

/// Returns the people of a part, those who spoke most first.
pub(super) fn people(part: &Part) -> Vec<Author> {
    let mut counts: HashMap<&PersonId, (usize, usize, &Author)> = HashMap::new();
    for (number, message) in part.messages.iter().enumerate() {
        if let Some(person) = message.author.person() {
            counts.entry(person).or_insert((0, number, &message.author)).0 += 1;
        }
    }
    let mut people: Vec<_> = counts.into_values().collect();
    people.sort_by_key(|(count, first, _)| (std::cmp::Reverse(*count), *first));
    people.into_iter().take(MAX_PEOPLE).map(|(.., author)| author.clone()).collect()
}

/// Returns the names that people mentioned in a part, as they were written, by their folded form. Those of the speakers
/// are left out.
pub(super) fn names(part: &Part) -> BTreeMap<String, String> {
    let speakers: HashSet<String> = part
        .messages
        .iter()
        .flat_map(|message| message.author.name().split_whitespace().map(crate::words::fold).collect::<Vec<_>>())
        .collect();
    let mut found = BTreeMap::new();
    for message in own(part) {
        for (folded, written) in graph::names_in(&message.text) {
            let is_speaker = folded.split(' ').all(|word| speakers.contains(word));
            if found.len() < MAX_NAMES && !is_speaker {
                found.entry(folded).or_insert(written);
            }
        }
    }
    found
}

/// Returns the newest messages of people in a part.
fn own(part: &Part) -> impl Iterator<Item = &MessageRow> {
    let own = by_people(part);
    let count = own.clone().count();
    own.skip(count.saturating_sub(LOOKED_AT))
}

fn by_people(part: &Part) -> impl Iterator<Item = &MessageRow> + Clone {
    part.messages.iter().filter(|message| message.author.person().is_some())
}

impl Episodes<'_> {
    /// Returns what an episode was about: the most important statement that is marked, or else the most typical one.
    pub(super) fn title(self, read_scope: &ReadScope, part: &Part, marks: &Marks) -> Result<Option<Quote>, Error> {
        let best = main(part, marks, 1, &|_| true).into_iter().next();
        best.map(|(message, range)| self.quote(read_scope, message, &range)).transpose()
    }

    /// Returns the first reason that people gave, those of `first` before others.
    pub(super) fn why(self, read_scope: &ReadScope, part: &Part, first: &[&Quote]) -> Result<Option<Quote>, Error> {
        let of = |message: &MessageRow| reason(&message.text);
        let preferred = own(part).filter(|message| first.iter().any(|quote| quote.message == message.id));
        let found = preferred.chain(own(part)).find_map(|message| of(message).map(|range| (message, range)));
        found.map(|(message, range)| self.quote(read_scope, message, &range)).transpose()
    }

    pub(super) fn quote(
        self,
        read_scope: &ReadScope,
        message: &MessageRow,
        range: &Range<usize>,
    ) -> Result<Quote, Error> {
        let memory: Option<MemoryId> = self.0.messages().memory_of(read_scope, &message.id)?;
        Ok(Quote {
            text: quoted(&message.text, range),
            author: message.author.clone(),
            at: message.at,
            message: message.id.clone(),
            memory,
        })
    }
}

/// A sentence that may stand for its episode.
struct Candidate<'a> {
    message: &'a MessageRow,
    range: Range<usize>,
    /// How important its mark is; less than 0 without one.
    importance: f32,
    /// False for questions and jokes.
    is_plain: bool,
    /// How often its words are used in the episode.
    weight: usize,
}

impl Candidate<'_> {
    fn compare(&self, other: &Self) -> Ordering {
        let by_use = || (other.is_plain, other.weight).cmp(&(self.is_plain, self.weight));
        other.importance.total_cmp(&self.importance).then_with(by_use)
    }
}

/// Returns the statements that say most of what a part was about, the best first, one of each message that counts. Marked
/// ones come first, then those whose words the others use most.
pub(super) fn main<'a>(
    part: &'a Part,
    marks: &Marks,
    limit: usize,
    counts: &dyn Fn(&MessageRow) -> bool,
) -> Vec<(&'a MessageRow, Range<usize>)> {
    let mut uses: HashMap<u64, usize> = HashMap::new();
    for message in own(part) {
        topic(&message.text).into_iter().for_each(|word| *uses.entry(word).or_default() += 1);
    }
    // Of a long talk, the wanted time may be the beginning alone.
    let counting: Vec<&MessageRow> = by_people(part).filter(|message| counts(message)).collect();
    let mut found: Vec<Candidate<'_>> = counting
        .iter()
        .skip(counting.len().saturating_sub(LOOKED_AT))
        .map(|message| match marks.best(&message.id) {
            Some((importance, range)) => Candidate { message, range, importance, is_plain: true, weight: 0 },
            None => typical(message, &uses),
        })
        .collect();
    // The sort keeps the earlier one of equals first.
    found.sort_by(Candidate::compare);
    found.into_iter().take(limit).map(|candidate| (candidate.message, candidate.range)).collect()
}

/// Returns the sentence of a message whose words the whole part uses most.
fn typical<'a>(message: &'a MessageRow, uses: &HashMap<u64, usize>) -> Candidate<'a> {
    let weight = |words: &Topic| {
        let mut counts: Vec<usize> = words.iter().map(|word| uses.get(word).copied().unwrap_or(0)).collect();
        counts.sort_unstable_by(|one, other| other.cmp(one));
        counts.iter().take(COUNTED_WORDS).sum::<usize>()
    };
    let is_serious = !is_joke(&message.text);
    let candidate = |sentence: Sentence<'_>| Candidate {
        message,
        importance: -1.0,
        is_plain: is_serious && !sentence.is_question(),
        weight: weight(&topic(sentence.text)),
        range: sentence.range,
    };
    let all = sentences(&message.text).into_iter().map(candidate);
    let whole = 0..message.text.len();
    all.min_by(Candidate::compare).unwrap_or(Candidate {
        message,
        range: whole,
        importance: -1.0,
        is_plain: false,
        weight: 0,
    })
}

/// Returns the place of a reason in a text, from its first word to the end of the sentence.
fn reason(text: &str) -> Option<Range<usize>> {
    sentences(text).into_iter().filter(|sentence| !sentence.is_question() && !sentence.quotes()).find_map(|sentence| {
        let lower = sentence.text.to_lowercase();
        // Where lower case has other lengths, places would not fit.
        let at = REASONS.iter().filter_map(|word| find_phrase(&lower, word)).min()?;
        (lower.len() == sentence.text.len() && sentence.text.is_char_boundary(at))
            .then_some(sentence.range.start + at..sentence.range.end)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_quoted_from_its_first_word_on() {
        let text = "Hi! I sold the boat because it leaked. Sad.";
        assert_eq!(reason(text).and_then(|range| text.get(range)), Some("because it leaked."));
        assert_eq!(reason("Is it because it leaked?"), None);
        assert_eq!(reason("I sold the boat."), None);
    }
}
