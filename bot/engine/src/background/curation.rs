//! Curation: compares what people said over the weeks once a day, further back than one conversation reaches. Of two
//! duplicates the richer one stays. Nothing important is dropped for it, and weak memories fade by themselves
//! (`azera_memory::Salience`).

use std::collections::{BTreeMap, BTreeSet};

use azera_memory::{MemoryRow, Salience, Superseded};
use azera_types::{MessageId, PersonId, Timestamp};

use super::agenda::PersonaPlace;
use super::extract::{DuplicateVerdict, Marked, SAME, settle};
use crate::background::Background;
use crate::error::Error;
use crate::vectors::cosine;

/// Newest memories searched for people who said something since the last curation.
const LOOKED_AT: usize = 1_000;

/// Salient memories of one person that are compared with each other.
const COMPARED: usize = 256;

impl Background {
    /// Curates the memories of a place for everybody who said something since `since`.
    pub(super) async fn curate(&self, home: &PersonaPlace, since: Timestamp) -> Result<(), Error> {
        let Some(at) = self.writing_context(home).await? else { return Ok(()) };
        let read_scope = at.read_scope.clone();
        let recent =
            self.services.blocking(move |memory| memory.writings().recent(&read_scope, since, LOOKED_AT)).await?;
        let people: BTreeSet<PersonId> = recent.iter().filter_map(|row| row.author.person().cloned()).collect();
        for person in people {
            let (read_scope, of) = (at.read_scope.clone(), person);
            let salient =
                self.services.blocking(move |memory| memory.memories().salient(&read_scope, &of, COMPARED)).await?;
            if self.services.stopping.is_cancelled() {
                return Err(Error::Interrupted);
            }
            if !salient.iter().any(|memory| memory.at >= since) {
                continue;
            }
            for (message, mut salience) in self.settle_duplicates(&salient, since).await? {
                if let Some(Superseded { by, same, .. }) = &salience.superseded {
                    let newer = salient.iter().find(|memory| memory.sources.first() == Some(by));
                    let Some(newer) = newer else { continue };
                    let noted = self.superseded_by(&at.read_scope, newer, *same).await?;
                    if noted.is_none() {
                        continue;
                    }
                    salience.superseded = noted;
                }
                self.services.blocking(move |memory| memory.memories().mark(&message, &salience)).await?;
            }
        }
        Ok(())
    }

    /// Returns new salience marks for duplicates settled by a memory newer than `since`: the superseded one is marked,
    /// and the one that stays takes over the higher importance.
    async fn settle_duplicates(
        &self,
        salient: &[MemoryRow],
        since: Timestamp,
    ) -> Result<Vec<(MessageId, Salience)>, Error> {
        let vectors = self.indexer.embed(salient.iter().map(|memory| memory.gist().to_owned()).collect()).await?;
        Ok(marks_of(salient, &vectors, since))
    }
}

/// Returns the marks of [`Background::settle_duplicates`] for memories with these vectors.
fn marks_of(salient: &[MemoryRow], vectors: &[Vec<f32>], since: Timestamp) -> Vec<(MessageId, Salience)> {
    let stands = |memory: &MemoryRow| memory.salience.as_ref().is_some_and(|salience| salience.superseded.is_none());
    let mut marks: Vec<(MessageId, Salience)> = Vec::new();
    let mut gone: BTreeSet<usize> = BTreeSet::new();
    // What each memory that stays has taken over so far.
    let mut importances: BTreeMap<usize, f32> = BTreeMap::new();
    let fresh = salient.iter().zip(vectors).enumerate().filter(|(_, (memory, _))| memory.at >= since);
    for (newer, (new, vector)) in fresh {
        for (older, (old, other)) in salient.iter().zip(vectors).enumerate().skip(newer + 1) {
            // What is remembered in one place must not depend on what was said in another.
            let comparable = new.scope == old.scope && stands(new) && stands(old);
            if !comparable || gone.contains(&newer) || gone.contains(&older) {
                continue;
            }
            if cosine(vector, other) < SAME {
                continue;
            }
            let (loser, winner, same) = match settle(Marked::of(old), Marked::of(new)) {
                DuplicateVerdict::Apart => continue,
                DuplicateVerdict::Replaced => (older, newer, false),
                DuplicateVerdict::NewIsRicher => (older, newer, true),
                DuplicateVerdict::OldIsRicher => (newer, older, true),
            };
            let found = (salient.get(loser), salient.get(winner));
            let (Some(loses), Some(wins)) = found else { continue };
            let (Some(said), Some(by), Some(salience)) = (loses.sources.first(), wins.sources.first(), &loses.salience)
            else {
                continue;
            };
            // Whoever stores the mark adds when the message got its text.
            let superseded = Some(Superseded { by: by.clone(), at: wins.at, worded_at: None, same, undone: false });
            marks.push((said.clone(), Salience { superseded, ..salience.clone() }));
            // The importance carries over to the other wording.
            if let Some(stays) = wins.salience.as_ref().filter(|_| same) {
                let carried = importances.get(&loser).copied().unwrap_or(salience.importance);
                let own = importances.get(&winner).copied().unwrap_or(stays.importance);
                if own < carried {
                    importances.insert(winner, carried);
                    marks.push((by.clone(), Salience { importance: carried, ..stays.clone() }));
                }
            }
            gone.insert(loser);
        }
    }
    marks
}

#[cfg(test)]
mod tests {
    use azera_memory::Kind;
    use azera_types::{Author, MemoryId, PersonaId, Scope, Text};

    use super::*;

    fn memory(number: u64, at: i64, importance: f32) -> MemoryRow {
        let salience = Salience {
            kind: "fact".into(),
            importance,
            from: 0,
            to: 20,
            with: Vec::new(),
            superseded: None,
            used: None,
        };
        MemoryRow {
            id: MemoryId(number),
            persona: PersonaId::new("azera").unwrap(),
            kind: Kind::Message,
            scope: Scope::Chat(azera_types::ChatId::new("c").unwrap()),
            source_scopes: Vec::new(),
            chat: None,
            session: 0,
            author: Author::Forgotten,
            sources: vec![MessageId::new(format!("m{number}")).unwrap()],
            text: Text::new("i live in the old lighthouse"),
            at: Timestamp::from_second(at).unwrap(),
            salience: Some(salience),
            surprise: None,
            replaced: None,
            apart: false,
        }
    }

    #[test]
    fn the_memory_that_stays_takes_over_the_highest_importance_of_its_duplicates() {
        let salient = [memory(3, 30, 0.2), memory(2, 20, 0.9), memory(1, 10, 0.5)];
        let marks = marks_of(&salient, &[vec![1.0], vec![1.0], vec![1.0]], Timestamp::from_second(25).unwrap());
        let last: BTreeMap<&MessageId, &Salience> = marks.iter().map(|(message, mark)| (message, mark)).collect();
        let stays: Vec<f32> =
            last.values().filter(|mark| mark.superseded.is_none()).map(|mark| mark.importance).collect();
        assert_eq!(stays, [0.9]);
    }

    #[test]
    fn two_events_that_differ_in_a_number_both_stay() {
        let marked = |kind: &str| {
            let mut both = [memory(2, 20, 0.5), memory(1, 10, 0.5)];
            for (memory, text) in both.iter_mut().zip(["I ran 7 km today", "I ran 5 km today"]) {
                memory.text = Text::new(text);
                memory.salience.as_mut().unwrap().kind = kind.into();
            }
            marks_of(&both, &[vec![1.0], vec![1.0]], Timestamp::from_second(15).unwrap()).len()
        };
        assert_eq!((marked("event"), marked("fact")), (0, 1));
    }
}
