//! What people said in many chats of a place, and so counts as known in the whole place, while it holds. Nothing of it is stored: it is
//! computed from the memories that may be read, and is forgotten with them. Only the wish of a speaker that a statement
//! does not count is stored, in its memory.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};

use azera_types::{MemoryId, PersonId, Scope};

use crate::domains::Memories;
use crate::recall::{Again, Hit, KNOWN_IN_CHATS, chats_in, dot, same_in_words};
use crate::rows::{Kind, MemoryRow};
use crate::words::Statement;
use crate::{Batch, Durability, Error, ReadScope, Table, codec, keys};

/// Most memories that are read, the newest ones.
const MAX_READ: usize = 65_536;

/// Most memories that say the same and are told of.
const MAX_SAYING: usize = 32;

/// A statement that somebody made in many chats of one place. `Debug` shows no words.
#[derive(Clone, PartialEq)]
pub struct Known {
    /// The newest memory of it.
    pub newest: MemoryRow,
    /// The other memories of it, newest first.
    pub again: Vec<Again>,
    /// The number of chats it was said in.
    pub chats: usize,
    /// True if its speaker does not want it to count.
    pub is_apart: bool,
    /// All memories of it, also those that are not told of.
    members: Vec<MemoryId>,
}

impl std::fmt::Debug for Known {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Known[{} in {} chats]", self.newest.id, self.chats)
    }
}

/// What can be told apart without comparing words: whose statement it is, where, and its lasting words.
#[derive(PartialEq, Eq, Hash)]
struct Bucket {
    scope: Scope,
    person: PersonId,
    words: String,
}

impl Memories<'_> {
    /// Returns the statements that hold and were made in [`KNOWN_IN_CHATS`] or more chats of a place, those in most chats
    /// first, and how many there are. All memories that they rest on may be read.
    pub fn known(self, read_scope: &ReadScope, skip: usize, limit: usize) -> Result<(Vec<Known>, usize), Error> {
        let mut known = self.all_known(read_scope)?;
        let total = known.len();
        known.sort_by_key(|known| (Reverse(known.chats), Reverse(known.newest.at), known.newest.id));
        Ok((known.into_iter().skip(skip).take(limit).collect(), total))
    }

    /// Notes whether a statement that is known in a place counts there, for all memories of it. Only its speaker may decide.
    /// Returns how many memories it rests on; `None` if `read_scope` allows no such statement of the person.
    pub fn set_apart(
        self,
        read_scope: &ReadScope,
        person: &PersonId,
        id: MemoryId,
        apart: bool,
    ) -> Result<Option<usize>, Error> {
        let known = self.all_known(read_scope)?;
        let mut of_person = known.into_iter().filter(|known| known.newest.author.person() == Some(person));
        let Some(Known { members: ids, .. }) = of_person.find(|known| known.members.contains(&id)) else {
            return Ok(None);
        };
        let mut chats = BTreeSet::new();
        for id in &ids {
            chats.extend(self.raw_memory(*id)?.and_then(|memory| memory.chat));
        }
        let _writing = self.0.writing_in(&chats)?;
        let mut batch = Batch::new();
        for id in &ids {
            // It may have been forgotten meanwhile.
            if let Some(memory) = self.get(read_scope, *id)? {
                codec::put(&mut batch, Table::Memories, keys::memory(*id), &MemoryRow { apart, ..memory })?;
            }
        }
        self.0.store.commit(batch, Durability::Flushed)?;
        Ok(Some(ids.len()))
    }

    fn all_known(self, read_scope: &ReadScope) -> Result<Vec<Known>, Error> {
        let said = |kind| matches!(kind, Kind::Message | Kind::Fact);
        let mut buckets: HashMap<Bucket, Vec<MemoryRow>> = HashMap::new();
        for memory in self.newest(read_scope, said, None, MAX_READ)? {
            let Some(person) = memory.author.person().filter(|_| memory.is_statement()).cloned() else { continue };
            let words = Statement::new(&memory.text).lasting_words();
            buckets.entry(Bucket { scope: memory.scope.clone(), person, words }).or_default().push(memory);
        }
        let mut known = Vec::new();
        for memories in buckets.into_values().filter(|memories| chats_in(memories.iter()) >= KNOWN_IN_CHATS) {
            for group in self.saying_the_same(memories)? {
                known.extend(as_known(self.still_holding(read_scope, group)?));
            }
        }
        Ok(known)
    }

    /// Returns true if what a hit says counts as known in its place: it was said in [`KNOWN_IN_CHATS`] or more chats since
    /// anything else was said instead.
    pub(crate) fn is_known(self, read_scope: &ReadScope, hit: &Hit) -> Result<bool, Error> {
        if hit.chats() < KNOWN_IN_CHATS {
            return Ok(false);
        }
        let mut saying = vec![hit.memory.clone()];
        for again in &hit.again {
            saying.extend(self.get(read_scope, again.memory)?);
        }
        Ok(chats_in(self.still_holding(read_scope, saying)?.iter()) >= KNOWN_IN_CHATS)
    }

    /// Returns groups of memories that say the same, as recall compares them. The memories come newest first, and so does
    /// each group.
    fn saying_the_same(self, memories: Vec<MemoryRow>) -> Result<Vec<Vec<MemoryRow>>, Error> {
        let ids: Vec<MemoryId> = memories.iter().map(|memory| memory.id).collect();
        // Without vectors, the same words alone are the same.
        let stored = self.0.vectors.vectors(&ids).unwrap_or_default();
        let vectors: HashMap<MemoryId, Vec<f32>> = stored.into_iter().map(|stored| (stored.id, stored.own)).collect();
        let is_near = |one: &MemoryRow, other: &MemoryRow| {
            let both = vectors.get(&one.id).zip(vectors.get(&other.id));
            both.is_some_and(|(one, other)| dot(one, other) >= self.0.config.near_duplicate)
        };
        let mut groups: Vec<Vec<MemoryRow>> = Vec::new();
        for memory in memories {
            let is_one = |group: &Vec<MemoryRow>| {
                group.first().is_some_and(|first| same_in_words(first, &memory, || is_near(first, &memory)))
            };
            match groups.iter_mut().find(|group| is_one(group)) {
                Some(group) => group.push(memory),
                None => groups.push(vec![memory]),
            }
        }
        Ok(groups)
    }
}

/// Returns a group of memories as one statement, if it was made in enough chats.
fn as_known(group: Vec<MemoryRow>) -> Option<Known> {
    let chats = chats_in(group.iter());
    if chats < KNOWN_IN_CHATS {
        return None;
    }
    let is_apart = group.iter().any(|memory| memory.apart);
    let members = group.iter().map(|memory| memory.id).collect();
    let mut group = group.into_iter();
    let newest = group.next()?;
    Some(Known { newest, again: group.take(MAX_SAYING).map(Again::of).collect(), chats, is_apart, members })
}
