//! The marked memories that a new statement is compared with: the newest ones of the person, and the last ones before it,
//! if it is an old one that was imported. An export begins with its newest conversation, so most imported statements are
//! old, and finding them must cost the same whether ten or a hundred thousand are marked.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::Bound::{Excluded, Unbounded};
use std::sync::{Mutex, MutexGuard, PoisonError};

use azera_types::{MemoryId, PersonId, PersonaId, Scope, Timestamp};

use crate::domains::Memories;
use crate::rows::{MemoryRow, MessageRow};
use crate::{Error, Memory, ReadScope, Table, codec, keys};

/// Most marks that are read to find the newest ones of a scope, and to find the last ones before a statement. More than that
/// in a row only repeat each other.
const MOST_READ: usize = 1_024;

/// Marks of one list that are read at a time.
const PAGE: usize = 128;

/// Most marks that are held. Above it, the lists of other people and scopes are dropped and read again when they are needed.
const MOST_HELD: usize = 500_000;

/// A marked memory and when it was said.
type Marked = (Timestamp, MemoryId);

/// Whose marks, and in which scope.
type Whose = (PersonId, Scope);

/// The marked memories of people, in RAM. The lists hold no words, and are hints: every memory is read from the record, so
/// one that was forgotten or that may not be read is left out.
#[derive(Default)]
pub(crate) struct MarkLists(Mutex<Lists>);

#[derive(Default)]
struct Lists {
    lists: HashMap<Whose, List>,
    held: usize,
    /// Counts how many times lists were dropped. A list that was read before that is not kept.
    dropped: u64,
}

#[derive(Default)]
struct List {
    /// False while it is read, when it holds what is marked meanwhile.
    is_whole: bool,
    by_persona: HashMap<PersonaId, Marks>,
}

/// The marks of one person in one scope that one persona made.
#[derive(Default)]
struct Marks {
    by_time: BTreeSet<Marked>,
    by_id: BTreeMap<MemoryId, Timestamp>,
}

impl Marks {
    fn insert(&mut self, at: Timestamp, id: MemoryId) {
        self.by_time.insert((at, id));
        self.by_id.insert(id, at);
    }

    /// Returns the last marks that were said before `end`, the last one first.
    fn said_before(&self, end: Marked) -> Vec<Marked> {
        self.by_time.range((Unbounded, Excluded(end))).rev().take(PAGE).copied().collect()
    }

    /// Returns the newest marks with an id below `end`, the newest one first.
    fn below(&self, end: MemoryId) -> Vec<Marked> {
        self.by_id.range((Unbounded, Excluded(end))).rev().take(PAGE).map(|(id, at)| (*at, *id)).collect()
    }
}

impl List {
    fn add(&mut self, memory: &MemoryRow) {
        self.by_persona.entry(memory.persona.clone()).or_default().insert(memory.at, memory.id);
    }

    fn len(&self) -> usize {
        self.by_persona.values().map(|marks| marks.by_id.len()).sum()
    }
}

impl Lists {
    /// Drops all lists but one if too many marks are held.
    fn bound(&mut self, whose: &Whose) {
        self.held = self.lists.values().map(List::len).sum();
        if self.held > MOST_HELD && self.lists.len() > 1 {
            self.dropped += 1;
            self.lists.retain(|one, _| one == whose);
            self.held = self.lists.values().map(List::len).sum();
        }
    }
}

impl MarkLists {
    fn lock(&self) -> MutexGuard<'_, Lists> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Drops all lists.
    pub(crate) fn clear(&self) {
        let before = {
            let mut held = self.lock();
            (held.held, held.dropped) = (0, held.dropped + 1);
            std::mem::take(&mut held.lists)
        };
        drop(before);
    }

    /// Adds a memory that was marked, after that was committed.
    pub(crate) fn add(&self, memory: &MemoryRow) {
        let Some(person) = memory.author.person() else { return };
        let whose = (person.clone(), memory.scope.clone());
        let mut held = self.lock();
        let Some(list) = held.lists.get_mut(&whose) else { return };
        list.add(memory);
        // Too high where it was marked before. It is counted anew when it seems too much.
        held.held += 1;
        if held.held > MOST_HELD {
            held.bound(&whose);
        }
    }

