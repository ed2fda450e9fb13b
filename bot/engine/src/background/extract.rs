//! Marks in the record what is worth remembering, in the speakers' own words, and compares it with what was marked
//! before.

use std::collections::HashSet;

use azera_affect::{Classifiers, ConversationMessage, ExtractedMemory, Kind, SalienceClassifier};
use azera_memory::words::{known_language, replaces_numbers, same_statement, turning_words};
use azera_memory::{Memory, MemoryRow, MessageRow, ReadScope, Salience, Superseded};
use azera_types::{MessageId, PersonId};

use super::claims::may_replace;
use crate::background::Background;
use crate::error::Error;
use crate::learning_stages::{LearningStage, StageClock};
use crate::vectors::cosine;

/// Newest salient memories of a person that a new one is compared with, and most that are older than an old one.
const COMPARED: usize = 64;

/// Cosine similarity from which two statements are duplicates, if their numbers and names are the same.
pub(super) const SAME: f32 = 0.85;

/// Cosine similarity from which one statement may contradict another in different words.
const RELATED: f32 = 0.45;

/// Maximum number of earlier statements whose claims the model compares with a new one.
const MAX_CLAIMS: usize = 3;

/// Whether the chat model compares a statement with earlier ones when it is marked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Comparison {
    Now,
    /// There is no model that could. Somebody compares it later.
    Later,
    /// It was marked without a model before.
    Again,
}

impl Background {
    /// Returns what the classifiers find worth remembering in a conversation, each with the last message that says it.
    pub(super) async fn find_salient<'a>(
        &self,
        classifiers: &Classifiers,
        rows: &[&'a MessageRow],
    ) -> Result<Vec<(&'a MessageRow, Salience)>, Error> {
        let clock = StageClock::start(&self.services.measurements.learning, LearningStage::Extract);
        let of_people = |row: &MessageRow| row.author.person().is_some();
        let sentences = |row: &&MessageRow| match of_people(row) {
            true => SalienceClassifier::sentences(&row.text).into_iter().map(str::to_owned).collect(),
            false => Vec::new(),
        };
        let sentences: Vec<Vec<String>> = rows.iter().map(sentences).collect();
        let mut vectors = self.indexer.embed(sentences.iter().flatten().cloned().collect()).await?.into_iter();
        let vectors: Vec<Vec<Vec<f32>>> =
            sentences.iter().map(|own| vectors.by_ref().take(own.len()).collect()).collect();
        let said: Vec<ConversationMessage<'_>> = rows
            .iter()
            .zip(&vectors)
            .map(|(row, vectors)| ConversationMessage {
                speaker: row.author.name(),
                is_bot: !of_people(row),
                text: row.text.as_str(),
                vectors,
            })
            .collect();
        let found =
            classifiers.salience.extract(&said).into_iter().filter_map(|memory| mark_of(rows, memory)).collect();
        clock.done();
        Ok(found)
    }

