//! The rows of [`Table::Themes`]: one for each memory that may belong to a theme. A key is persona, scope and memory. A
//! row is written and removed with its memory. It holds numbers and no words.

use azera_types::{MemoryId, Timestamp};

use super::cluster::Member;
use super::marks;
use crate::rows::{Kind, MemoryRow};
use crate::{Batch, Entry, Error, Store, Table, keys};

/// Number of no theme: a memory was compared and fits none.
const NONE: u16 = u16::MAX;

/// Fewest words of a text that has a matter.
const MIN_WORDS: usize = 4;

/// Fewest characters of a text without spaces that has a matter.
const MIN_UNSPACED_CHARS: usize = 6;

/// By how much the closeness of a memory may change without being written, of 200.
const STILL: u8 = 10;

/// A row, read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Row {
    pub(super) memory: MemoryId,
    /// When it was said, to the millisecond.
    pub(super) at: Timestamp,
    /// True for a fact that somebody asked to keep. The message it was in may have a row of its own, said at the same
    /// time.
    pub(super) is_kept: bool,
    /// `None` if it was not compared with others since it was said or changed.
    pub(super) place: Option<Placed>,
}

/// The result of comparing a memory with others.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Placed {
    /// It fits no theme.
    Nowhere,
    In(Member),
}

impl Row {
    pub(super) fn member(&self) -> Option<Member> {
        match self.place {
            Some(Placed::In(member)) => Some(member),
            _ => None,
        }
    }

    /// Returns true if the row need not be written anew. The centre of a theme moves a little with each new memory.
    pub(super) fn is_still(&self, placed: Placed) -> bool {
        match (self.place, placed) {
            (Some(Placed::Nowhere), Placed::Nowhere) => true,
            (Some(Placed::In(was)), Placed::In(is)) => {
                (was.theme, was.group) == (is.theme, is.group) && was.closeness.abs_diff(is.closeness) <= STILL
            }
            _ => false,
        }
    }
}

/// Returns true if a memory may belong to a theme: a person said it, with enough words for a matter, and everybody who may
/// read its place may read it.
pub(crate) fn is_eligible(memory: &MemoryRow) -> bool {
    let is_told = memory.kind == Kind::Message || memory.is_kept();
    let has_matter = || {
        let words = memory.text.split_whitespace().count();
        words >= MIN_WORDS
            || (crate::words::carries_meaning(&memory.text) && memory.text.chars().count() >= MIN_UNSPACED_CHARS)
    };
    is_told && memory.author.person().is_some() && memory.source_scopes.is_empty() && has_matter()
}

/// Returns the key of a memory's row.
pub(crate) fn key(memory: &MemoryRow) -> Vec<u8> {
    keys::numbered(&[memory.persona.as_str(), &memory.scope.to_string()], memory.id.0)
}

/// Adds the row of a new or changed memory, which is compared with others later.
pub(crate) fn put(batch: &mut Batch, memory: &MemoryRow) {
    if is_eligible(memory) {
        let row = Row { memory: memory.id, at: memory.at, is_kept: memory.is_kept(), place: None };
        batch.put(Table::Themes, key(memory), value(&row, None));
    } else {
        batch.remove(Table::Themes, key(memory));
    }
}

/// Replaces the row of a memory whose text changed. It had its part in a theme, so what is left is grouped again.
pub(crate) fn change(store: &dyn Store, batch: &mut Batch, memory: &MemoryRow) -> Result<(), Error> {
    mark(store, batch, memory)?;
    put(batch, memory);
    Ok(())
}

/// Removes the row of a memory. If it was part of a theme, what is left is grouped again.
pub(crate) fn remove(store: &dyn Store, batch: &mut Batch, memory: &MemoryRow) -> Result<(), Error> {
    mark(store, batch, memory)?;
    batch.remove(Table::Themes, key(memory));
    Ok(())
}

fn mark(store: &dyn Store, batch: &mut Batch, memory: &MemoryRow) -> Result<(), Error> {
    let key = key(memory);
    let Some(value) = store.get(Table::Themes, &key)? else { return Ok(()) };
    // A damaged row was part of nothing.
    if read(&(key.clone(), value)).is_ok_and(|row| row.member().is_some()) {
        marks::put(batch, key.get(..key.len().saturating_sub(8)).unwrap_or_default(), memory.id)?;
    }
    Ok(())
}

/// Returns the value of a row that belongs there now.
pub(super) fn value(row: &Row, placed: Option<Placed>) -> Vec<u8> {
    let mut value = row.at.as_millisecond().to_be_bytes().to_vec();
    value.push(u8::from(row.is_kept));
    let member = match placed {
        None => return value,
        Some(Placed::Nowhere) => Member { theme: NONE, group: NONE, closeness: 0 },
        Some(Placed::In(member)) => member,
    };
    value.extend_from_slice(&member.theme.to_be_bytes());
    value.extend_from_slice(&member.group.to_be_bytes());
    value.push(member.closeness);
    value
}

/// Returns the rows that can be read, each with its entry. A damaged row is a matter of the record's check.
pub(super) fn readable(entries: Vec<Entry>) -> Vec<(Row, Entry)> {
    entries.into_iter().filter_map(|entry| Some((read(&entry).ok()?, entry))).collect()
}

/// Reads a row.
fn read((key, value): &Entry) -> Result<Row, Error> {
    let damaged = || Error::Damaged { table: Table::Themes.name(), why: "a row cannot be read".into() };
    let memory = MemoryId(keys::number(Table::Themes.name(), key)?);
    let (at, rest) = value.split_first_chunk::<8>().ok_or_else(damaged)?;
    let at = Timestamp::from_millisecond(i64::from_be_bytes(*at)).map_err(|_| damaged())?;
    let (is_kept, rest) = match rest.split_first() {
        Some((flag @ (0 | 1), rest)) => (*flag == 1, rest),
        _ => return Err(damaged()),
    };
    let place = match rest {
        [] => None,
        [a, b, c, d, closeness] => {
            let (theme, group) = (u16::from_be_bytes([*a, *b]), u16::from_be_bytes([*c, *d]));
            let member = Member { theme, group, closeness: *closeness };
            Some(if theme == NONE { Placed::Nowhere } else { Placed::In(member) })
        }
        _ => return Err(damaged()),
    };
    Ok(Row { memory, at, is_kept, place })
}
