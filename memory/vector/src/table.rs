//! The vectors of one group of points, side by side in memory.

use azera_types::{MemoryId, Timestamp};

use crate::code::Code;
use crate::sketch::words;

/// Rows of a block. Blocks are what threads share a scan by; and a table that grows copies one block at most.
pub(crate) const BLOCK_ROWS: usize = 4_096;

/// What is known of one vector besides its code.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Row {
    pub(crate) id: MemoryId,
    pub(crate) at: Timestamp,
    /// Where the vector begins in the file.
    pub(crate) offset: u64,
    pub(crate) scale: f32,
    pub(crate) error: f32,
}

/// Rows in the order in which they are scanned.
#[derive(Default)]
pub(crate) struct Block {
    rows: Vec<Row>,
    /// The codes of all rows, one after the other.
    codes: Vec<i8>,
    /// The sketches of all rows, one after the other.
    sketches: Vec<u64>,
    /// No row is older, and none younger; rows that were removed may have been.
    span: Option<(Timestamp, Timestamp)>,
}

impl Block {
    pub(crate) fn iter(&self, dimension: usize) -> impl Iterator<Item = (&Row, &[i8])> {
        self.rows.iter().zip(self.codes.chunks_exact(dimension.max(1)))
    }

    /// Whether all rows are of a time between two.
    pub(crate) fn is_within(&self, since: Option<Timestamp>, until: Timestamp) -> bool {
        self.span.is_none_or(|(oldest, youngest)| youngest <= until && since.is_none_or(|since| since <= oldest))
    }

    fn widen(&mut self, at: Timestamp) {
        let (oldest, youngest) = self.span.unwrap_or((at, at));
        self.span = Some((oldest.min(at), youngest.max(at)));
    }

    pub(crate) fn rows(&self) -> &[Row] {
        &self.rows
    }

    pub(crate) fn sketches(&self) -> &[u64] {
        &self.sketches
    }
}

/// Rows in blocks. A row keeps its index until it, or the last one, is removed.
pub(crate) struct Table {
    dimension: usize,
    blocks: Vec<Block>,
    len: usize,
}

impl Table {
    pub(crate) fn new(dimension: usize) -> Self {
        Self { dimension, blocks: Vec::new(), len: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    pub(crate) fn row(&self, index: usize) -> Option<&Row> {
        self.blocks.get(index / BLOCK_ROWS)?.rows.get(index % BLOCK_ROWS)
    }

    pub(crate) fn row_mut(&mut self, index: usize) -> Option<&mut Row> {
        self.blocks.get_mut(index / BLOCK_ROWS)?.rows.get_mut(index % BLOCK_ROWS)
    }

    /// Adds a row at the end; returns its index.
    pub(crate) fn push(&mut self, id: MemoryId, at: Timestamp, offset: u64, code: &Code) -> usize {
        if self.len.is_multiple_of(BLOCK_ROWS) {
            self.blocks.push(Block::default());
        }
        if let Some(block) = self.blocks.last_mut() {
            block.widen(at);
            block.rows.push(Row { id, at, offset, scale: code.scale, error: code.error });
            block.codes.extend_from_slice(&code.numbers);
            block.sketches.extend_from_slice(&code.sketch);
        }
        self.len += 1;
        self.len - 1
    }

    /// Removes a row by putting the last one in its place; returns the id of that one, if it is another.
    pub(crate) fn remove(&mut self, index: usize) -> Option<MemoryId> {
        if index >= self.len {
            return None;
        }
        let words = words(self.dimension);
        let last = self.blocks.last_mut()?;
        let row = last.rows.pop()?;
        let code = last.codes.split_off(last.codes.len() - self.dimension);
        let sketch = last.sketches.split_off(last.sketches.len() - words);
        if last.rows.is_empty() {
            self.blocks.pop();
        }
        self.len -= 1;
        if index == self.len {
            return None;
        }
        let block = self.blocks.get_mut(index / BLOCK_ROWS)?;
        let place = index % BLOCK_ROWS;
        block.codes.get_mut(place * self.dimension..(place + 1) * self.dimension)?.copy_from_slice(&code);
        block.sketches.get_mut(place * words..(place + 1) * words)?.copy_from_slice(&sketch);
        *block.rows.get_mut(place)? = row;
        block.widen(row.at);
        Some(row.id)
    }
}
