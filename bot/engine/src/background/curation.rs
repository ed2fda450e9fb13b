//! Curation: what people told over the weeks and is worth keeping is gone through once a day, further back than one conversation
//! reaches. Of two alike the richer stands. Nothing important is let go for it, and what is weak fades by itself (`azera_memory::Salience`).

use std::collections::BTreeSet;

use azera_memory::{MemoryRow, Salience, Superseded};
use azera_types::{MessageId, PersonId, Timestamp};

use super::agenda::PersonaPlace;
use super::extract::{DuplicateVerdict, SAME, settle};
use crate::engine::Engine;
use crate::error::Error;
use crate::vectors::cosine;

/// Things said that are looked through for who said something since.
const LOOKED_AT: usize = 1_000;

/// Marks of a person that are compared with each other.
const COMPARED: usize = 256;

impl Engine {
    /// Goes through what those who said something since then told in a home.
    pub(super) async fn curate(&self, home: &PersonaPlace, since: Timestamp) -> Result<(), Error> {
        let Some(at) = self.writing_context(home).await? else { return Ok(()) };
        let read_scope = at.read_scope.clone();
        let recent = self.blocking(move |memory| memory.recent(&read_scope, since, LOOKED_AT)).await?;
        let people: BTreeSet<PersonId> = recent.iter().filter_map(|row| row.author.person().cloned()).collect();
        for person in people {
            let (read_scope, of) = (at.read_scope.clone(), person);
            let retained = self.blocking(move |memory| memory.salient_memories(&read_scope, &of, COMPARED)).await?;
            if self.0.stopping.is_cancelled() {
                return Err(Error::Interrupted);
            }
            if !retained.iter().any(|memory| memory.at >= since) {
                continue;
            }
            for (message, salience) in self.alike(&retained, since).await? {
                self.blocking(move |memory| memory.mark(&message, &salience)).await?;
            }
        }
        Ok(())
    }

    /// New marks of those that something newer than `since` settles: which others make needless, and which take over how much it
    /// mattered.
    async fn alike(&self, retained: &[MemoryRow], since: Timestamp) -> Result<Vec<(MessageId, Salience)>, Error> {
        let vectors = self.embed(retained.iter().map(|memory| memory.gist().to_owned()).collect()).await?;
        let stands =
            |memory: &MemoryRow| memory.salience.as_ref().is_some_and(|salience| salience.superseded.is_none());
        let mut needless: Vec<(MessageId, Salience)> = Vec::new();
        let mut gone: BTreeSet<usize> = BTreeSet::new();
        let fresh = retained.iter().zip(&vectors).enumerate().filter(|(_, (memory, _))| memory.at >= since);
        for (newer, (new, vector)) in fresh {
            for (older, (old, other)) in retained.iter().zip(&vectors).enumerate().skip(newer + 1) {
                // What is kept in one place must not depend on what was said in another.
                let comparable = new.scope == old.scope && stands(new) && stands(old);
                if !comparable || gone.contains(&newer) || gone.contains(&older) {
                    continue;
                }
                if cosine(vector, other) < SAME {
                    continue;
                }
                let (loser, winner, same) = match settle(old.gist(), new.gist()) {
                    DuplicateVerdict::Apart => continue,
                    DuplicateVerdict::Replaced => (older, newer, false),
                    DuplicateVerdict::NewIsRicher => (older, newer, true),
                    DuplicateVerdict::OldIsRicher => (newer, older, true),
                };
                let found = (retained.get(loser), retained.get(winner));
                let (Some(loses), Some(wins)) = found else { continue };
                let (Some(said), Some(by), Some(salience)) =
                    (loses.sources.first(), wins.sources.first(), &loses.salience)
                else {
                    continue;
                };
                let superseded = Some(Superseded { by: by.clone(), at: wins.at, same });
                needless.push((said.clone(), Salience { superseded, ..salience.clone() }));
                // What mattered matters as much in other words.
                if let Some(stays) =
                    wins.salience.as_ref().filter(|stays| same && stays.importance < salience.importance)
                {
                    needless.push((by.clone(), Salience { importance: salience.importance, ..stays.clone() }));
                }
                gone.insert(loser);
            }
        }
        Ok(needless)
    }
}
