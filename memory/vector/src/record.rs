//! The records of the file: how each is written, and read back without trust.
//!
//! A record is a frame of 8 bytes, the length of its body and a CRC-32, and the body. All numbers are little-endian. The
//! checksum covers the record's place in the file too, so that a record is valid in that place alone.

use azera_memory::Error;
use azera_types::{MemoryId, PersonaId, Scope, Timestamp};

/// Bytes before each body.
pub(crate) const FRAME_BYTES: usize = 8;

/// Ids in one record of removals.
pub(crate) const MAX_REMOVED_IDS: usize = 4_096;

/// Longest key: two ids of at most 255 bytes, the kind of the scope, and the separator.
const MAX_KEY_BYTES: usize = 600;

/// Bytes of a point's body besides its key and its vectors.
const POINT_BYTES: usize = 1 + 1 + 2 + 8 + 8 + 4;

const POINT: u8 = 1;
const REMOVED: u8 = 2;
const FLUSHED: u8 = 3;

/// What a record of a flush consists of, apart from its kind: bytes that are looked for where a file is damaged.
pub(crate) const FLUSH_MARK: [u8; 16] = *b"\xf1azera vec flush";

/// Stands between persona and scope; ids hold no control characters.
const SEPARATOR: char = '\u{1f}';

/// Persona and scope as one string: points of one key are searched together.
pub(crate) fn key(persona: &PersonaId, scope: &Scope) -> String {
    format!("{persona}{SEPARATOR}{scope}")
}

/// Returns the persona and scope of a key.
pub(crate) fn persona_and_scope(key: &str) -> Option<(PersonaId, Scope)> {
    let (persona, scope) = key.split_once(SEPARATOR)?;
    Some((PersonaId::new(persona).ok()?, scope.parse().ok()?))
}

/// The body of a record.
#[derive(Debug, PartialEq)]
pub(crate) enum Record<'a> {
    Point(PointRecord<'a>),
    Removed(Vec<MemoryId>),
    /// Everything before it was flushed.
    Flushed,
}

/// A point as it lies in the file.
#[derive(Debug, PartialEq)]
pub(crate) struct PointRecord<'a> {
    pub(crate) id: MemoryId,
    pub(crate) at: Timestamp,
    pub(crate) key: &'a str,
    pub(crate) own: Vec<f32>,
    pub(crate) window: Option<Vec<f32>>,
    /// Where the own vector begins in the file; the window's follows it.
    pub(crate) offset: u64,
}

/// Bytes of the longest record of an index.
pub(crate) fn longest(dimension: usize) -> usize {
    let point = POINT_BYTES + MAX_KEY_BYTES + 2 * vector_bytes(dimension);
    FRAME_BYTES + point.max(1 + 8 * MAX_REMOVED_IDS)
}

/// Bytes of the record of a point.
pub(crate) fn point_bytes(key: &str, dimension: usize, windowed: bool) -> u64 {
    (FRAME_BYTES + POINT_BYTES + key.len() + vector_bytes(dimension) * if windowed { 2 } else { 1 }) as u64
}

pub(crate) fn vector_bytes(dimension: usize) -> usize {
    dimension * size_of::<f32>()
}

/// Records to be written to a file from `base` on.
pub(crate) struct Records {
    base: u64,
    bytes: Vec<u8>,
}

impl Records {
    pub(crate) fn at(base: u64) -> Self {
        Self { base, bytes: Vec::new() }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Adds a point; returns where its own vector begins in the file.
    pub(crate) fn point(
        &mut self,
        (id, at): (MemoryId, Timestamp),
        key: &str,
        own: &[f32],
        window: Option<&[f32]>,
    ) -> Result<u64, Error> {
        let length = u16::try_from(key.len()).ok().filter(|length| usize::from(*length) <= MAX_KEY_BYTES);
        let length = length.ok_or_else(|| Error::Invalid("the ids of a persona and a scope are too long".into()))?;
        let start = self.begin(POINT);
        self.bytes.push(u8::from(window.is_some()));
        self.bytes.extend(length.to_le_bytes());
        self.bytes.extend(id.0.to_le_bytes());
        self.bytes.extend(at.as_second().to_le_bytes());
        self.bytes.extend(at.subsec_nanosecond().to_le_bytes());
        self.bytes.extend(key.as_bytes());
        let offset = self.base + self.bytes.len() as u64;
        for vector in [Some(own), window].into_iter().flatten() {
            self.bytes.extend(vector.iter().flat_map(|number| number.to_le_bytes()));
        }
        self.seal(start);
        Ok(offset)
    }

    pub(crate) fn removed(&mut self, ids: &[MemoryId]) {
        for ids in ids.chunks(MAX_REMOVED_IDS) {
            let start = self.begin(REMOVED);
            self.bytes.extend(ids.iter().flat_map(|id| id.0.to_le_bytes()));
            self.seal(start);
        }
    }

    pub(crate) fn flushed(&mut self) {
        let start = self.begin(FLUSHED);
        self.bytes.extend(FLUSH_MARK);
        self.seal(start);
    }

    fn begin(&mut self, kind: u8) -> usize {
        let start = self.bytes.len();
        self.bytes.extend([0; FRAME_BYTES]);
        self.bytes.push(kind);
        start
    }

    fn seal(&mut self, start: usize) {
        let offset = self.base + start as u64;
        let Some((frame, body)) = self.bytes.get_mut(start..).and_then(|bytes| bytes.split_at_mut_checked(FRAME_BYTES))
        else {
            return;
        };
        let (length, checksum) = frame.split_at_mut(4);
        length.copy_from_slice(&u32::try_from(body.len()).unwrap_or(u32::MAX).to_le_bytes());
        checksum.copy_from_slice(&checksum_of(offset, body).to_le_bytes());
    }
}

fn checksum_of(offset: u64, body: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&offset.to_le_bytes());
    hasher.update(&u64::try_from(body.len()).unwrap_or(u64::MAX).to_le_bytes());
    hasher.update(body);
    hasher.finalize()
}

