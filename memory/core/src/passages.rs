//! Passages: the overlapping parts of a long text that the indexes hold besides the whole. A fact then counts as much
//! behind a thousand other words as in a message of its own. The record knows no passages: they follow from the text.
//!
//! An index entry is named by a [`MemoryId`], whose upper bits hold the number of the passage; 0 is the whole text.

use std::ops::Range;

use azera_types::MemoryId;
use unicode_segmentation::{GraphemeCursor, UnicodeSegmentation};

use crate::rows::MemoryRow;

/// Characters up to which a text is indexed as a whole only.
pub const LONG_TEXT_CHARS: usize = 400;

/// Longest passage in characters: about three sentences, so that its vector stands for little else than a fact in it.
const PASSAGE_CHARS: usize = 300;

/// Characters that a passage repeats of the one before it. A sentence at the border is whole in one of the two.
const OVERLAP_CHARS: usize = 100;

/// Characters from which a run without white space may be cut, where words end or else between graphemes.
const LONG_RUN_CHARS: usize = 40;

/// The lowest bit of a passage's number in the id of an index entry. Ids of memories stay far below it: they count
/// milliseconds since 1970 at most.
const PASSAGE_SHIFT: u32 = 48;

/// Most passages of one text; [`azera_types::MAX_TEXT_BYTES`] allows fewer.
const MAX_PASSAGES: usize = u16::MAX as usize;

/// A part of a text that is never cut: a word with the white space behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unit {
    /// Its bytes, without the white space behind it.
    pub(crate) bytes: Range<usize>,
    /// Characters, with the white space behind it.
    pub(crate) chars: usize,
}

/// Returns the id of an index entry: of passage `number` of a memory, or of the whole text for 0.
pub(crate) fn entry(id: MemoryId, number: u16) -> MemoryId {
    MemoryId(id.0 | u64::from(number) << PASSAGE_SHIFT)
}

/// Returns the memory of an index entry and the number of its passage.
pub(crate) fn memory_and_passage(entry: MemoryId) -> (MemoryId, u16) {
    let number = u16::try_from(entry.0 >> PASSAGE_SHIFT).unwrap_or(0);
    (MemoryId(entry.0 & ((1 << PASSAGE_SHIFT) - 1)), number)
}

/// Returns the ids of all index entries that a memory should have.
pub(crate) fn entries(memory: &MemoryRow) -> impl Iterator<Item = MemoryId> + use<> {
    let id = memory.id;
    (0..=passages(&memory.text).len()).map(move |number| entry(id, u16::try_from(number).unwrap_or(u16::MAX)))
}

/// Returns the passages of a text as ranges of bytes, in order; none for a text that is not long.
pub(crate) fn passages(text: &str) -> Vec<Range<usize>> {
    if text.len() <= LONG_TEXT_CHARS || text.chars().nth(LONG_TEXT_CHARS).is_none() {
        return Vec::new();
    }
    let units = units(text);
    let mut found = Vec::new();
    let mut first = 0;
    while first < units.len() && found.len() < MAX_PASSAGES {
        let end = take(&units, first, PASSAGE_CHARS);
        if let (Some(from), Some(to)) = (units.get(first), units.get(end - 1)) {
            found.push(from.bytes.start..to.bytes.end);
        }
        if end == units.len() {
            break;
        }
        first = overlapping(&units, first, end);
    }
    found
}

/// Returns the range of the passage with this number, if the text has it.
pub(crate) fn passage(text: &str, number: u16) -> Option<Range<usize>> {
    passages(text).into_iter().nth(usize::from(number).checked_sub(1)?)
}

/// Returns the end of the units from `first` on that have at most `chars` characters together; at least one unit.
fn take(units: &[Unit], first: usize, chars: usize) -> usize {
    let (mut end, mut taken) = (first, 0);
    while let Some(unit) = units.get(end) {
        taken += unit.chars;
        if taken > chars && end > first {
            break;
        }
        end += 1;
    }
    end
}

/// Returns where the passage after `first..end` begins.
fn overlapping(units: &[Unit], first: usize, end: usize) -> usize {
    let (mut next, mut repeated) = (end, 0);
    while next > first + 1 && repeated < OVERLAP_CHARS {
        next -= 1;
        repeated += units.get(next).map_or(0, |unit| unit.chars);
    }
    next
}

