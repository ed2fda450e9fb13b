use std::sync::Arc;

use crate::{Batch, Durability, Entry, Error, Order, RamStore, Store, Table};

type Step<T> = Arc<dyn Fn(Table) -> T + Send + Sync>;

/// A store in memory that lets a test act at some of its calls: fail them, or change the record behind them.
#[derive(Clone, Default)]
pub struct StagedStore {
    rows: RamStore,
    after_get: Option<Step<()>>,
    before_scan: Option<Step<Result<(), Error>>>,
    before_commit: Option<Arc<dyn Fn() -> Result<(), Error> + Send + Sync>>,
}

impl StagedStore {
    /// Stores in `rows`, which the test may read and change directly.
    pub fn new(rows: RamStore) -> Self {
        Self { rows, ..Self::default() }
    }

    /// Calls `step` after each read of one row. What it changes is not in the result of that read.
    #[must_use]
    pub fn after_get(mut self, step: impl Fn(Table) + Send + Sync + 'static) -> Self {
        self.after_get = Some(Arc::new(step));
        self
    }

    /// Calls `step` before each scan, which fails if `step` does.
    #[must_use]
    pub fn before_scan(mut self, step: impl Fn(Table) -> Result<(), Error> + Send + Sync + 'static) -> Self {
        self.before_scan = Some(Arc::new(step));
        self
    }

    /// Calls `step` before each commit, which fails and changes nothing if `step` does.
    #[must_use]
    pub fn before_commit(mut self, step: impl Fn() -> Result<(), Error> + Send + Sync + 'static) -> Self {
        self.before_commit = Some(Arc::new(step));
        self
    }
}

impl Store for StagedStore {
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let found = self.rows.get(table, key);
        if let Some(step) = &self.after_get {
            step(table);
        }
        found
    }

    fn scan(
        &self,
        table: Table,
        prefix: &[u8],
        after: Option<&[u8]>,
        order: Order,
        limit: usize,
    ) -> Result<Vec<Entry>, Error> {
        self.before_scan.as_ref().map_or(Ok(()), |step| step(table))?;
        self.rows.scan(table, prefix, after, order, limit)
    }

    fn commit(&self, batch: Batch, durability: Durability) -> Result<(), Error> {
        self.before_commit.as_ref().map_or(Ok(()), |step| step())?;
        self.rows.commit(batch, durability)
    }

    fn flush(&self) -> Result<(), Error> {
        self.rows.flush()
    }

    fn rewrite(&self) -> Result<(), Error> {
        self.rows.rewrite()
    }

    fn dump(&self, take: &mut dyn FnMut(Batch) -> Result<(), Error>) -> Result<u64, Error> {
        self.rows.dump(take)
    }

    fn revision(&self) -> u64 {
        self.rows.revision()
    }

    fn disk_bytes(&self) -> Result<u64, Error> {
        self.rows.disk_bytes()
    }
}
