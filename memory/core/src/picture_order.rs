//! Which pictures there are, by place: an index in memory over [`crate::Table::Pictures`], read once. It holds numbers
//! alone. A number whose row is gone stays until somebody looks for it, and counts as nothing.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use azera_types::{PersonaId, Scope};

use crate::ReadScope;
use crate::pictures::PictureRow;

/// The numbers of the pictures.
#[derive(Default)]
pub(crate) struct PictureOrder {
    /// Whether the rows were read.
    pub(crate) is_read: bool,
    waiting: BTreeSet<u64>,
    drawn: HashMap<PersonaId, BTreeMap<Scope, BTreeSet<u64>>>,
    pinned: HashMap<Scope, BTreeSet<u64>>,
    /// Those whose files may be kept.
    kept: BTreeSet<u64>,
}

impl PictureOrder {
    /// Notes a row as it is now.
    pub(crate) fn note(&mut self, row: &PictureRow) {
        if row.drawn_at.is_none() {
            self.waiting.insert(row.number);
            return;
        }
        self.waiting.remove(&row.number);
        self.kept.insert(row.number);
        let places = self.drawn.entry(row.persona.clone()).or_default();
        places.entry(row.scope.clone()).or_default().insert(row.number);
        let pinned = self.pinned.entry(row.scope.clone()).or_default();
        if row.is_pinned {
            pinned.insert(row.number);
        } else {
            pinned.remove(&row.number);
        }
    }

    /// Returns the pictures that wait, oldest first.
    pub(crate) fn waiting(&self) -> Vec<u64> {
        self.waiting.iter().copied().collect()
    }

    /// Notes that a picture waits no more.
    pub(crate) fn is_over(&mut self, number: u64) {
        self.waiting.remove(&number);
    }

    /// Returns the pinned pictures of a place.
    pub(crate) fn pinned(&self, scope: &Scope) -> Vec<u64> {
        self.pinned.get(scope).into_iter().flatten().copied().collect()
    }

    /// Notes that a picture is gone.
    pub(crate) fn is_gone(&mut self, persona: &PersonaId, number: u64) {
        self.kept.remove(&number);
        let places = self.drawn.get_mut(persona).into_iter().flat_map(BTreeMap::values_mut);
        places.chain(self.pinned.values_mut()).for_each(|numbers| {
            numbers.remove(&number);
        });
    }

    /// Returns the drawn pictures whose files may be kept, oldest first.
    pub(crate) fn kept(&self) -> Vec<u64> {
        self.kept.iter().copied().collect()
    }

    /// Notes that the file of a picture is not kept any more.
    pub(crate) fn lost_file(&mut self, number: u64) {
        self.kept.remove(&number);
    }

    /// Returns the newest pictures below `before` of the places that `read_scope` grants, at most `limit`, newest first.
    pub(crate) fn newest(&self, read_scope: &ReadScope, before: u64, limit: usize) -> Vec<u64> {
        let Some(places) = self.drawn.get(read_scope.persona()) else { return Vec::new() };
        let granted = read_scope.grants().iter().filter_map(|grant| places.get(&grant.scope));
        let mut heads: Vec<_> = granted.map(|numbers| numbers.range(..before).rev().copied().peekable()).collect();
        let mut newest = Vec::new();
        while newest.len() < limit {
            let next = heads.iter_mut().filter_map(|numbers| Some((*numbers.peek()?, numbers)));
            let Some((number, numbers)) = next.max_by_key(|(number, _)| *number) else { break };
            numbers.next();
            newest.push(number);
        }
        newest
    }
}