/// Splits a text into the parts that are not cut.
pub(crate) fn units(text: &str) -> Vec<Unit> {
    let mut units: Vec<Unit> = Vec::new();
    // The words and signs since the last white space.
    let mut run: Vec<Range<usize>> = Vec::new();
    for segment in segments(text) {
        let part = text.get(segment.clone()).unwrap_or_default();
        if part.trim().is_empty() {
            close_run(text, &mut run, &mut units);
            if let Some(last) = units.last_mut() {
                last.chars += part.chars().count();
            }
        } else {
            run.push(segment);
        }
    }
    close_run(text, &mut run, &mut units);
    units
}

/// Returns words, signs and white space in order. None begins inside a grapheme.
fn segments(text: &str) -> Vec<Range<usize>> {
    let mut segments: Vec<Range<usize>> = Vec::new();
    for (from, part) in text.split_word_bound_indices() {
        let to = from + part.len();
        let whole = GraphemeCursor::new(from, text.len(), true).is_boundary(text, 0).unwrap_or(true);
        match segments.last_mut() {
            Some(last) if !whole => last.end = to,
            _ if part.chars().nth(LONG_RUN_CHARS).is_none() => segments.push(from..to),
            _ => segments.extend(part.grapheme_indices(true).map(|(at, it)| from + at..from + at + it.len())),
        }
    }
    segments
}

/// Makes a run without white space one unit, or one of each part if it is long, such as a web address or a text of a
/// language that sets no blanks.
fn close_run(text: &str, run: &mut Vec<Range<usize>>, units: &mut Vec<Unit>) {
    let chars = |bytes: &Range<usize>| text.get(bytes.clone()).map_or(0, |part| part.chars().count());
    let all: usize = run.iter().map(chars).sum();
    match (run.first(), run.last()) {
        (Some(first), Some(last)) if all <= LONG_RUN_CHARS => {
            units.push(Unit { bytes: first.start..last.end, chars: all });
        }
        _ => units.extend(run.iter().map(|bytes| Unit { chars: chars(bytes), bytes: bytes.clone() })),
    }
    run.clear();
}

#[cfg(test)]
mod tests {
    use azera_types::MAX_TEXT_BYTES;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn entries_name_their_memory_and_passage() {
        for (id, number) in [(1, 0), (1_764_000_000_000, 7), (42, u16::MAX)] {
            assert_eq!(memory_and_passage(entry(MemoryId(id), number)), (MemoryId(id), number));
        }
    }

    #[test]
    fn a_text_that_is_not_long_has_no_passages() {
        assert!(passages(&"é".repeat(LONG_TEXT_CHARS)).is_empty());
        assert!(!passages(&"é".repeat(LONG_TEXT_CHARS + 1)).is_empty());
    }

    #[test]
    fn passages_overlap_and_cut_no_word() {
        let text = "the ferry to the north island leaves at seven. ".repeat(30);
        let found = passages(&text);
        assert!(found.len() > 4, "{found:?}");
        for pair in found.windows(2) {
            assert!(pair[1].start + OVERLAP_CHARS / 2 < pair[0].end, "{found:?}");
        }
        for range in found {
            let part = text.get(range).unwrap();
            assert!(part.chars().count() <= PASSAGE_CHARS);
            assert!(part.split_whitespace().all(|word| text.split_whitespace().any(|whole| whole == word)), "{part}");
        }
    }

    #[test]
    fn the_longest_text_has_a_number_for_each_passage() {
        assert!(passages(&"a ".repeat(MAX_TEXT_BYTES / 2)).len() < MAX_PASSAGES / 10);
        assert!(passages(&"a".repeat(MAX_TEXT_BYTES)).len() < MAX_PASSAGES / 10);
    }

    proptest! {
        #[test]
        fn every_visible_character_is_in_a_passage(text in "(\\PC| |\\n|e\u{301}|👩‍👩‍👧){380,900}") {
            let found = passages(&text);
            let graphemes: Vec<usize> = text.grapheme_indices(true).map(|(at, _)| at).chain([text.len()]).collect();
            for range in &found {
                prop_assert!(graphemes.binary_search(&range.start).is_ok(), "{range:?}");
            }
            if !found.is_empty() {
                for (at, c) in text.char_indices().filter(|(_, c)| !c.is_whitespace()) {
                    prop_assert!(found.iter().any(|range| range.contains(&at)), "{c:?} at {at}");
                }
            }
        }
    }
}
