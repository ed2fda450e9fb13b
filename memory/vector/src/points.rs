//! All points of the index in memory, without their full vectors.

use std::collections::{BTreeMap, HashMap};

use azera_memory::Facet;
use azera_types::{MemoryId, PersonaId, Scope, Timestamp};

use crate::code::Code;
use crate::record::{persona_and_scope, point_bytes, vector_bytes};
use crate::table::Table;

/// The points of one persona and scope. Ids do not repeat within an index.
pub(crate) struct Group {
    pub(crate) persona: PersonaId,
    pub(crate) scope: Scope,
    key: String,
    own: Table,
    window: Table,
}

impl Group {
    pub(crate) fn table(&self, facet: Facet) -> &Table {
        match facet {
            Facet::Own => &self.own,
            Facet::Window => &self.window,
        }
    }

    fn table_mut(&mut self, facet: Facet) -> &mut Table {
        match facet {
            Facet::Own => &mut self.own,
            Facet::Window => &mut self.window,
        }
    }
}

/// Where a point stands: its group, and its rows in the tables of that.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Location {
    group: u32,
    own: u32,
    window: Option<u32>,
}

/// A point to be added.
pub(crate) struct NewPoint<'a> {
    pub(crate) id: MemoryId,
    pub(crate) at: Timestamp,
    pub(crate) key: &'a str,
    pub(crate) own: Code,
    pub(crate) window: Option<Code>,
    /// Where the own vector begins in the file; the window's follows it.
    pub(crate) offset: u64,
}

/// All points of an index.
pub(crate) struct Points {
    dimension: usize,
    groups: Vec<Group>,
    by_key: HashMap<String, u32>,
    by_id: BTreeMap<MemoryId, Location>,
    /// Bytes of the records of all points in the file.
    bytes: u64,
}

impl Points {
    pub(crate) fn new(dimension: usize) -> Self {
        Self { dimension, groups: Vec::new(), by_key: HashMap::new(), by_id: BTreeMap::new(), bytes: 0 }
    }

    /// Bytes of the records of all points in the file.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Ids, ascending.
    pub(crate) fn ids(&self) -> impl Iterator<Item = MemoryId> {
        self.by_id.keys().copied()
    }

    /// The points of a key.
    pub(crate) fn group(&self, key: &str) -> Option<&Group> {
        self.groups.get(*self.by_key.get(key)? as usize)
    }

    /// The group of a point, when it was said, and where its own and its window's vector lie in the file.
    pub(crate) fn find(&self, id: MemoryId) -> Option<(&Group, Timestamp, u64, Option<u64>)> {
        let location = self.by_id.get(&id)?;
        let group = self.groups.get(location.group as usize)?;
        let own = group.own.row(location.own as usize)?;
        let window = location.window.and_then(|row| group.window.row(row as usize));
        Some((group, own.at, own.offset, window.map(|row| row.offset)))
    }

    /// Adds a point, or replaces the one of its id; `None` if its key is none.
    pub(crate) fn insert(&mut self, point: NewPoint<'_>) -> Option<()> {
        self.remove(point.id);
        let number = self.group_of(point.key)?;
        let dimension = self.dimension;
        let group = self.groups.get_mut(number as usize)?;
        let own = u32::try_from(group.own.push(point.id, point.at, point.offset, &point.own)).ok()?;
        let window = match &point.window {
            Some(code) => {
                let offset = point.offset + vector_bytes(dimension) as u64;
                Some(u32::try_from(group.window.push(point.id, point.at, offset, code)).ok()?)
            }
            None => None,
        };
        self.bytes += point_bytes(point.key, dimension, window.is_some());
        self.by_id.insert(point.id, Location { group: number, own, window });
        Some(())
    }

    fn group_of(&mut self, key: &str) -> Option<u32> {
        if let Some(number) = self.by_key.get(key) {
            return Some(*number);
        }
        let (persona, scope) = persona_and_scope(key)?;
        let number = u32::try_from(self.groups.len()).ok()?;
        let table = || Table::new(self.dimension);
        self.groups.push(Group { persona, scope, key: key.to_owned(), own: table(), window: table() });
        self.by_key.insert(key.to_owned(), number);
        Some(number)
    }

    pub(crate) fn remove(&mut self, id: MemoryId) {
        let Some(location) = self.by_id.remove(&id) else { return };
        let Some(group) = self.groups.get_mut(location.group as usize) else { return };
        self.bytes -= point_bytes(&group.key, self.dimension, location.window.is_some());
        let moved = group.table_mut(Facet::Own).remove(location.own as usize);
        if let Some(other) = moved.and_then(|id| self.by_id.get_mut(&id)) {
            other.own = location.own;
        }
        let Some(row) = location.window else { return };
        let moved = group.table_mut(Facet::Window).remove(row as usize);
        if let Some(other) = moved.and_then(|id| self.by_id.get_mut(&id)) {
            other.window = Some(row);
        }
    }

    /// Notes where the vectors of a point lie now.
    pub(crate) fn relocate(&mut self, id: MemoryId, offset: u64) {
        let Some(location) = self.by_id.get(&id) else { return };
        let Some(group) = self.groups.get_mut(location.group as usize) else { return };
        if let Some(row) = group.own.row_mut(location.own as usize) {
            row.offset = offset;
        }
        if let Some(row) = location.window.and_then(|row| group.window.row_mut(row as usize)) {
            row.offset = offset + vector_bytes(self.dimension) as u64;
        }
    }
}
