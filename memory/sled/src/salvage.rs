//! Reading what is left of a damaged store.
//!
//! sled mends what it opens: what lies behind damage in its log is cut off for good. So a copy is opened, once with the
//! snapshot of its page table and once without, in which case sled goes through the whole log; what gives more rows
//! counts. Where nothing says which generation is in use, all of them are tried: the last one may be half a copy.

use std::fs;
use std::ops::Bound::{Excluded, Included, Unbounded};
use std::path::{Path, PathBuf};

use azera_memory::{Batch, Error, Table};

use crate::database::{Database, Row, SNAPSHOT};
use crate::generation::number;
use crate::store::{CACHE_BYTES, SledStore};

/// Rows handed out at once.
const PAGE_ROWS: usize = 512;

/// What came of reading a damaged store.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Salvaged {
    /// Rows that were handed out.
    pub rows: usize,
    /// Places at which some number of rows could not be read.
    pub gaps: usize,
}

impl SledStore {
    /// Hands every row of the store in `dir` that can still be read to `take`, in no order. The store itself is left as
    /// it is; `scratch`, which must not be there, is made, needs as much room, and is removed.
    ///
    /// # Errors
    ///
    /// If nothing can be read at all, or the best way to read it fails on the second time.
    pub fn salvage(
        dir: impl AsRef<Path>,
        scratch: impl AsRef<Path>,
        take: &mut dyn FnMut(Batch) -> Result<(), Error>,
    ) -> Result<Salvaged, Error> {
        let (dir, scratch) = (dir.as_ref(), scratch.as_ref());
        let mut best: Option<(usize, PathBuf, bool)> = None;
        let mut refused = None;
        for generation in generations(dir)? {
            for with_snapshot in [true, false] {
                match with_copy(&generation, scratch, with_snapshot, &mut |_| Ok(())) {
                    Ok(counted) if best.as_ref().is_none_or(|(rows, ..)| counted.rows > *rows) => {
                        best = Some((counted.rows, generation.clone(), with_snapshot));
                    }
                    Ok(_) => {}
                    Err(error) => {
                        tracing::debug!(%error, with_snapshot, "a copy of the damaged store cannot be read");
                        // A disk that refuses is worth more words than damage.
                        if matches!(error, Error::Full { .. } | Error::Io { .. }) {
                            refused.get_or_insert(error);
                        }
                    }
                }
            }
        }
        let Some((_, generation, with_snapshot)) = best else {
            let why = "nothing of it can be read".to_owned();
            return Err(refused.unwrap_or(Error::Backend { what: "salvaging the store", why, transient: false }));
        };
        with_copy(&generation, scratch, with_snapshot, take)
    }
}

/// Reads a copy of a generation.
fn with_copy(
    generation: &Path,
    scratch: &Path,
    with_snapshot: bool,
    take: &mut dyn FnMut(Batch) -> Result<(), Error>,
) -> Result<Salvaged, Error> {
    let copied = copy(generation, scratch, with_snapshot);
    let read = copied.and_then(|()| {
        let database = Database::open(scratch, CACHE_BYTES)?;
        read_all(&database, take)
    });
    let removed = fs::remove_dir_all(scratch).map_err(Error::io("removing the copy of a damaged store"));
    read.and_then(|read| removed.map(|()| read))
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
    if generations.is_empty() {
        return Err(Error::Backend { what, why: "there is no generation in it".into(), transient: false });
    }
    generations.sort();
    Ok(generations.into_iter().rev().map(|(_, path)| path).collect())
}

fn copy(from: &Path, to: &Path, with_snapshot: bool) -> Result<(), Error> {
    let what = "copying a damaged store";
    fs::create_dir_all(to).map_err(Error::io(what))?;
    for entry in fs::read_dir(from).map_err(Error::io(what))? {
        let entry = entry.map_err(Error::io(what))?;
        let (path, name) = (entry.path(), entry.file_name());
        if path.is_dir() {
            copy(&path, &to.join(name), with_snapshot)?;
        } else if with_snapshot || !name.to_string_lossy().starts_with(SNAPSHOT) {
            fs::copy(&path, to.join(name)).map_err(Error::io(what))?;
        }
    }
    Ok(())
}