    /// Marks a message as salient, and compares it with what the same person said in the same place before. Of two
    /// duplicates the richer one stays; a statement with another number supersedes the old one.
    ///
    /// # Errors
    ///
    /// Fails with a transient error if the model that compares claims is away. The message is marked all the same.
    pub(super) async fn mark_salient(
        &self,
        read_scope: &ReadScope,
        person: &PersonId,
        row: &MessageRow,
        mut salience: Salience,
        comparison: Comparison,
    ) -> Result<(), Error> {
        let learning = &self.services.measurements.learning;
        let clock = StageClock::start(learning, LearningStage::Deduplicate);
        let Some((earlier, forgettings)) = self.earlier(read_scope, person, row).await? else { return Ok(()) };
        let gist = row.text.as_str().get(salience.from..salience.to).unwrap_or(row.text.as_str()).to_owned();
        let texts = std::iter::once(gist.clone()).chain(earlier.iter().map(|memory| memory.gist().to_owned()));
        let vectors = if earlier.is_empty() {
            Vec::new()
        } else {
            self.indexer.embed_known(texts.collect(), forgettings).await?
        };
        let mut superseded: Vec<(MessageId, Salience)> = Vec::new();
        let mut related: Vec<(f32, MemoryRow)> = Vec::new();
        let mut richer: Option<MemoryRow> = None;
        let worded_at = Some(row.worded_at());
        let by_this = |same| Superseded { by: row.id.clone(), at: row.at, worded_at, same, undone: false };
        let now = Marked { kind: &salience.kind, text: &gist };
        let said_at = row.worded_at();
        if let Some((new, others)) = vectors.split_first() {
            for (memory, vector) in earlier.into_iter().zip(others) {
                let near = cosine(new, vector);
                let stands = memory.salience.clone().filter(|before| before.superseded.is_none());
                let (Some(before), Some(said)) = (stands, memory.sources.first().cloned()) else { continue };
                let settled = if near >= SAME { settle(Marked::of(&memory), now) } else { DuplicateVerdict::Apart };
                match settled {
                    DuplicateVerdict::Apart => {
                        let may_differ = near >= RELATED && memory.at < row.at;
                        let both_happened = may_differ && are_two_events(Marked::of(&memory), now);
                        if may_differ && !both_happened && may_replace(memory.gist(), &gist) {
                            related.push((near, memory));
                        }
                    }
                    // An old message that is looked at late replaces nothing newer.
                    DuplicateVerdict::Replaced if memory.at > said_at => {}
                    DuplicateVerdict::Replaced => {
                        learning.note_superseded();
                        superseded.push((said, Salience { superseded: Some(by_this(false)), ..before }));
                    }
                    DuplicateVerdict::NewIsRicher => {
                        learning.note_duplicate();
                        salience.importance = salience.importance.max(before.importance);
                        superseded.push((said, Salience { superseded: Some(by_this(true)), ..before }));
                    }
                    DuplicateVerdict::OldIsRicher => {
                        learning.note_duplicate();
                        richer = Some(memory);
                    }
                }
            }
        }
        if let Some(richer) = richer {
            salience.superseded = self.superseded_by(read_scope, &richer, true).await?;
        }
        clock.done();
        related.sort_by(|(one, _), (other, _)| other.total_cmp(one));
        related.truncate(if comparison == Comparison::Later { 0 } else { MAX_CLAIMS });
        // Without an answer all memories stand, as if the model had not been asked.
        let (replaced, away) = match self.replaced(row.author.name(), &gist, related).await {
            Ok(replaced) => (replaced, None),
            Err(error) if error.is_transient() => (Vec::new(), Some(error)),
            Err(error) => {
                tracing::debug!(%error, "cannot compare claims");
                (Vec::new(), None)
            }
        };
        for (said, before) in replaced {
            learning.note_superseded();
            superseded.push((said, Salience { superseded: Some(by_this(false)), ..before }));
        }
        superseded.push((row.id.clone(), salience));
        if comparison != Comparison::Again {
            learning.note_kept();
        }
        for (said, salience) in superseded {
            self.services.blocking(move |memory| memory.memories().mark(&said, &salience).map(drop)).await?;
        }
        away.map_or(Ok(()), Err)
    }

    /// Returns the note that the message of a memory replaced another statement. Returns `None` if the message was edited or
    /// forgotten since the memory was read: nobody compared what it says now.
    pub(super) async fn superseded_by(
        &self,
        read_scope: &ReadScope,
        newer: &MemoryRow,
        same: bool,
    ) -> Result<Option<Superseded>, Error> {
        let Some(by) = newer.sources.first().cloned() else { return Ok(None) };
        let (of, id) = (read_scope.clone(), by.clone());
        let message = self.services.blocking(move |memory| memory.messages().get(&of, &id)).await?;
        let compared = message.filter(|message| message.text == newer.text);
        let worded_at = compared.map(|message| message.worded_at());
        Ok(worded_at.map(|worded_at| Superseded { by, at: newer.at, worded_at: Some(worded_at), same, undone: false }))
    }

    /// Returns what a statement is compared with, and how many times something was forgotten before that was read; `None` if
    /// the statement itself was forgotten meanwhile.
    async fn earlier(
        &self,
        read_scope: &ReadScope,
        person: &PersonId,
        row: &MessageRow,
    ) -> Result<Option<(Vec<MemoryRow>, u64)>, Error> {
        let (of, who, statement) = (read_scope.clone(), person.clone(), row.clone());
        let read = move |memory: &Memory| {
            let forgettings = memory.embeddings().forgettings();
            if memory.messages().get(&of, &statement.id)?.is_none() {
                return Ok(None);
            }
            Ok(Some((memory.memories().comparable(&of, &who, &statement, COMPARED)?, forgettings)))
        };
        self.services.blocking(read).await
    }