/// Returns the bytes of the record, frame included, that `bytes` begin with, if they hold all of it.
pub(crate) fn first_record(bytes: &[u8], longest: usize) -> Option<&[u8]> {
    let length = u32::from_le_bytes(*bytes.first_chunk()?);
    let whole = usize::try_from(length).ok()?.checked_add(FRAME_BYTES).filter(|whole| *whole <= longest)?;
    bytes.get(..whole)
}

/// Reads the record that lies at `offset`; `None` if its checksum or its form is wrong.
pub(crate) fn read(record: &[u8], offset: u64, dimension: usize) -> Option<Record<'_>> {
    let (frame, body) = record.split_at_checked(FRAME_BYTES)?;
    let checksum = u32::from_le_bytes(*frame.last_chunk()?);
    if checksum != checksum_of(offset, body) {
        return None;
    }
    let mut rest = Rest(body);
    match rest.number().map(u8::from_le_bytes)? {
        POINT => point(rest, offset + record.len() as u64, dimension),
        REMOVED => {
            let (ids, left) = rest.0.as_chunks();
            let ids = ids.iter().map(|id| MemoryId(u64::from_le_bytes(*id))).collect();
            left.is_empty().then_some(Record::Removed(ids))
        }
        FLUSHED => (rest.0 == FLUSH_MARK).then_some(Record::Flushed),
        _ => None,
    }
}

fn point(mut rest: Rest<'_>, end: u64, dimension: usize) -> Option<Record<'_>> {
    let windowed = rest.number().map(u8::from_le_bytes)? == 1;
    let key_bytes = u16::from_le_bytes(rest.number()?);
    let id = MemoryId(u64::from_le_bytes(rest.number()?));
    let (second, nanosecond) = (i64::from_le_bytes(rest.number()?), i32::from_le_bytes(rest.number()?));
    let at = Timestamp::new(second, nanosecond).ok()?;
    let key = std::str::from_utf8(rest.take(usize::from(key_bytes))?).ok()?;
    let offset = end - rest.0.len() as u64;
    let own = floats(rest.take(vector_bytes(dimension))?);
    let window = if windowed { Some(floats(rest.take(vector_bytes(dimension))?)) } else { None };
    rest.0.is_empty().then_some(Record::Point(PointRecord { id, at, key, own, window, offset }))
}

/// Returns the numbers of a vector as it lies in the file.
pub(crate) fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks().0.iter().map(|number| f32::from_le_bytes(*number)).collect()
}

/// The part of a body that was not read yet.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(taken)
    }

    fn number<const BYTES: usize>(&mut self) -> Option<[u8; BYTES]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_read_back_in_their_place_alone() {
        let (own, window) = ([0.25, -1.0, 3.5], [1.0, 2.0, 3.0]);
        let at = Timestamp::new(-5, -123_456_789).unwrap();
        let mut records = Records::at(1_000);
        let offset = records.point((MemoryId(u64::MAX), at), "a\u{1f}global", &own, Some(&window)).unwrap();
        records.removed(&[MemoryId(1), MemoryId(2)]);
        records.flushed();
        let mut bytes = records.bytes();
        let mut found = Vec::new();
        let mut base = 1_000;
        while let Some(record) = first_record(bytes, longest(3)) {
            assert_eq!(read(record, base + 1, 3), None, "the place counts");
            found.push(read(record, base, 3).unwrap());
            base += record.len() as u64;
            bytes = &bytes[record.len()..];
        }
        let point = PointRecord {
            id: MemoryId(u64::MAX),
            at,
            key: "a\u{1f}global",
            own: own.to_vec(),
            window: Some(window.to_vec()),
            offset,
        };
        assert_eq!(found, [Record::Point(point), Record::Removed(vec![MemoryId(1), MemoryId(2)]), Record::Flushed]);
        let begin = usize::try_from(offset - 1_000).unwrap();
        assert_eq!(floats(&records.bytes()[begin..begin + 12]), own);
    }

    #[test]
    fn no_changed_byte_goes_unnoticed() {
        let mut records = Records::at(32);
        records.point((MemoryId(7), Timestamp::UNIX_EPOCH), "a\u{1f}global", &[0.5, 0.5], None).unwrap();
        for byte in 0..records.bytes().len() {
            for bit in 0..8 {
                let mut bytes = records.bytes().to_vec();
                bytes[byte] ^= 1 << bit;
                let found = first_record(&bytes, longest(2)).and_then(|record| read(record, 32, 2));
                assert_eq!(found, None, "byte {byte}, bit {bit}");
            }
        }
    }
}
