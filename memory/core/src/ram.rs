use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Included, Unbounded};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;

use azera_types::Timestamp;

use crate::{Batch, Change, Durability, Entry, Error, Order, Store, Table, Working};

/// Most bytes of keys and values that a [`RamWorking`] holds. Above it, the values that expire first are removed.
pub const RAM_WORKING_BYTES: usize = 64 * 1024 * 1024;

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

/// A store in RAM, for tests and replays that store nothing. A clone is another handle on the same rows, as if the
/// store had been opened again.
#[derive(Clone, Default)]
pub struct RamStore {
    held: Arc<RwLock<StoredRows>>,
}

#[derive(Default)]
struct StoredRows {
    tables: BTreeMap<Table, Rows>,
    revision: u64,
}

impl RamStore {
    /// Returns an empty store.
    pub fn new() -> Self {
        Self::default()
    }

    fn read(&self) -> RwLockReadGuard<'_, StoredRows> {
        self.held.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for RamStore {
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        Ok(self.read().tables.get(&table).and_then(|rows| rows.get(key)).cloned())
    }

    fn scan(
        &self,
        table: Table,
        prefix: &[u8],
        after: Option<&[u8]>,
        order: Order,
        limit: usize,
    ) -> Result<Vec<Entry>, Error> {
        let retained = self.read();
        let Some(rows) = retained.tables.get(&table) else { return Ok(Vec::new()) };
        let own = |(key, value): (&Vec<u8>, &Vec<u8>)| (key.clone(), value.clone());
        let inside = |(key, _): &(&Vec<u8>, &Vec<u8>)| key.starts_with(prefix);
        Ok(match order {
            Order::Ascending => {
                let from = match after {
                    Some(after) if after >= prefix => Excluded(after),
                    _ => Included(prefix),
                };
                let range = rows.range::<[u8], _>((from, Unbounded));
                range.take_while(inside).take(limit).map(own).collect()
            }
            Order::Descending => {
                let behind = behind(prefix);
                let to = match (after, &behind) {
                    (Some(after), Some(behind)) => Excluded(after.min(behind)),
                    (Some(after), None) => Excluded(after),
                    (None, Some(behind)) => Excluded(behind.as_slice()),
                    (None, None) => Unbounded,
                };
                let range = rows.range::<[u8], _>((Unbounded, to)).rev();
                range.take_while(inside).take(limit).map(own).collect()
            }
        })
    }

    fn commit(&self, batch: Batch, _durability: Durability) -> Result<(), Error> {
        batch.check()?;
        let mut retained = self.held.write().unwrap_or_else(PoisonError::into_inner);
        retained.revision += 1;
        for change in batch.changes() {
            match change {
                Change::Put(table, key, value) => {
                    retained.tables.entry(*table).or_default().insert(key.clone(), value.clone());
                }
                Change::Remove(table, key) => {
                    retained.tables.entry(*table).or_default().remove(key);
                }
            }
        }
        Ok(())
    }

    fn flush(&self) -> Result<(), Error> {
        Ok(())
    }

    fn rewrite(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Writers wait meanwhile.
    fn dump(&self, take: &mut dyn FnMut(Batch) -> Result<(), Error>) -> Result<u64, Error> {
        let retained = self.read();
        for (table, rows) in &retained.tables {
            let mut batch = Batch::new();
            for (key, value) in rows {
                batch.put(*table, key.clone(), value.clone());
            }
            take(batch)?;
        }
        Ok(retained.revision)
    }

    fn revision(&self) -> u64 {
        self.read().revision
    }

    fn disk_bytes(&self) -> Result<u64, Error> {
        Ok(0)
    }
}

/// Returns the smallest key above every key that starts with `prefix`, or `None` if there is none.
fn behind(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte < u8::MAX)?;
    let mut behind = prefix.get(..=last)?.to_vec();
    *behind.last_mut()? += 1;
    Some(behind)
}

/// Working memory in RAM that ends with the process, bounded by [`RAM_WORKING_BYTES`]. A clone is another handle on the
/// same values.
#[derive(Clone, Default)]
pub struct RamWorking {
    held: Arc<Mutex<Held>>,
}

#[derive(Default)]
struct Held {
    values: BTreeMap<String, (Timestamp, Vec<u8>)>,
    bytes: usize,
}

impl Held {
    fn remove(&mut self, key: &str) {
        if let Some((_, value)) = self.values.remove(key) {
            self.bytes -= key.len() + value.len();
        }
    }

    /// Frees a quarter of the limit at once, so that a full working memory is not searched at every write.
    fn make_room(&mut self) {
        if self.bytes <= RAM_WORKING_BYTES {
            return;
        }
        let mut ends: Vec<_> = self.values.iter().map(|(key, (end, _))| (*end, key.clone())).collect();
        ends.sort_unstable();
        for (_, key) in ends {
            if self.bytes <= RAM_WORKING_BYTES / 4 * 3 {
                break;
            }
            self.remove(&key);
        }
    }
}

impl RamWorking {
    /// Returns an empty working memory.
    pub fn new() -> Self {
        Self::default()
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Working for RamWorking {
    fn get(&self, key: &str, now: Timestamp) -> Result<Option<Vec<u8>>, Error> {
        Ok(self.held().values.get(key).filter(|(end, _)| now < *end).map(|(_, value)| value.clone()))
    }

    fn put(&self, key: &str, value: &[u8], ttl: Duration, now: Timestamp) -> Result<(), Error> {
        let end = now.saturating_add(ttl).map_err(|why| Error::Invalid(why.to_string()))?;
        let mut held = self.held();
        held.remove(key);
        held.bytes += key.len() + value.len();
        held.values.insert(key.to_owned(), (end, value.to_vec()));
        held.make_room();
        Ok(())
    }

    fn remove(&self, key: &str) -> Result<(), Error> {
        self.held().remove(key);
        Ok(())
    }

    fn sweep(&self, now: Timestamp) -> Result<usize, Error> {
        let mut held = self.held();
        let ended: Vec<_> =
            held.values.iter().filter(|(_, (end, _))| *end <= now).map(|(key, _)| key.clone()).collect();
        for key in &ended {
            held.remove(key);
        }
        Ok(ended.len())
    }

    fn clear(&self) -> Result<(), Error> {
        *self.held() = Held::default();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::conformance;

    fn fresh() -> impl FnMut() -> RamStore {
        let store = RamStore::new();
        move || store.clone()
    }

    #[test]
    fn the_store_passes_the_conformance_suite() {
        conformance::store(fresh);
    }

    #[test]
    fn the_working_memory_passes_the_conformance_suite() {
        conformance::working(|| {
            let working = RamWorking::new();
            move || working.clone()
        });
        conformance::sweeping(&RamWorking::new());
    }

    #[test]
    fn a_full_working_memory_drops_the_values_that_expire_first() {
        let working = RamWorking::new();
        let value = vec![0; RAM_WORKING_BYTES / 4];
        for hours in [3_u64, 1, 2, 4] {
            let ttl = Duration::from_secs(hours * 3_600);
            working.put(&hours.to_string(), &value, ttl, Timestamp::UNIX_EPOCH).unwrap();
        }
        let left: Vec<_> = working.held().values.keys().cloned().collect();
        assert_eq!(left, ["3", "4"]);
    }

    proptest! {
        #[test]
        fn the_store_answers_like_a_map(script in prop::collection::vec(any::<u8>(), 0..2_000)) {
            conformance::store_against_map(&script, fresh());
        }
    }
}