    /// Returns which of these memories are contradicted by what the person says now: their messages and salience.
    async fn replaced(
        &self,
        who: &str,
        now: &str,
        memories: Vec<(f32, MemoryRow)>,
    ) -> Result<Vec<(MessageId, Salience)>, Error> {
        let mut replaced = Vec::new();
        if memories.is_empty() {
            return Ok(replaced);
        }
        let clock = StageClock::start(&self.services.measurements.learning, LearningStage::Contradict);
        let now = self.claim(who, now).await?;
        for (_, memory) in memories {
            let Some(now) = &now else { break };
            let Some(before) = self.claim(who, memory.gist()).await? else { continue };
            if self.replaces(&before, now).await? {
                replaced.extend(memory.sources.into_iter().next().zip(memory.salience));
            }
        }
        clock.done();
        Ok(replaced)
    }
}

/// Returns a memory as the mark of its last message.
pub(super) fn mark_of<'a>(rows: &[&'a MessageRow], memory: ExtractedMemory) -> Option<(&'a MessageRow, Salience)> {
    let (last, others) = memory.parts.split_last()?;
    let with = others.iter().filter_map(|part| rows.get(part.message)).map(|row| row.id.clone()).collect();
    let (kind, importance) = (memory.kind.name().to_owned(), memory.importance);
    let (from, to) = (last.span.start, last.span.end);
    Some((rows.get(last.message)?, Salience { kind, importance, from, to, with, superseded: None, used: None }))
}

/// How an earlier statement and a similar new one relate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DuplicateVerdict {
    /// Both stand: a word that tells them apart differs.
    Apart,
    /// The same with another number: the new one supersedes the old one.
    Replaced,
    NewIsRicher,
    OldIsRicher,
}

/// A statement, and the kind that it is marked with.
#[derive(Clone, Copy)]
pub(super) struct Marked<'a> {
    pub(super) kind: &'a str,
    pub(super) text: &'a str,
}

impl<'a> Marked<'a> {
    pub(super) fn of(memory: &'a MemoryRow) -> Self {
        let kind = memory.salience.as_ref().map_or("", |salience| salience.kind.as_str());
        Self { kind, text: memory.gist() }
    }
}

/// Returns true if two statements differ in numbers alone and tell of events. What happened in 2023 does not undo what
/// happened in 2019; a rent or an appointment with another number does.
fn are_two_events(old: Marked<'_>, new: Marked<'_>) -> bool {
    let is_event = |one: Marked<'_>| Kind::named(one.kind) == Some(Kind::Event);
    is_event(old) && is_event(new) && replaces_numbers(old.text, new.text)
}

pub(super) fn settle(old: Marked<'_>, new: Marked<'_>) -> DuplicateVerdict {
    if are_two_events(old, new) {
        return DuplicateVerdict::Apart;
    }
    let (old, new) = (old.text, new.text);
    if replaces_numbers(old, new) {
        return DuplicateVerdict::Replaced;
    }
    if turning_words(old) != turning_words(new) {
        return DuplicateVerdict::Apart;
    }
    if same_statement(old, new) {
        return DuplicateVerdict::NewIsRicher;
    }
    // In an unknown language, a further word may turn the statement around.
    if !known_language(old) || !known_language(new) {
        return DuplicateVerdict::Apart;
    }
    let (before, now) = (meaning(old), meaning(new));
    // Peanuts are not walnuts, however similar two sentences are: a statement is a duplicate only if the other repeats
    // all its words.
    match (before.is_subset(&now), now.is_subset(&before)) {
        (true, false) => DuplicateVerdict::NewIsRicher,
        (false, true) => DuplicateVerdict::OldIsRicher,
        (true, true) if in_order(old) == in_order(new) => DuplicateVerdict::NewIsRicher,
        // A dog bites a man, or a man bites a dog.
        (true, true) | (false, false) => DuplicateVerdict::Apart,
    }
}

/// Returns the words that carry a text's meaning, in their order.
fn in_order(text: &str) -> Vec<String> {
    let meaning = meaning(text);
    words(text).map(str::to_lowercase).filter(|word| meaning.contains(word)).collect()
}

/// Words without a meaning of their own.
const STOP_WORDS: &[&str] = &[
    "a", "an", "and", "am", "are", "as", "at", "be", "been", "but", "by", "can", "do", "does", "did", "for", "from",
    "had", "has", "have", "i", "i'm", "i've", "im", "in", "is", "it", "it's", "its", "just", "me", "my", "of", "on",
    "or", "our", "really", "so", "that", "the", "their", "they", "this", "to", "too", "us", "very", "was", "we",
    "were", "will", "with", "you", "your",
];

/// Words that negate a sentence.
const NEGATIONS: &[&str] =
    &["no", "not", "never", "none", "nothing", "nobody", "without", "cannot", "hardly", "neither", "nor"];

