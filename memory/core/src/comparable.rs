//! The marked memories that a new statement is compared with: the newest ones of the person, and the last ones before it,
//! if it is an old one that was imported. An export begins with its newest conversation, so most imported statements are
//! old, and finding them must cost the same whether ten or a hundred thousand are marked.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Bound::{Excluded, Unbounded};
use std::sync::{Mutex, MutexGuard, PoisonError};

use azera_types::{MemoryId, PersonId, Scope, Timestamp};

use crate::domains::Memories;
use crate::rows::{MemoryRow, MessageRow};
use crate::{Error, Memory, ReadScope, Table, codec, keys};

/// Most marks that are read to find the newest ones, and to find the last ones before a statement. More than that in a row
/// only repeat each other.
const MOST_READ: usize = 1_024;

/// Marks of one time list that are read at a time.
const PAGE: usize = 128;

/// Most marks whose times are held. Above it, the lists of other people and scopes are dropped and read again when they are
/// needed.
const MOST_HELD: usize = 500_000;

/// A marked memory and when it was said.
type Marked = (Timestamp, MemoryId);

/// When the marked memories of people were said, in RAM. The lists hold no words, and are hints: every memory is read from
/// the record, so one that was forgotten or that may not be read is left out.
#[derive(Default)]
pub(crate) struct MarkTimes(Mutex<Lists>);

#[derive(Default)]
struct Lists {
    /// By the person and the scope.
    lists: HashMap<(PersonId, Scope), BTreeSet<Marked>>,
    held: usize,
}

impl MarkTimes {
    fn lock(&self) -> MutexGuard<'_, Lists> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Drops all lists.
    pub(crate) fn clear(&self) {
        *self.lock() = Lists::default();
    }

    /// Adds a memory that was marked, after that was committed.
    pub(crate) fn add(&self, memory: &MemoryRow) {
        let Some(person) = memory.author.person() else { return };
        let mut held = self.lock();
        let list = held.lists.get_mut(&(person.clone(), memory.scope.clone()));
        let is_new = list.is_some_and(|list| list.insert((memory.at, memory.id)));
        held.held += usize::from(is_new);
    }

    /// Returns the last marks of a person in a scope before `end`, the last one first, at most [`PAGE`].
    fn before(&self, memory: &Memory, of: &(PersonId, Scope), end: Marked) -> Result<Vec<Marked>, Error> {
        // Locked while a list is read: what is marked meanwhile is added to it.
        let mut held = self.lock();
        if !held.lists.contains_key(of) {
            let list = read_list(memory, of)?;
            if held.held + list.len() > MOST_HELD {
                *held = Lists::default();
            }
            held.held += list.len();
            held.lists.insert(of.clone(), list);
        }
        let list = held.lists.get(of);
        let earlier = list.into_iter().flat_map(|list| list.range((Unbounded, Excluded(end))).rev());
        Ok(earlier.take(PAGE).copied().collect())
    }
}

fn read_list(memory: &Memory, (person, scope): &(PersonId, Scope)) -> Result<BTreeSet<Marked>, Error> {
    let mut list = BTreeSet::new();
    let prefix = keys::prefix(&[person.as_str(), &scope.to_string()]);
    codec::walk(memory.store.as_ref(), Table::Marks, &prefix, |key, _| {
        let id = MemoryId(keys::number("marks", key)?);
        list.extend(memory.memories().raw_memory(id)?.map(|memory| (memory.at, id)));
        Ok(true)
    })?;
    Ok(list)
}

impl Memories<'_> {
    /// Returns the marked memories that a statement of `person` is compared with, from the statement's own scope: those
    /// among the newest `most` of the person, and, if one of them was said after the statement, the last `most` others
    /// before it.
    pub fn comparable(
        self,
        read_scope: &ReadScope,
        person: &PersonId,
        statement: &MessageRow,
        most: usize,
    ) -> Result<Vec<MemoryRow>, Error> {
        // What is remembered in one place must not depend on what was said in another.
        let fits = |one: &MemoryRow| one.scope == statement.scope && !one.sources.contains(&statement.id);
        let mut found = self.newest_marked(read_scope, person, most, MOST_READ)?;
        let is_old = found.iter().any(|one| one.at > statement.at);
        found.retain(fits);
        if !is_old {
            return Ok(found);
        }
        let known: HashSet<MemoryId> = found.iter().map(|one| one.id).collect();
        let of = (person.clone(), statement.scope.clone());
        let (mut end, mut read, mut earlier) = ((statement.at, MemoryId(0)), 0, Vec::new());
        while read < MOST_READ {
            let page = self.0.mark_times.before(self.0, &of, end)?;
            let Some(last) = page.last() else { break };
            (end, read) = (*last, read + page.len());
            for (_, id) in page {
                let Some(mut memory) = self.get(read_scope, id)?.filter(|one| fits(one) && !known.contains(&one.id))
                else {
                    continue;
                };
                if self.stands(read_scope, &mut memory)? {
                    earlier.push(memory);
                }
                if earlier.len() == most {
                    found.extend(earlier);
                    return Ok(found);
                }
            }
        }
        found.extend(earlier);
        Ok(found)
    }
}
