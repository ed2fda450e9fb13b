//! Curation: what people told over the weeks and is worth keeping is gone through once a day, further back than one conversation
//! reaches. Of two alike the richer stands. Nothing important is let go for it, and what is weak fades by itself (`azera_memory::Worth`).

use std::collections::BTreeSet;

use azera_memory::{MemoryRow, Superseded, Worth};
use azera_types::{MessageId, PersonId, Timestamp};

use super::agenda::Home;
use super::sift::{SAME, Settled, settle};
use crate::azera::Azera;
use crate::error::Error;
use crate::vectors::cosine;

/// Things said that are looked through for who said something since.
const LOOKED_AT: usize = 1_000;

/// Marks of a person that are compared with each other.
const COMPARED: usize = 256;

impl Azera {
    /// Goes through what those who said something since then told in a home.
    pub(super) async fn curate(&self, home: &Home, since: Timestamp) -> Result<(), Error> {
        let Some(at) = self.setting_of(home).await? else { return Ok(()) };
        let right = at.right.clone();
        let recent = self.blocking(move |memory| memory.recent(&right, since, LOOKED_AT)).await?;
        let people: BTreeSet<PersonId> = recent.iter().filter_map(|row| row.author.person().cloned()).collect();
        for person in people {
            let (right, of) = (at.right.clone(), person);
            let kept = self.blocking(move |memory| memory.kept(&right, &of, COMPARED)).await?;
            if self.0.stopping.is_cancelled() {
                return Err(Error::Interrupted);
            }
            if !kept.iter().any(|memory| memory.at >= since) {
                continue;
            }
            for (message, worth) in self.alike(&kept, since).await? {
                self.blocking(move |memory| memory.mark(&message, &worth)).await?;
            }
        }
        Ok(())
    }

    /// New marks of those that something newer than `since` settles: which others make needless, and which take over how much it
    /// mattered.
    async fn alike(&self, kept: &[MemoryRow], since: Timestamp) -> Result<Vec<(MessageId, Worth)>, Error> {
        let vectors = self.embed(kept.iter().map(|memory| memory.gist().to_owned()).collect()).await?;
        let stands = |memory: &MemoryRow| memory.worth.as_ref().is_some_and(|worth| worth.superseded.is_none());
        let mut needless: Vec<(MessageId, Worth)> = Vec::new();
        let mut gone: BTreeSet<usize> = BTreeSet::new();
        let fresh = kept.iter().zip(&vectors).enumerate().filter(|(_, (memory, _))| memory.at >= since);
        for (newer, (new, vector)) in fresh {
            for (older, (old, other)) in kept.iter().zip(&vectors).enumerate().skip(newer + 1) {
                // What is kept in one place must not depend on what was said in another.
                let comparable = new.scope == old.scope && stands(new) && stands(old);
                if !comparable || gone.contains(&newer) || gone.contains(&older) {
                    continue;
                }
                if cosine(vector, other) < SAME {
                    continue;
                }
                let (loser, winner, same) = match settle(old.gist(), new.gist()) {
                    Settled::Apart => continue,
                    Settled::Replaced => (older, newer, false),
                    Settled::NewIsRicher => (older, newer, true),
                    Settled::OldIsRicher => (newer, older, true),
                };
                let found = (kept.get(loser), kept.get(winner));
                let (Some(loses), Some(wins)) = found else { continue };
                let (Some(said), Some(by), Some(worth)) = (loses.sources.first(), wins.sources.first(), &loses.worth)
                else {
                    continue;
                };
                let superseded = Some(Superseded { by: by.clone(), at: wins.at, same });
                needless.push((said.clone(), Worth { superseded, ..worth.clone() }));
                // What mattered matters as much in other words.
                if let Some(stays) = wins.worth.as_ref().filter(|stays| same && stays.importance < worth.importance) {
                    needless.push((by.clone(), Worth { importance: worth.importance, ..stays.clone() }));
                }
                gone.insert(loser);
            }
        }
        Ok(needless)
    }
}
