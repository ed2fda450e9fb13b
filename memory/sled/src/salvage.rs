//! Reads the remains of a damaged store.
//!
//! sled cannot open a store if the damage hits the data that locates its pages; damage elsewhere makes sled drop
//! everything after it. So rows are read without sled (`carving`). If it is unknown which generation is in use, all are
//! read and the one with most rows is used, because the last may be half a copy.

use std::fs;
use std::path::{Path, PathBuf};

use azera_memory::{Batch, Error, Table};

use crate::carving::Carving;
use crate::database::COPY_BYTES;
use crate::generation::number;
use crate::store::SledStore;

/// The result of salvaging a store.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SalvageReport {
    /// Number of rows that were recovered.
    pub rows: usize,
    /// Number of places that could not be read. It may be 0 although rows are missing: nothing shows what a truncated
    /// file contained, or what damage at the very end hit in a reused place.
    pub gaps: usize,
}

impl SledStore {
    /// Passes every row of the store in `dir` that can still be read to `take`, once and in no order. The store is not
    /// changed, and need not be one that sled can open.
    ///
    /// A damaged place costs rows of the pages written there, and no others. If such a page has an older state, that
    /// one is used: single rows may then be outdated, or may have been removed since.
    ///
    /// # Errors
    ///
    /// Fails if nothing can be read, if the disk fails, or if `take` fails.
    pub fn salvage(
        dir: impl AsRef<Path>,
        take: &mut dyn FnMut(Batch) -> Result<(), Error>,
    ) -> Result<SalvageReport, Error> {
        let generations = generations(dir.as_ref())?;
        let (mut best, mut most) = (generations.first(), 0);
        if generations.len() > 1 {
            for generation in &generations {
                let rows = read(generation, &mut |_| Ok(()))?.rows;
                if rows > most {
                    (best, most) = (Some(generation), rows);
                }
            }
        }
        match best.map(|best| read(best, take)).transpose()? {
            Some(salvaged) if salvaged.rows > 0 => Ok(salvaged),
            _ => {
                let why = "nothing of it can be read".to_owned();
                Err(Error::Backend { what: "salvaging the store", why, transient: false })
            }
        }
    }
}

/// Returns the generation in use, or all of them, newest first, if that is unknown.
fn generations(dir: &Path) -> Result<Vec<PathBuf>, Error> {
    let named = fs::read_to_string(dir.join("current")).ok().map(|name| dir.join(name.trim()));
    if let Some(named) = named.filter(|named| named.join("db").is_file()) {
        return Ok(vec![named]);
    }
    let what = "reading the directory of a damaged store";
    let mut generations = Vec::new();
    for entry in fs::read_dir(dir).map_err(Error::io(what))? {
        let path = entry.map_err(Error::io(what))?.path();
        let found = path.file_name().and_then(|name| name.to_str()).and_then(number);
        generations.extend(found.filter(|_| path.join("db").is_file()).map(|number| (number, path)));
    }
    generations.sort();
    Ok(generations.into_iter().rev().map(|(_, path)| path).collect())
}

fn read(generation: &Path, take: &mut dyn FnMut(Batch) -> Result<(), Error>) -> Result<SalvageReport, Error> {
    let mut carving = Carving::of(generation)?;
    let (mut batch, mut bytes, mut rows) = (Batch::new(), 0, 0);
    carving.rows(&mut |page| {
        for (key, value) in page {
            // Keys outside all tables belong to the store itself.
            let Some((number, key)) = key.split_first() else { continue };
            let Some(table) = Table::from_number(*number) else { continue };
            bytes += key.len() + value.len();
            rows += 1;
            batch.put(table, key, value);
        }
        if bytes < COPY_BYTES {
            return Ok(());
        }
        bytes = 0;
        take(std::mem::take(&mut batch))
    })?;
    take(batch)?;
    Ok(SalvageReport { rows, gaps: carving.gaps })
}
