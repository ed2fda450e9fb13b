//! Rows out of what is left of a database of sled, page by page, without sled.
//!
//! Of each page its newest whole state is taken, and the changes behind it. Where one of those lies behind a hole in the log,
//! a newer state may be missing in it, and that might have had another range of keys; keys are written without what the
//! page's range has in common, so the change would be read wrongly. It is taken only if nothing tells of another range: the
//! neighbour begins where it ends, and nothing newer begins inside. Thus a hole costs what the pages that were written in
//! it hold, and no other. An older state of such a page, if there is one, stands in for it: rather a row that was changed or
//! removed since than none. Where a hole took all that told of a split or a merge, a row can come under a wrong key.
//!
//! Where ranges overlap, for an older state stands in or a page was given up and that is lost, the page decides that was
//! written last as a whole. So what was removed does not come back where the page that it was removed from is whole.

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Unbounded};
use std::path::Path;

use azera_memory::Error;

use crate::key_ranges::{KeyRange, KeyRanges};
use crate::log::{Kind, Log, Message, Place, Runs};
use crate::page::{Change, Content, Node};

/// Values by key.
pub(crate) type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

/// What the log holds about a page.
#[derive(Default)]
struct Page {
    /// Its newest whole state, which is no place where it is no more.
    state: Option<(u64, Option<Place>)>,
    /// Changes since.
    changes: Vec<(u64, Place)>,
    /// When a state was written that is gone.
    lost: Option<u64>,
}

impl Page {
    fn add(&mut self, message: &Message) {
        let newest = self.state.map(|(lsn, _)| lsn);
        match message.kind {
            Kind::Change(place) if newest < Some(message.lsn) => self.changes.push((message.lsn, place)),
            Kind::State(_) | Kind::Freed if newest < Some(message.lsn) => {
                let place = if let Kind::State(place) = message.kind { Some(place) } else { None };
                self.state = Some((message.lsn, place));
                self.changes.retain(|(lsn, _)| *lsn > message.lsn);
            }
            Kind::Lost => self.lost = self.lost.max(Some(message.lsn)),
            _ => {}
        }
    }
}

/// A page that holds rows.
struct Leaf {
    page: u64,
    /// When it was last written as a whole.
    lsn: u64,
    place: Place,
    range: KeyRange,
}

/// A database that is read. Kept in memory are where its pages lie and their ranges of keys, less than a kilobyte each.
pub(crate) struct Carving {
    log: Log,
    pages: BTreeMap<u64, Page>,
    runs: Runs,
    /// Those with rows, the newest first.
    leaves: Vec<Leaf>,
    /// First keys of pages, with when that was last so.
    begins: BTreeMap<Vec<u8>, u64>,
    /// Places at which something could not be read.
    pub(crate) gaps: usize,
}

impl Carving {
    /// Looks through the log in `dir`.
    pub(crate) fn of(dir: &Path) -> Result<Self, Error> {
        let (mut log, mut pages) = (Log::open(dir)?, BTreeMap::<u64, Page>::new());
        let runs = log.scan(&mut |message| {
            if !matches!(message.kind, Kind::End | Kind::Other) {
                pages.entry(message.page).or_default().add(message);
            }
        })?;
        pages.values_mut().for_each(|page| page.changes.sort_by_key(|(lsn, _)| *lsn));
        let lost = |page: &&Page| page.state.is_none_or(|(lsn, _)| Some(lsn) < page.lost);
        let gaps = runs.holes + pages.values().filter(lost).count();
        let mut carving = Self { log, pages, runs, leaves: Vec::new(), begins: BTreeMap::new(), gaps };
        carving.find_leaves()?;
        Ok(carving)
    }

    /// Tells pages with rows from those that lead to them, and where each begins.
    fn find_leaves(&mut self) -> Result<(), Error> {
        for (number, page) in &self.pages {
            let Some((lsn, Some(place))) = page.state else { continue };
            let Some(bytes) = self.log.read(place)? else { continue };
            let Some(node) = Node::of(&bytes) else { continue };
            let mut begin = |key: Vec<u8>| {
                let newest = self.begins.entry(key).or_default();
                *newest = lsn.max(*newest);
            };
            begin(node.lo.to_vec());
            match &node.content {
                Content::Rows(_) => {
                    let range = KeyRange { lo: node.lo.to_vec(), hi: node.hi.to_vec() };
                    self.leaves.push(Leaf { page: *number, lsn, place, range });
                }
                Content::Pages(pages) => {
                    let (mut pages, mut merging) = (pages.clone(), node.merging);
                    for (_, place) in &page.changes {
                        match self.log.read(*place)?.as_deref().and_then(Change::of) {
                            Some(Change::Merge(page)) => merging = page,
                            Some(Change::Merged) => pages.retain(|(_, page)| *page != merging),
                            _ => {}
                        }
                    }
                    pages.iter().for_each(|(key, _)| begin(node.key(key)));
                }
            }
        }
        self.leaves.sort_by_key(|leaf| std::cmp::Reverse(leaf.lsn));
        Ok(())
    }

