//! Decides when two memories say the same thing, and which of them is shown.

use std::cell::OnceCell;

use super::{Again, Hit};
use crate::rows::MemoryRow;
use crate::words::Statement;

/// Cosine similarity from which two memories with the same words but for one place look alike.
const NEAR_IN_WORDS: f32 = 0.7;

/// Most memories that are noted as saying the same.
const MAX_AGAIN: usize = 32;

/// How two memories of one scope, persona and speaker relate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Likeness {
    /// They say the same in the same words: one of them is enough.
    Same,
    /// They look alike and differ in a word: both are shown, the later first.
    Near,
    Different,
}

/// A memory whose words are split once, and only if they are compared.
struct Compared<'a> {
    memory: &'a MemoryRow,
    words: &'a OnceCell<Statement>,
}

impl Compared<'_> {
    fn words(&self) -> &Statement {
        self.words.get_or_init(|| Statement::new(&self.memory.text))
    }
}

/// Compares two memories. Vectors alone would make two locker codes equal. So texts are the same only if all words that
/// may tell them apart are.
fn likeness(a: &Compared<'_>, b: &Compared<'_>, cosine: impl FnOnce() -> Option<f32>, threshold: f32) -> Likeness {
    let (one, other) = (a.memory, b.memory);
    if one.persona != other.persona || one.scope != other.scope || one.author != other.author {
        return Likeness::Different;
    }
    if one.text == other.text {
        return Likeness::Same;
    }
    let cosine = cosine();
    let near = cosine.is_some_and(|cosine| cosine >= threshold);
    if near && a.words().is_same(b.words()) {
        return Likeness::Same;
    }
    let near_in_words =
        || cosine.is_some_and(|cosine| cosine >= NEAR_IN_WORDS) && a.words().differs_in_one_place(b.words());
    if near || near_in_words() { Likeness::Near } else { Likeness::Different }
}

/// Returns true if two memories of one scope and persona say the same, whoever said them. `is_near` tells whether their
/// meanings are close enough.
pub(crate) fn same_in_words(one: &MemoryRow, other: &MemoryRow, is_near: impl FnOnce() -> bool) -> bool {
    if one.persona != other.persona || one.scope != other.scope {
        return false;
    }
    one.text == other.text || (is_near() && Statement::new(&one.text).is_same(&Statement::new(&other.text)))
}

/// How much lower a memory may score than an earlier one that looks alike and still go before it. Scores of memories that
/// differ in one word say little about which of them answers a question; time says more.
const NEAR_SCORE: f32 = 0.25;

/// The hits of a recall, best first.
pub(super) struct Chosen<F> {
    hits: Vec<Choice>,
    wanted: usize,
    /// How many said only what another one says.
    repeated: usize,
    /// The lowest score among the hits.
    lowest: f32,
    /// Returns the cosine similarity of two hits.
    cosine: F,
    /// Cosine similarity from which two memories look alike.
    threshold: f32,
}

struct Choice {
    hit: Hit,
    words: OnceCell<Statement>,
}

impl Choice {
    fn compared(&self) -> Compared<'_> {
        Compared { memory: &self.hit.memory, words: &self.words }
    }
}

impl<F: Fn(&Hit, &Hit) -> Option<f32>> Chosen<F> {
    pub(super) fn new(wanted: usize, threshold: f32, cosine: F) -> Self {
        Self {
            hits: Vec::with_capacity(wanted.min(128)),
            wanted,
            repeated: 0,
            lowest: f32::INFINITY,
            cosine,
            threshold,
        }
    }

    /// Returns true if a hit with this score may still be chosen. Beyond the number wanted, only a later memory that
    /// looks like a chosen one is.
    pub(super) fn may_change(&self, score: f32) -> bool {
        self.wanted > 0 && (self.hits.len() < self.wanted || score >= self.lowest - NEAR_SCORE)
    }