/// Reads from the first key to the last, and goes on behind what cannot be read.
fn read_all(database: &Database, take: &mut dyn FnMut(Batch) -> Result<(), Error>) -> Result<Salvaged, Error> {
    let mut salvaged = Salvaged::default();
    let mut from = Some(Vec::new());
    while let Some(start) = from.take() {
        let (mut last, mut gap) = (start.clone(), false);
        let mut page = Batch::new();
        let mut rows = database.run("reading a damaged store", |db| Ok(db.range::<Vec<u8>, _>(start..)))?;
        loop {
            match database.run("reading a damaged store", |_| rows.next().transpose()) {
                Ok(Some((key, value))) => {
                    last = key.to_vec();
                    salvaged.rows += usize::from(put(&mut page, (key, value)));
                    if page.changes().len() >= PAGE_ROWS {
                        take(std::mem::take(&mut page))?;
                    }
                }
                Ok(None) => break,
                Err(_) => {
                    salvaged.gaps += 1;
                    gap = true;
                    from = behind_gap(database, &last);
                    break;
                }
            }
        }
        take(page)?;
        if gap {
            salvaged.rows += read_back(database, &last, from.as_deref(), take)?;
        }
    }
    Ok(salvaged)
}

/// Reads from what was found behind a gap, or from the end, back to the gap: asking further and further away, pages that can be read were
/// left out.
fn read_back(
    database: &Database,
    gap: &[u8],
    found: Option<&[u8]>,
    take: &mut dyn FnMut(Batch) -> Result<(), Error>,
) -> Result<usize, Error> {
    let (mut count, mut page) = (0, Batch::new());
    let between = (Excluded(gap.to_vec()), found.map_or(Unbounded, |found| Excluded(found.to_vec())));
    let mut rows = database.run("reading a damaged store", |db| Ok(db.range::<Vec<u8>, _>(between)))?;
    while let Ok(Some(row)) = database.run("reading a damaged store", |_| rows.next_back().transpose()) {
        count += usize::from(put(&mut page, row));
        if page.changes().len() >= PAGE_ROWS {
            take(std::mem::take(&mut page))?;
        }
    }
    take(page)?;
    Ok(count)
}

/// Adds a row; what is in no table is the store's own.
fn put(page: &mut Batch, (key, value): Row) -> bool {
    let Some((table, key)) = key.split_first().and_then(|(number, key)| Some((Table::from_number(*number)?, key)))
    else {
        return false;
    };
    page.put(table, key, value.as_ref());
    true
}

/// The first key behind `last` that can be read again. Pages hold neighbouring keys, so keys further and further away are
/// asked for: those that differ in the last byte, in the one before, and so on. Behind no key at all, those of one byte.
fn behind_gap(database: &Database, last: &[u8]) -> Option<Vec<u8>> {
    let lengths = (1..=last.len()).rev().filter_map(|length| last.get(..length)?.split_last());
    let stems = lengths.map(|(byte, stem)| (stem, u16::from(*byte) + 1));
    let all: &[u8] = &[];
    for (stem, first) in stems.chain(last.is_empty().then_some((all, 0))) {
        for next in (first..=u16::from(u8::MAX)).filter_map(|next| u8::try_from(next).ok()) {
            let asked = [stem, &[next]].concat();
            let found = database.run("reading a damaged store", |db| {
                db.range::<Vec<u8>, _>((Included(asked.clone()), Excluded(vec![u8::MAX; 2]))).next().transpose()
            });
            match found {
                Ok(Some((key, _))) => return Some(key.to_vec()),
                Ok(None) => return None,
                Err(_) => {}
            }
        }
    }
    None
}
