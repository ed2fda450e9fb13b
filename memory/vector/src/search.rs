//! The search. A scan of the codes bounds every product from above and below, and only vectors that can be among the
//! nearest are read from the file: so what is found is exact. Where very many rows are visible, the sketches choose a
//! share of them first, and what is found is nearly exact.

use std::fs::File;

use azera_memory::{Error, Facet, Found, ReadScope};
use azera_types::{MemoryId, Timestamp};
use rayon::prelude::*;

use crate::code::{QueryCode, dot};
use crate::load::vector_at;
use crate::points::Points;
use crate::record::{key, vector_bytes};
use crate::sketch::{HIDDEN, distances, radius, sketch};
use crate::table::{BLOCK_ROWS, Block, Row};

/// Rows from which on a scan is shared by threads.
const SHARED_ROWS: usize = 4 * BLOCK_ROWS;

/// Rows up to which the codes of all are scanned.
const EXACT_ROWS: usize = 131_072;

/// Of so many rows, the sketches choose one.
const SHORTLIST_SHARE: usize = 64;

/// Candidates kept between two prunings, beside those asked for.
const PRUNE_AT: usize = 1_024;

/// One search. Vector and limit were checked.
pub(crate) struct Search<'a> {
    pub(crate) read_scope: &'a ReadScope,
    pub(crate) facet: Facet,
    /// Of length 1.
    pub(crate) vector: &'a [f32],
    pub(crate) until: Timestamp,
    /// At least 1.
    pub(crate) limit: usize,
}

/// The rows of one block that a grant leaves visible.
struct Visible<'a> {
    block: &'a Block,
    since: Option<Timestamp>,
}

/// A row that may be among the nearest.
#[derive(Clone, Copy)]
struct Candidate {
    id: MemoryId,
    offset: u64,
    estimate: f32,
    margin: f32,
}

impl Search<'_> {
    /// The nearest points, nearest first; of equally near ones the oldest memory first.
    pub(crate) fn run(&self, points: &Points, file: &File) -> Result<Vec<Found>, Error> {
        let query = QueryCode::of(self.vector);
        let (mut blocks, mut rows) = (Vec::new(), 0);
        for grant in self.read_scope.grants() {
            let Some(group) = points.group(&key(self.read_scope.persona(), &grant.scope)) else { continue };
            let table = group.table(self.facet);
            rows += table.len();
            blocks.extend(table.blocks().iter().map(|block| Visible { block, since: grant.since }));
        }
        let none = || Candidates::new(self.limit);
        let candidates = if rows <= SHARED_ROWS {
            blocks.iter().fold(none(), |candidates, block| self.scan(&query, block, candidates))
        } else if rows <= EXACT_ROWS {
            let scanned = blocks.par_iter().fold(none, |candidates, block| self.scan(&query, block, candidates));
            scanned.reduce(none, Candidates::join)
        } else {
            let distances: Vec<Vec<u16>> = self.distances(&blocks);
            let wanted = (rows / SHORTLIST_SHARE).max(self.limit);
            let radius = radius(&distances, wanted, self.vector.len());
            let pairs = blocks.par_iter().zip(&distances);
            let scanned = pairs.fold(none, |found, (block, near)| self.scan_near(&query, block, near, radius, found));
            scanned.reduce(none, Candidates::join)
        };
        self.nearest(candidates, file)
    }

    /// Offers all rows that may be seen.
    fn scan(&self, query: &QueryCode, visible: &Visible<'_>, mut candidates: Candidates) -> Candidates {
        for (row, code) in visible.block.iter(self.vector.len()) {
            if self.sees(visible, row) {
                candidates.offer(candidate(query, row, code));
            }
        }
        candidates
    }

    /// Offers the rows within a radius.
    fn scan_near(
        &self,
        query: &QueryCode,
        visible: &Visible<'_>,
        distances: &[u16],
        radius: u16,
        mut candidates: Candidates,
    ) -> Candidates {
        for ((row, code), distance) in visible.block.iter(self.vector.len()).zip(distances) {
            if *distance <= radius {
                candidates.offer(candidate(query, row, code));
            }
        }
        candidates
    }

    /// The distances of all rows by their sketches.
    fn distances(&self, blocks: &[Visible<'_>]) -> Vec<Vec<u16>> {
        let query = sketch(self.vector);
        let of_block = |visible: &Visible<'_>| {
            let mut found = distances(visible.block.sketches(), &query);
            if !visible.block.is_within(visible.since, self.until) {
                for (row, distance) in visible.block.rows().iter().zip(&mut found) {
                    if !self.sees(visible, row) {
                        *distance = HIDDEN;
                    }
                }
            }
            found
        };
        blocks.par_iter().map(of_block).collect()
    }

    fn sees(&self, visible: &Visible<'_>, row: &Row) -> bool {
        row.at <= self.until && visible.since.is_none_or(|since| row.at >= since)
    }

    /// Compares candidates by their full vectors.
    fn nearest(&self, candidates: Candidates, file: &File) -> Result<Vec<Found>, Error> {
        let mut candidates = candidates.pruned();
        candidates.sort_unstable_by(|one, two| two.estimate.total_cmp(&one.estimate));
        let mut buffer = vec![0; vector_bytes(self.vector.len())];
        let mut exact = |candidate: &Candidate| {
            let vector = vector_at(file, candidate.offset, &mut buffer)?;
            Ok(Found { id: candidate.id, score: dot(self.vector, &vector) })
        };
        let (best, others) = candidates.split_at(self.limit.min(candidates.len()));
        let mut found = best.iter().map(&mut exact).collect::<Result<Vec<_>, Error>>()?;
        let worst = found.iter().map(|found| found.score).fold(f32::INFINITY, f32::min);
        for candidate in others.iter().filter(|candidate| candidate.estimate + candidate.margin >= worst) {
            found.push(exact(candidate)?);
        }
        found.sort_unstable_by(|one, two| two.score.total_cmp(&one.score).then(one.id.cmp(&two.id)));
        found.truncate(self.limit);
        Ok(found)
    }
}

