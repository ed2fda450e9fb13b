//! Recovers rows from the remains of a sled database, page by page, without sled.
//!
//! Each page consists of its newest whole state and the changes after it. If a change lies behind a hole in the log,
//! the hole may have held a newer state with another key range. Keys are stored without the common prefix of the page's
//! range, so the change could then be read wrongly. It is used only if nothing shows another range: the next page
//! begins where this one ends, and nothing newer begins inside. So a hole costs rows of the pages written in it, and of
//! no others. If such a page has an older state, that one is used: an outdated or removed row is better than none. If a
//! hole took all traces of a split or merge, a row may appear under a wrong key.
//!
//! Key ranges may overlap because an older state is used, or because the record that a page was freed is lost. Then the
//! page that was written last as a whole decides. So removed rows do not return where the page they were removed from
//! is whole.

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Unbounded};
use std::path::Path;

use azera_memory::Error;

use crate::key_ranges::{KeyRange, KeyRanges};
use crate::log::{Kind, Log, Message, Place, Runs};
use crate::page::{Change, Content, Node};

pub(crate) type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

/// What the log contains about one page.
#[derive(Default)]
struct Page {
    /// Log position and location of its newest whole state; no location if the page was freed.
    state: Option<(u64, Option<Place>)>,
    /// Later changes.
    changes: Vec<(u64, Place)>,
    /// Log position of a state that is lost.
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

/// A page with rows.
struct Leaf {
    page: u64,
    /// Log position of its last whole state.
    lsn: u64,
    place: Place,
    range: KeyRange,
}

/// A database that is being read. Only locations and key ranges of its pages are in RAM, less than a kilobyte each.
pub(crate) struct Carving {
    log: Log,
    pages: BTreeMap<u64, Page>,
    runs: Runs,
    /// Pages with rows, newest first.
    leaves: Vec<Leaf>,
    /// First keys of pages, with the log position of the newest page that begins there.
    begins: BTreeMap<Vec<u8>, u64>,
    /// Places that could not be read.
    pub(crate) gaps: usize,
}

impl Carving {
    /// Reads the log in `dir`.
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

    /// Finds the pages with rows, as opposed to index pages, and where each page begins.
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

    /// Passes every readable row to `take` once, page by page, in no order.
    pub(crate) fn rows(&mut self, take: &mut dyn FnMut(Rows) -> Result<(), Error>) -> Result<(), Error> {
        let mut key_ranges = KeyRanges::default();
        for leaf in std::mem::take(&mut self.leaves) {
            let own = key_ranges.claim(&leaf.range);
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
        // Rows outside the range were not written for this state of the page.
        rows.retain(|key, _| leaf.range.holds(key));
        Ok(rows)
    }

    /// Returns true if nothing shows that the page's range changed since its last whole state.
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

    /// Returns the recovered rows, and whether something is missing.
    fn carved(dir: &Path) -> (Rows, bool) {
        let mut rows = Rows::new();
        let mut take = |page: Rows| {
            let before = rows.len() + page.len();
            rows.extend(page);
            assert_eq!(rows.len(), before, "a row was returned twice");
            Ok(())
        };
        let mut carving = Carving::of(dir).unwrap();
        carving.rows(&mut take).unwrap();
        // The number of the last batch is not a row.
        rows.remove(&[u8::MAX][..]);
        (rows, carving.gaps > 0)
    }

    /// Writes some sessions; returns the final rows, and every value that each row ever had.
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
                    // Full pages shrink so much that sled merges them.
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

    /// Random numbers by xorshift.
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

    /// Returns the key ranges of an intact database, and where each range's page lies in the log.
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

    /// Damage costs rows of the damaged pages only, and hardly ever yields rows that never existed.
    #[test]
    fn damage_costs_rows_of_the_damaged_pages_only() {
        let seed = 5;
        let (dir, mut random) = (TempDir::new().unwrap(), Random(seed));
        let (rows, ever) = history(dir.path(), &mut random);
        let whole = dir.path().join("g1");
        assert!(carved(&whole) == (rows.clone(), false), "seed {seed}: the undamaged log is recovered completely");
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
        assert!(strangers < salvaged / 5_000, "seed {seed}: {strangers} of {salvaged} rows never had their value");
    }

    /// Returns a message of the first segment.
    fn message(kind: u8, page: u8, body: &[u8]) -> Vec<u8> {
        let header = [kind, body.len() as u8, 0, page];
        let crc = !crc32fast::hash(&[body, &header].concat());
        [&crc.to_le_bytes()[..], &header, body].concat()
    }

    /// Returns a page with one row whose range has a prefix of three bytes.
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
    fn changes_behind_a_hole_are_used_only_if_their_range_is_known() {
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
        // After a split the prefix of the range is `row1`, and the change means `row113`.
        let half = state(7, "row15", "row9", "row16");
        check(&[hole.clone(), neighbour.clone(), half], &["row11", "row16", "row95"]);
        let above = message(8, 8, &[0, 0, 0, 0, 0, 0, 1, 2, 0, 5, b'r', b'o', b'w', b'1', b'5', 5, 7]);
        check(&[hole.clone(), neighbour.clone(), above], &["row11", "row95"]);
        // The next page was merged into it.
        let freed = message(4, 6, &[]);
        check(&[hole, neighbour, freed], &["row11"]);
    }

    #[test]
    fn an_unreadable_end_of_the_log_is_reported() {
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

        /// Messages with correct checksums and random bodies.
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