    /// Hands out every row that can be read, page by page in no order, and each once.
    pub(crate) fn rows(&mut self, take: &mut dyn FnMut(Rows) -> Result<(), Error>) -> Result<(), Error> {
        let mut claims = KeyRanges::default();
        for leaf in std::mem::take(&mut self.leaves) {
            let own = claims.claim(&leaf.range);
            if own.is_empty() {
                continue;
            }
            let mut rows = self.rows_of(&leaf)?;
            rows.retain(|key, _| own.iter().any(|range| range.holds(key)));
            take(rows)?;
        }
        Ok(())
    }

    fn rows_of(&mut self, leaf: &Leaf) -> Result<Rows, Error> {
        let (mut rows, same_range) = (Rows::new(), self.is_within_its_range(leaf));
        let (Some(bytes), Some(page)) = (self.log.read(leaf.place)?, self.pages.get(&leaf.page)) else {
            return Ok(rows);
        };
        let Some(node) = Node::of(&bytes) else { return Ok(rows) };
        if let Content::Rows(held) = &node.content {
            rows.extend(held.iter().map(|(key, value)| (node.key(key), value.to_vec())));
        }
        for (lsn, place) in &page.changes {
            let follows =
                self.runs.whole(leaf.lsn, *lsn) && page.lost.is_none_or(|lost| lost < leaf.lsn || lost > *lsn);
            if !follows && !same_range {
                self.gaps += 1;
                break;
            }
            match self.log.read(*place)?.as_deref().and_then(Change::of) {
                Some(Change::Put(key, value)) => {
                    rows.insert(node.key(key), value.to_vec());
                }
                Some(Change::Remove(key)) => {
                    rows.remove(&node.key(key));
                }
                Some(_) => {}
                None => self.gaps += 1,
            }
        }
        // What lies outside was not written for this state of the page.
        rows.retain(|key, _| leaf.range.holds(key));
        Ok(rows)
    }