    /// Returns a page of the marks of a persona. A list is read once, without a lock, so that nobody waits who marks or
    /// forgets.
    fn page(
        &self,
        memory: &Memory,
        persona: &PersonaId,
        whose: &Whose,
        pick: impl Fn(&Marks) -> Vec<Marked>,
    ) -> Result<Vec<Marked>, Error> {
        let dropped = {
            let mut held = self.lock();
            let list = held.lists.entry(whose.clone()).or_default();
            if list.is_whole {
                return Ok(list.by_persona.get(persona).map(pick).unwrap_or_default());
            }
            held.dropped
        };
        let list = read_list(memory, whose)?;
        let page = list.by_persona.get(persona).map(pick).unwrap_or_default();
        self.keep(whose, list, dropped);
        Ok(page)
    }

    /// Keeps a list that was read, with what was marked meanwhile, unless lists were dropped since then.
    fn keep(&self, whose: &Whose, mut read: List, dropped: u64) {
        let mut held = self.lock();
        if held.dropped != dropped {
            return;
        }
        let Some(list) = held.lists.get_mut(whose).filter(|list| !list.is_whole) else { return };
        for (persona, marks) in list.by_persona.drain() {
            let known = read.by_persona.entry(persona).or_default();
            marks.by_time.into_iter().for_each(|(at, id)| known.insert(at, id));
        }
        *list = List { is_whole: true, ..read };
        held.bound(whose);
    }
}

fn read_list(memory: &Memory, (person, scope): &Whose) -> Result<List, Error> {
    let mut list = List::default();
    let prefix = keys::prefix(&[person.as_str(), &scope.to_string()]);
    codec::walk(memory.store.as_ref(), Table::Marks, &prefix, |key, _| {
        let id = MemoryId(keys::number("marks", key)?);
        if let Some(memory) = memory.memories().raw_memory(id)? {
            list.add(&memory);
        }
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
        let mut found = self.newest_comparable(read_scope, person, most)?;
        let is_old = found.iter().any(|one| one.at > statement.at);
        found.retain(fits);
        if !is_old {
            return Ok(found);
        }
        let known: HashSet<MemoryId> = found.iter().map(|one| one.id).collect();
        let of = (person.clone(), statement.scope.clone());
        let (mut end, mut read, mut earlier) = ((statement.at, MemoryId(0)), 0, Vec::new());
        while read < MOST_READ {
            let before = |marks: &Marks| marks.said_before(end);
            let page = self.0.mark_lists.page(self.0, read_scope.persona(), &of, before)?;
            let Some(last) = page.last() else { break };
            end = *last;
            for (_, id) in page {
                // It may have been removed since the list was read.
                let Some(mut memory) = self.get(read_scope, id)? else { continue };
                read += 1;
                if !fits(&memory) || known.contains(&memory.id) {
                    continue;
                }
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

    /// Returns the newest marked memories of a person that `read_scope` allows, at most `most`. It reads at most
    /// [`MOST_READ`] of each scope.
    fn newest_comparable(
        self,
        read_scope: &ReadScope,
        person: &PersonId,
        most: usize,
    ) -> Result<Vec<MemoryRow>, Error> {
        let mut found = Vec::new();
        for grant in read_scope.grants() {
            let whose = (person.clone(), grant.scope.clone());
            let (mut end, mut read, mut here) = (MemoryId(u64::MAX), 0, 0);
            'scope: while read < MOST_READ {
                let below = |marks: &Marks| marks.below(end);
                let page = self.0.mark_lists.page(self.0, read_scope.persona(), &whose, below)?;
                let Some((_, last)) = page.last() else { break };
                end = *last;
                for (_, id) in page {
                    if here == most || read == MOST_READ {
                        break 'scope;
                    }
                    let Some(mut memory) = self.get(read_scope, id)? else { continue };
                    read += 1;
                    if self.stands(read_scope, &mut memory)? {
                        here += 1;
                        found.push(memory);
                    }
                }
            }
        }
        found.sort_by_key(|memory| std::cmp::Reverse(memory.id));
        found.truncate(most);
        Ok(found)
    }
}