    /// Takes the next best hit. Of two memories that say the same, the later one is shown. Of two that look alike, both
    /// are, the later first; a date in the question comes before that.
    pub(super) fn take(&mut self, hit: Hit) {
        let mut new = Choice { hit, words: OnceCell::new() };
        let dated = |hit: &Hit| hit.signals.contains(&"date");
        let is_later = |hit: &Hit, other: &Hit| hit.memory.at > other.memory.at && (dated(hit) || !dated(other));
        let alike: Vec<Likeness> = self
            .hits
            .iter()
            .map(|other| {
                let cosine = || (self.cosine)(&new.hit, &other.hit);
                likeness(&new.compared(), &other.compared(), cosine, self.threshold)
            })
            .collect();
        let same = alike.iter().position(|alike| *alike == Likeness::Same);
        self.repeated += usize::from(same.is_some());
        if let Some(other) = same.and_then(|place| self.hits.get_mut(place)) {
            if !is_later(&new.hit, &other.hit) {
                say_again(&mut other.hit, &new.hit);
                return;
            }
            say_again(&mut new.hit, &other.hit);
        }
        let near = self.hits.iter().zip(&alike).position(|(other, alike)| {
            *alike == Likeness::Near && is_later(&new.hit, &other.hit) && other.hit.score - new.hit.score <= NEAR_SCORE
        });
        let Some(place) = same.into_iter().chain(near).min() else {
            if self.hits.len() < self.wanted {
                self.lowest = new.hit.score;
                self.hits.push(new);
            }
            return;
        };
        new.hit.score = self.hits.get(place).map_or(new.hit.score, |other| other.hit.score);
        if let Some(same) = same {
            self.hits.remove(same);
        }
        self.hits.insert(place, new);
        self.hits.truncate(self.wanted);
    }

    /// Returns how many were taken that say only what another one says.
    pub(super) fn repeated(&self) -> usize {
        self.repeated
    }

    pub(super) fn into_hits(self) -> Vec<Hit> {
        self.hits.into_iter().map(|choice| choice.hit).collect()
    }
}

/// Notes that the memory of a hit says the same as the one that is shown, if it is a statement of a person.
fn say_again(shown: &mut Hit, other: &Hit) {
    let one = other.memory.is_statement().then(|| Again::of(other.memory.clone()));
    shown.again.extend(other.again.iter().cloned().chain(one).take(MAX_AGAIN.saturating_sub(shown.again.len())));
}

#[cfg(test)]
mod tests {
    use azera_types::{Author, MemoryId, PersonId, PersonaId, Scope, Text};

    use super::*;
    use crate::Validity;
    use crate::rows::Kind;

    fn memory(text: &str, who: &str) -> MemoryRow {
        let person = PersonId::new(who).unwrap();
        MemoryRow {
            salience: None,
            surprise: None,
            apart: false,
            replaced: None,
            id: MemoryId(1),
            persona: PersonaId::new("azera").unwrap(),
            kind: Kind::Message,
            scope: Scope::Dm(person.clone()),
            source_scopes: Vec::new(),
            chat: None,
            session: 0,
            author: Author::Person { id: person, name: who.into() },
            sources: Vec::new(),
            text: Text::new(text),
            at: "2026-01-01T00:00:00Z".parse().unwrap(),
        }
    }

    fn compare(one: &MemoryRow, other: &MemoryRow, cosine: Option<f32>) -> Likeness {
        let words = [OnceCell::new(), OnceCell::new()];
        let [one, other] = [(one, &words[0]), (other, &words[1])].map(|(memory, words)| Compared { memory, words });
        likeness(&one, &other, || cosine, 0.95)
    }

    #[test]
    fn the_same_statement_in_other_words_is_a_duplicate() {
        #[track_caller]
        fn check(a: &str, b: &str, cosine: f32, want: bool) {
            let found = compare(&memory(a, "ann"), &memory(b, "ann"), Some(cosine));
            assert_eq!(found == Likeness::Same, want, "{a:?} {b:?}: {found:?}");
        }
        check("My locker is 4711", "My locker is 4711", 1.0, true);
        check("My locker is 4711", "My locker is 4712", 0.99, false);
        check("I am off to see Ann", "I am off to see Bob", 0.99, false);
        check("I like tea!", "I like tea", 0.99, true);
        check("it is so hot", "so hot it is", 0.99, true);
        check("it is so hot", "so hot it is", 0.90, false);
        check("I get up at 6 am", "I get up at 6 pm", 0.99, false);
        check("you may come in", "you may not come in", 0.99, false);
        check("ich trage es rein", "ich trage es raus", 0.99, false);
        let long = "x".repeat(100);
        check(&format!("{long} one"), &format!("{long} two"), 0.5, false);
    }

