//! Decides which page a key belongs to when the ranges of several pages contain it.

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Unbounded};

/// A range of keys from `lo` to before `hi`; an empty `hi` means no end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeyRange {
    pub(crate) lo: Vec<u8>,
    pub(crate) hi: Vec<u8>,
}

impl KeyRange {
    pub(crate) fn holds(&self, key: &[u8]) -> bool {
        self.lo.as_slice() <= key && (self.hi.is_empty() || key < self.hi.as_slice())
    }
}

/// Key ranges that pages have claimed, by first key. None overlap.
#[derive(Default)]
pub(crate) struct KeyRanges(BTreeMap<Vec<u8>, Vec<u8>>);

impl KeyRanges {
    /// Claims the unclaimed parts of a range, and returns them.
    pub(crate) fn claim(&mut self, range: &KeyRange) -> Vec<KeyRange> {
        let behind = |end: &Vec<u8>| Some(end.clone()).filter(|end| !end.is_empty());
        let before = self.0.range::<Vec<u8>, _>(..=&range.lo).next_back();
        let mut own = Vec::new();
        let mut from = match before {
            Some((_, end)) if end.is_empty() || *end > range.lo => behind(end),
            _ => Some(range.lo.clone()),
        };
        for (start, end) in self.0.range::<Vec<u8>, _>((Excluded(&range.lo), Unbounded)) {
            let Some(lo) = from.clone().filter(|_| range.holds(start)) else { break };
            if lo < *start {
                own.push(KeyRange { lo, hi: start.clone() });
            }
            from = behind(end);
        }
        if let Some(lo) = from.filter(|lo| range.holds(lo)) {
            own.push(KeyRange { lo, hi: range.hi.clone() });
        }
        self.0.extend(own.iter().map(|range| (range.lo.clone(), range.hi.clone())));
        own
    }
}

#[cfg(test)]
mod tests {
    use super::{KeyRange, KeyRanges};

    #[test]
    fn claimed_ranges_do_not_overlap() {
        let range = |(lo, hi): (&str, &str)| KeyRange { lo: lo.into(), hi: hi.into() };
        let mut claims = KeyRanges::default();
        let mut check = |wanted, given: &[(&str, &str)]| {
            let given: Vec<KeyRange> = given.iter().copied().map(range).collect();
            assert_eq!(claims.claim(&range(wanted)), given, "{wanted:?}");
        };
        check(("d", "f"), &[("d", "f")]);
        check(("d", "e"), &[]);
        check(("b", "c"), &[("b", "c")]);
        check(("a", "e"), &[("a", "b"), ("c", "d")]);
        check(("e", "h"), &[("f", "h")]);
        check(("k", ""), &[("k", "")]);
        check(("", ""), &[("", "a"), ("h", "k")]);
        check(("", ""), &[]);
        check(("x", "y"), &[]);
    }
}
