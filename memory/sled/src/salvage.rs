//! Reading what is left of a damaged store.
//!
//! sled opens no store whose damage meets what it finds its pages by, and cuts off what lies behind damage elsewhere, so
//! rows are read without it (`carving`). Where nothing says which generation is in use, all of them are tried and the
//! fullest counts: the last one may be half a copy.

use std::fs;
use std::path::{Path, PathBuf};

use azera_memory::{Batch, Error, Table};

use crate::carving::Carving;
use crate::database::COPY_BYTES;
use crate::generation::number;
use crate::store::SledStore;

/// What came of reading a damaged store.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SalvageReport {
    /// Rows that were handed out.
    pub rows: usize,
    /// Places at which something could not be read. There may be none although rows are missing: where a file is cut off,
    /// or damage hit what was written last and in a place that had been used before, nothing tells what stood there.
    pub gaps: usize,
}

impl SledStore {
    /// Hands every row of the store in `dir` that can still be read to `take`, in no order, and each once. The store
    /// itself is left as it is, and need not be one that can be opened.
    ///
    /// A damaged place costs rows of the pages that were written there and no others. An older state of such a page stands
    /// in for it if there is one: single rows may be as they once were, also such as were removed since.
    ///
    /// # Errors
    ///
    /// If nothing can be read at all, the disk refuses, or `take` does.
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

/// The generation in use, or all of them where nothing says which that is, the newest first.
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
            // What is in no table is the store's own.
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