/// Returns the words that carry a text's meaning.
pub(super) fn meaning(text: &str) -> HashSet<String> {
    let says = |word: &String| !STOP_WORDS.contains(&word.as_str()) && !negates(word);
    words(text).map(str::to_lowercase).filter(says).collect()
}

/// Expects a word in lower case.
fn negates(word: &str) -> bool {
    NEGATIONS.contains(&word) || word.ends_with("n't") || word.ends_with("n\u{2019}t")
}

pub(super) fn words(text: &str) -> impl Iterator<Item = &str> {
    let inside = |c: char| c.is_alphanumeric() || matches!(c, '\'' | '\u{2019}');
    text.split(move |c| !inside(c))
        .map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()))
        .filter(|word| !word.is_empty())
}

pub(super) fn has_digit(word: &str) -> bool {
    word.chars().any(|c| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_richer_duplicate_stays_and_another_number_supersedes() {
        #[track_caller]
        fn check(old: &str, new: &str, want: DuplicateVerdict) {
            let fact = |text| Marked { kind: "fact", text };
            assert_eq!(settle(fact(old), fact(new)), want, "{old} / {new}");
        }
        check("I bake bread", "I bake rye bread on Sundays", DuplicateVerdict::Apart);
        check("I bake bread", "i bake rye bread every week", DuplicateVerdict::NewIsRicher);
        check("i bake rye bread every week", "I bake bread", DuplicateVerdict::OldIsRicher);
        check("my gate code is 4471", "My gate code is 4472.", DuplicateVerdict::Replaced);
        check("my gate code is 4471", "the code of the gate is 4472", DuplicateVerdict::Apart);
        check("my cat is called Tom", "my cat is called Bob", DuplicateVerdict::Apart);
        check("my cat is called tom", "my cat is called bob", DuplicateVerdict::Apart);
        check("i am allergic to peanuts", "I'm allergic to walnuts", DuplicateVerdict::Apart);
        check("i am allergic to peanuts", "I'm really allergic to peanuts!", DuplicateVerdict::NewIsRicher);
        check("i like olives", "i don't like olives", DuplicateVerdict::Apart);
        check("I never eat olives", "I don't eat olives", DuplicateVerdict::NewIsRicher);
        check("I don't eat olives", "I do not eat olives at all", DuplicateVerdict::NewIsRicher);
        check("my meds are at 6 am", "my meds are at 6 pm", DuplicateVerdict::Apart);
        check("I take one tablet", "I take two tablets", DuplicateVerdict::Apart);
        check("I sleep in the van", "I sleep on the van", DuplicateVerdict::Apart);
        check("his birthday is in June", "her birthday is in June", DuplicateVerdict::Apart);
        check("ich esse keine Oliven", "ich esse Oliven", DuplicateVerdict::Apart);
        check("je ne mange pas de viande", "je mange de viande", DuplicateVerdict::Apart);
        check("no como carne", "como carne", DuplicateVerdict::Apart);
        check("non mangio carne", "mangio carne", DuplicateVerdict::Apart);
        check("mzumbe kwetu", "mzumbe kwetu nqo", DuplicateVerdict::Apart);
        check("a dog bit the man", "the man bit a dog", DuplicateVerdict::Apart);
        check("私は肉を食べない", "私は肉を食べる", DuplicateVerdict::Apart);
    }

    #[test]
    fn an_event_with_another_number_is_another_event() {
        #[track_caller]
        fn check(old: (&str, &str), new: (&str, &str), want: DuplicateVerdict) {
            let marked = |(kind, text)| Marked { kind, text };
            assert_eq!(settle(marked(old), marked(new)), want, "{old:?} / {new:?}");
            let both_happened = old.0 == "event" && new.0 == "event";
            assert_eq!(are_two_events(marked(old), marked(new)), both_happened, "{old:?} / {new:?}");
        }
        let (rome, again) = ("I flew to Rome in 2019", "I flew to Rome in 2023");
        check(("event", rome), ("event", again), DuplicateVerdict::Apart);
        check(("event", rome), ("fact", again), DuplicateVerdict::Replaced);
        check(("event", "I ran 5 km today"), ("event", "I ran 7 km today"), DuplicateVerdict::Apart);
        check(("fact", "my rent is 900"), ("fact", "my rent is 950"), DuplicateVerdict::Replaced);
        check(("plan", "we meet at 5"), ("plan", "we meet at 6"), DuplicateVerdict::Replaced);
    }
}
