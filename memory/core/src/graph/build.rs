//! Builds the rows of the graph for memories that were stored before there was a graph, or by a version that read texts
//! in another way. New memories get their rows when they are stored.

use std::sync::LazyLock;

use sha2::{Digest, Sha256};

use super::rows;
use crate::backfill::Backfill;
use crate::domains::Graph;
use crate::{Error, Store, Table, words};

/// Key in [`Table::Meta`]: how far the rows of the graph are.
pub(crate) const PROGRESS: &[u8] = b"graph";

/// The version of what is read from a text. Raise it after every change in this module: rows are removed by computing
/// them again, so rows of another version must never stay.
const GRAPH_VERSION: u32 = 2;

/// The version that is stored. It also changes with the word lists and the folding of other modules, which decide what
/// a name is.
static STORED_VERSION: LazyLock<u32> = LazyLock::new(|| {
    let digest = Sha256::new().chain_update(GRAPH_VERSION.to_be_bytes()).chain_update(words::digest()).finalize();
    let [one, two, three, four, ..] = <[u8; 32]>::from(digest);
    u32::from_be_bytes([one, two, three, four])
});

fn backfill() -> Backfill {
    Backfill { table: Table::Graph, progress: PROGRESS, version: *STORED_VERSION }
}

/// Removes the rows of another version and notes that all memories must be read.
pub(crate) fn begin_anew(store: &dyn Store) -> Result<(), Error> {
    backfill().begin_anew(store)
}

/// Returns true once every memory has its rows.
pub(crate) fn is_whole(store: &dyn Store) -> Result<bool, Error> {
    backfill().is_whole(store)
}

impl Graph<'_> {
    /// Adds the rows of up to `limit` memories that may lack them. Returns false once none is left. After a crash, some
    /// are added again, with the same result.
    pub fn build(self, limit: usize) -> Result<bool, Error> {
        backfill().next(
            self.0,
            limit,
            |_| true,
            |batch, memory| {
                rows::put(batch, memory);
                Ok(())
            },
        )
    }
}