    /// Whether nothing tells of another range of keys than that which a page was last written with as a whole.
    fn is_within_its_range(&self, leaf: &Leaf) -> bool {
        let KeyRange { lo, hi } = &leaf.range;
        let inside = (Excluded(lo), if hi.is_empty() { Unbounded } else { Excluded(hi) });
        (hi.is_empty() || self.begins.contains_key(hi))
            && self.begins.range::<Vec<u8>, _>(inside).all(|(_, lsn)| *lsn < leaf.lsn)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::fs;
    use std::ops::Range;
    use std::path::Path;

    use azera_memory::{Batch, Durability, Store, Table, conformance};
    use proptest::prelude::*;
    use tempfile::TempDir;

    use super::{Carving, Leaf, Rows};
    use crate::key_ranges::KeyRange;
    use crate::log::Log;
    use crate::page::{Change, Node};
    use crate::store::SledStore;

    /// Rows that are found, and whether something was not.
    fn carved(dir: &Path) -> (Rows, bool) {
        let mut rows = Rows::new();
        let mut take = |page: Rows| {
            let before = rows.len() + page.len();
            rows.extend(page);
            assert_eq!(rows.len(), before, "handed out twice");
            Ok(())
        };
        let mut carving = Carving::of(dir).unwrap();
        carving.rows(&mut take).unwrap();
        // The number of the last batch.
        rows.remove(&[u8::MAX][..]);
        (rows, carving.gaps > 0)
    }

    /// Rows as they are in the end, and every value that each had in the course of some sessions.
    fn history(dir: &Path, random: &mut Random) -> (Rows, BTreeMap<Vec<u8>, BTreeSet<Vec<u8>>>) {
        let (mut rows, mut ever) = (Rows::new(), BTreeMap::<_, BTreeSet<_>>::new());
        for session in 0..6 {
            let store = SledStore::open(dir).unwrap();
            for _ in 0..150 {
                let mut batch = Batch::new();
                for _ in 0..random.below(12) {
                    let number = random.below(3_000);
                    let key = if number < 2_000 {
                        format!("{number:04}")
                    } else {
                        format!("a longer key {}", number * number)
                    };
                    let row = [&[Table::Messages as u8], key.as_bytes()].concat();
                    // Pages that were full become so small that sled merges them.
                    if random.below(10) < if session == 3 { 8 } else { 2 } {
                        batch.remove(Table::Messages, key);
                        rows.remove(&row);
                    } else {
                        let length = if random.below(400) == 0 { 200_000 } else { random.below(300) };
                        let value = random.bytes(length);
                        batch.put(Table::Messages, key, value.clone());
                        ever.entry(row.clone()).or_default().insert(value.clone());
                        rows.insert(row, value);
                    }
                }
                store.commit(batch, Durability::Soon).unwrap();
            }
        }
        (rows, ever)
    }

    /// Numbers by xorshift.
    struct Random(u64);

    impl Random {
        fn below(&mut self, limit: usize) -> usize {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            (self.0 % limit as u64) as usize
        }

        fn bytes(&mut self, count: usize) -> Vec<u8> {
            (0..count).map(|_| self.below(256) as u8).collect()
        }
    }

    /// Ranges of keys of a whole database, with where in its log the page lies that holds them.
    fn pages(dir: &Path) -> Vec<(KeyRange, Vec<Range<u64>>)> {
        let (carving, mut messages) = (Carving::of(dir).unwrap(), BTreeMap::new());
        let mut log = Log::open(dir).unwrap();
        log.scan(&mut |message| messages.extend([(message.lsn, message.bytes.clone())])).unwrap();
        let of = |leaf: &Leaf| {
            let changes = carving.pages[&leaf.page].changes.iter().map(|(lsn, _)| *lsn);
            (leaf.range.clone(), changes.chain([leaf.lsn]).map(|lsn| messages[&lsn].clone()).collect())
        };
        carving.leaves.iter().map(of).collect()
    }

    /// Damage of any kind costs rows of the pages it hits and no other, and hardly ever brings up what never was.
    #[test]
    fn damage_costs_what_it_hits() {
        let seed = 5;
        let (dir, mut random) = (TempDir::new().unwrap(), Random(seed));
        let (rows, ever) = history(dir.path(), &mut random);
        let whole = dir.path().join("g1");
        assert!(carved(&whole) == (rows.clone(), false), "seed {seed}: what is whole comes back as it is");
        let log = fs::read(whole.join("db")).unwrap();
        let pages = pages(&whole);
        let (mut salvaged, mut strangers) = (0, 0);
        for round in 0..40 {
            let mut bytes = log.clone();
            let mut struck = Vec::new();
            for _ in 0..[1, 1, 1, 5][round % 4] {
                let at = random.below(bytes.len());
                let length = [1, 2_000, 2_000, 30_000][random.below(4)].min(bytes.len() - at);
                let new = if random.below(2) == 0 { vec![0; length] } else { random.bytes(length) };
                bytes[at..at + length].copy_from_slice(&new);
                struck.push(at as u64..(at + length) as u64);
            }
            if round % 10 == 9 {
                let at = random.below(bytes.len());
                bytes.truncate(at);
                struck.push(at as u64..log.len() as u64);
            }
            let damaged = TempDir::new().unwrap();
            conformance::copy_dir(&whole, damaged.path());
            fs::write(damaged.path().join("db"), bytes).unwrap();
            let (found, _) = carved(damaged.path());
            for key in rows.keys().chain(found.keys()).collect::<BTreeSet<_>>() {
                let (_, places) = pages.iter().find(|(range, _)| range.holds(key)).unwrap();
                let hit =
                    places.iter().any(|place| struck.iter().any(|at| at.start < place.end && place.start < at.end));
                let as_it_was = found.get(key) == rows.get(key);
                assert!(hit || as_it_was, "seed {seed}, round {round}, {struck:?}: {}", String::from_utf8_lossy(key));
                let once = |value| ever.get(key).is_some_and(|values| values.contains(value));
                strangers += usize::from(!found.get(key).is_none_or(once));
            }
            salvaged += found.len();
        }
        assert!(strangers < salvaged / 5_000, "seed {seed}: {strangers} of {salvaged} rows never were under their key");
    }

    /// A message of the first segment.
    fn message(kind: u8, page: u8, body: &[u8]) -> Vec<u8> {
        let header = [kind, body.len() as u8, 0, page];
        let crc = !crc32fast::hash(&[body, &header].concat());
        [&crc.to_le_bytes()[..], &header, body].concat()
    }

    /// A page of one row whose range has three bytes in common.
    fn state(page: u8, lo: &str, hi: &str, row: &str) -> Vec<u8> {
        let prefix = if hi.is_empty() { 0 } else { 3 };
        let text = |text: &[u8]| [&[text.len() as u8], text].concat();
        let key = text(&row.as_bytes()[usize::from(prefix)..]);
        message(
            8,
            page,
            &[vec![0, 0, 0, prefix], text(lo.as_bytes()), text(hi.as_bytes()), vec![0, 1], key, text(b"")].concat(),
        )
    }

    #[test]
    fn changes_behind_a_hole_are_those_of_a_range_that_is_known() {
        let check = |between: &[Vec<u8>], keys: &[&str]| {
            let first = state(5, "row11", "row9", "row11");
            let change = message(10, 5, &[&[0, 2], &b"13"[..], &[0]].concat());
            let dir = TempDir::new().unwrap();
            let log = [&[vec![0; 20], first][..], between, &[change]].concat().concat();
            fs::write(dir.path().join("db"), log).unwrap();
            let (found, _) = carved(dir.path());
            let found: Vec<&str> = found.keys().map(|key| std::str::from_utf8(key).unwrap()).collect();
            assert_eq!(found, keys);
        };
        let hole = vec![0xFF; 40];
        check(&[], &["row11", "row13"]);
        check(std::slice::from_ref(&hole), &["row11"]);
        let neighbour = state(6, "row9", "", "row95");
        check(&[hole.clone(), neighbour.clone()], &["row11", "row13", "row95"]);
        // Split meanwhile: what is common to the range is `row1` by now, and the change is of `row113`.
        let half = state(7, "row15", "row9", "row16");
        check(&[hole.clone(), neighbour.clone(), half], &["row11", "row16", "row95"]);
        let above = message(8, 8, &[0, 0, 0, 0, 0, 0, 1, 2, 0, 5, b'r', b'o', b'w', b'1', b'5', 5, 7]);
        check(&[hole.clone(), neighbour.clone(), above], &["row11", "row95"]);
        // Its neighbour was merged into it.
        let freed = message(4, 6, &[]);
        check(&[hole, neighbour, freed], &["row11"]);
    }

    #[test]
    fn what_was_written_last_and_cannot_be_read_is_told_of() {
        let check = |behind: &[u8], reported: bool| {
            let dir = TempDir::new().unwrap();
            let first = state(5, "row11", "", "row11");
            fs::write(dir.path().join("db"), [&[0; 20], &first[..], behind].concat()).unwrap();
            let (found, gaps) = carved(dir.path());
            assert_eq!((found.len(), gaps), (1, reported), "{behind:?}");
        };
        let change = message(10, 5, &[&[0, 2], &b"13"[..], &[0]].concat());
        let mut damaged = change.clone();
        damaged[9] ^= 1;
        check(&[], false);
        check(&[0; 100], false);
        check(&damaged, true);
        check(&change[..change.len() - 1], true);
        check(&[&[0; 100], &damaged[..]].concat(), true);
    }

    proptest! {
        #[test]
        fn any_bytes_can_be_read(bytes in prop::collection::vec(any::<u8>(), 0..2_000)) {
            let _node = Node::of(&bytes);
            let _change = Change::of(&bytes);
            let dir = TempDir::new().unwrap();
            fs::write(dir.path().join("db"), &bytes).unwrap();
            prop_assert!(carved(dir.path()).0.is_empty());
        }

        /// Messages whose checksums are right and whose bodies are anything.
        #[test]
        fn any_messages_can_be_read(
            messages in prop::collection::vec((1..12_u8, 0..4_u8, prop::collection::vec(0..9_u8, 0..40)), 0..60)
        ) {
            let log = messages.iter().map(|(kind, page, body)| message(*kind, *page, body));
            let log = [vec![0; 20]].into_iter().chain(log).collect::<Vec<_>>().concat();
            let dir = TempDir::new().unwrap();
            fs::write(dir.path().join("db"), log).unwrap();
            carved(dir.path());
        }
    }
}