#[inline]
fn candidate(query: &QueryCode, row: &Row, code: &[i8]) -> Candidate {
    let estimate = query.estimate(code, row.scale);
    Candidate { id: row.id, offset: row.offset, estimate, margin: query.margin(row.error) }
}

/// The rows seen so far that may be among the nearest.
struct Candidates {
    limit: usize,
    /// As many rows as asked for have at least this product.
    floor: f32,
    prune_at: usize,
    rows: Vec<Candidate>,
}

impl Candidates {
    fn new(limit: usize) -> Self {
        Self { limit, floor: f32::NEG_INFINITY, prune_at: limit + PRUNE_AT, rows: Vec::new() }
    }

    #[inline]
    fn offer(&mut self, candidate: Candidate) {
        if candidate.estimate + candidate.margin < self.floor {
            return;
        }
        self.rows.push(candidate);
        if self.rows.len() >= self.prune_at {
            self.prune();
        }
    }

    /// Drops rows that cannot be among the nearest.
    fn prune(&mut self) {
        if self.limit == 0 || self.rows.len() <= self.limit {
            return;
        }
        let least = |candidate: &Candidate| candidate.estimate - candidate.margin;
        let by_least = |one: &Candidate, two: &Candidate| least(two).total_cmp(&least(one));
        let (_, worst, _) = self.rows.select_nth_unstable_by(self.limit - 1, by_least);
        self.floor = self.floor.max(least(worst));
        let floor = self.floor;
        self.rows.retain(|candidate| candidate.estimate + candidate.margin >= floor);
        // Where many rows are equally near, pruning often drops nothing.
        self.prune_at = (self.limit + PRUNE_AT).max(2 * self.rows.len());
    }

    fn join(mut self, other: Self) -> Self {
        self.floor = self.floor.max(other.floor);
        other.rows.into_iter().for_each(|candidate| self.offer(candidate));
        self
    }

    fn pruned(mut self) -> Vec<Candidate> {
        self.prune();
        self.rows
    }
}
