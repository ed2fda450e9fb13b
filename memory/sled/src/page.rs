//! Parses pages of a sled 0.34 tree, and changes of them, as they are in its log.
//!
//! ```text
//! page    next page · page being merged into one below it (0: none) · whether it is being merged itself (1 byte) ·
//!         length of the prefix (1) · first key · key behind the last (empty: no end) · 0 rows or 1 pages below (1) ·
//!         how many · keys without their prefix · values or pages
//! change  0 put · key · value      1 remove · key      2 merge · page      3 merged      4 is being merged
//! ```
//!
//! Numbers are varints; keys and values come after their length. The prefix is the beginning of the first key. Each
//! parser accepts any bytes, and returns `None` for bytes that sled never writes.

/// A reader that takes bytes from the front.
pub(crate) struct Bytes<'a>(pub(crate) &'a [u8]);

impl<'a> Bytes<'a> {
    pub(crate) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    pub(crate) fn array<const COUNT: usize>(&mut self) -> Option<&'a [u8; COUNT]> {
        self.take(COUNT)?.try_into().ok()
    }

    pub(crate) fn byte(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| *byte)
    }

    /// Reads a varint: the first byte is a small number itself, or tells how the following bytes encode a larger one.
    pub(crate) fn number(&mut self) -> Option<u64> {
        let first = self.byte()?;
        Some(match first {
            0..=240 => u64::from(first),
            241..=248 => 240 + 256 * u64::from(first - 241) + u64::from(self.byte()?),
            249 => 2_288 + u64::from(u16::from_be_bytes(*self.array()?)),
            250..=255 => {
                let mut little_endian = [0; 8];
                let count = usize::from(first - 247);
                little_endian.get_mut(..count)?.copy_from_slice(self.take(count)?);
                u64::from_le_bytes(little_endian)
            }
        })
    }

    fn string(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        self.take(length)
    }
}

/// A whole page.
pub(crate) struct Node<'a> {
    /// The first key that it may contain.
    pub(crate) lo: &'a [u8],
    /// The key after all that it may contain; empty if there is no end.
    pub(crate) hi: &'a [u8],
    /// The prefix of all its keys, which are stored without it.
    pub(crate) prefix: &'a [u8],
    /// The child page that is being merged into its neighbour.
    pub(crate) merging: u64,
    pub(crate) content: Content<'a>,
}

pub(crate) enum Content<'a> {
    Rows(Vec<(&'a [u8], &'a [u8])>),
    /// Child pages by their first key.
    Pages(Vec<(&'a [u8], u64)>),
}

impl<'a> Node<'a> {
    pub(crate) fn of(bytes: &'a [u8]) -> Option<Self> {
        let mut bytes = Bytes(bytes);
        let (_next, merging, _is_merged) = (bytes.number()?, bytes.number()?, bytes.byte()?);
        let (prefix, lo, hi) = (usize::from(bytes.byte()?), bytes.string()?, bytes.string()?);
        let (kind, count) = (bytes.byte()?, bytes.number()?);
        let keys = (0..count).map(|_| bytes.string()).collect::<Option<Vec<_>>>()?.into_iter();
        let content = match kind {
            0 => Content::Rows(keys.map(|key| Some((key, bytes.string()?))).collect::<Option<_>>()?),
            1 => Content::Pages(keys.map(|key| Some((key, bytes.number()?))).collect::<Option<_>>()?),
            _ => return None,
        };
        let is_range = hi.is_empty() || lo < hi;
        is_range.then_some(Self { lo, hi, prefix: lo.get(..prefix)?, merging, content })
    }

    /// Returns a key of the page with its prefix.
    pub(crate) fn key(&self, rest: &[u8]) -> Vec<u8> {
        [self.prefix, rest].concat()
    }
}

/// A change of a page.
pub(crate) enum Change<'a> {
    Put(&'a [u8], &'a [u8]),
    Remove(&'a [u8]),
    /// A child page begins to be merged into its neighbour.
    Merge(u64),
    /// That merge is complete.
    Merged,
    /// The page itself is being merged into its neighbour, which changes no row.
    IsMerged,
}

impl<'a> Change<'a> {
    pub(crate) fn of(bytes: &'a [u8]) -> Option<Self> {
        let mut bytes = Bytes(bytes);
        Some(match bytes.byte()? {
            0 => Self::Put(bytes.string()?, bytes.string()?),
            1 => Self::Remove(bytes.string()?),
            2 => Self::Merge(bytes.number()?),
            3 => Self::Merged,
            4 => Self::IsMerged,
            _ => return None,
        })
    }
}