    fn hit(id: u64, text: &str, score: f32) -> Hit {
        let at = azera_types::Timestamp::from_second(1_700_000_000 + i64::try_from(id).unwrap()).unwrap();
        let memory = MemoryRow { id: MemoryId(id), at, ..memory(text, "ann") };
        Hit {
            snippet: Text::new(text),
            shown: crate::Shown::new(),
            memory,
            score,
            signals: Vec::new(),
            validity: Validity::default(),
            again: Vec::new(),
        }
    }

    #[track_caller]
    fn check_chosen(wanted: usize, hits: &[(u64, &str, f32)], want: &[u64]) {
        let mut chosen = Chosen::new(wanted, 0.95, |_: &Hit, _: &Hit| Some(0.99));
        for (id, text, score) in hits {
            if chosen.may_change(*score) {
                chosen.take(hit(*id, text, *score));
            }
        }
        let ids: Vec<u64> = chosen.into_hits().iter().map(|hit| hit.memory.id.0).collect();
        assert_eq!(ids, want, "{hits:?}");
    }

    #[test]
    fn the_later_of_two_similar_memories_is_never_left_out_for_the_earlier() {
        check_chosen(5, &[(1, "we may go", 1.00), (2, "we may not go", 0.85)], &[2, 1]);
        check_chosen(5, &[(2, "we may not go", 1.00), (1, "we may go", 0.95)], &[2, 1]);
        check_chosen(1, &[(1, "we may go", 1.00), (2, "we may not go", 0.95)], &[2]);
        check_chosen(1, &[(1, "we may go", 1.00), (2, "we may not go", 0.5)], &[1]);
        check_chosen(5, &[(1, "tea at 6", 1.0), (2, "tea at 7", 0.99), (3, "tea at 6", 0.98)], &[3, 2]);
        check_chosen(0, &[(1, "we may go", 1.0)], &[]);
    }

    #[test]
    fn what_was_said_again_is_shown_once_with_its_latest_time() {
        check_chosen(5, &[(1, "I like tea", 1.0), (2, "I like tea!", 0.9), (3, "i really like tea", 0.8)], &[3]);
    }

    #[test]
    fn a_statement_counts_each_chat_once() {
        let mut chosen = Chosen::new(5, 0.95, |_: &Hit, _: &Hit| None);
        for (id, chat) in [(1, "a"), (4, "b"), (2, "c"), (3, "b")] {
            let mut hit = hit(id, "I like tea", 1.0);
            hit.memory.chat = azera_types::ChatId::new(chat).ok();
            hit.memory.kind = Kind::Fact;
            chosen.take(hit);
        }
        let hits = chosen.into_hits();
        let ids: Vec<u64> = hits[0].again.iter().map(|again| again.memory.0).collect();
        assert_eq!((hits.len(), hits[0].memory.id.0, ids, hits[0].chats()), (1, 4, vec![1, 2, 3], 3));
    }

    #[test]
    fn stock_phrases_and_words_of_the_persona_are_not_counted() {
        let chats = |kind: Kind, author: Option<Author>| {
            let mut chosen = Chosen::new(5, 0.95, |_: &Hit, _: &Hit| None);
            for (id, chat) in [(1, "a"), (2, "b"), (3, "c")] {
                let mut hit = hit(id, "good morning", 1.0);
                hit.memory.chat = azera_types::ChatId::new(chat).ok();
                hit.memory.kind = kind;
                hit.memory.author = author.clone().unwrap_or(hit.memory.author);
                chosen.take(hit);
            }
            let hits = chosen.into_hits();
            (hits.len(), hits[0].chats(), hits[0].again.len())
        };
        assert_eq!(chats(Kind::Fact, None), (1, 3, 2));
        assert_eq!(chats(Kind::Message, None), (1, 0, 0), "nothing was found to be worth keeping");
        assert_eq!(chats(Kind::Reply, Some(Author::Forgotten)), (1, 0, 0), "nobody is known to have said it");
    }

    #[test]
    fn memories_of_different_people_are_no_duplicates() {
        let (a, b) = (memory("the sea is calm", "ann"), memory("the sea is calm", "bob"));
        assert_eq!(compare(&a, &b, Some(1.0)), Likeness::Different);
    }
}
