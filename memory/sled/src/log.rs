//! Reads the log of sled 0.34 without sled.
//!
//! The file `db` consists of segments of [`SEGMENT_BYTES`]. Each has a header, and messages one after the other.
//! Segments are reused, so their order in the file means nothing. The position of a message in the order of all writes
//! is its LSN: the number of its segment times the segment size, plus its offset in the segment.
//!
//! ```text
//! message  CRC-32 of what follows, body first, inverted (4 bytes, little-endian) · kind (1) · length of the body ·
//!          number of the segment · page · body                                 three varints (`Bytes::number`)
//! blob     CRC-32 of what follows (4) · kind (1) · body; a file `blobs/<LSN>`, named in a message of 8 bytes
//! ```
//!
//! So each message can be recognised by itself, anywhere in the file. Segment headers and snapshots of the page table
//! are not needed. Azera does not use sled's compression.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};

use azera_memory::Error;

use crate::page::Bytes;

/// Bytes of a segment: sled's default, which Azera does not change.
const SEGMENT_BYTES: u64 = 512 * 1024;

/// Bytes of a segment's header.
const SEGMENT_HEADER: u64 = 20;

/// No message begins with fewer bytes than this left in its segment.
const LEAST_LEFT: u64 = 32;

/// Bytes of a checksum.
const CRC_BYTES: usize = 4;

/// A message with a correct checksum.
pub(crate) struct Message {
    pub(crate) page: u64,
    /// Its position in the order of all writes.
    pub(crate) lsn: u64,
    pub(crate) kind: Kind,
    /// Its bytes in the file, with the header.
    pub(crate) bytes: Range<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A whole page.
    State(Place),
    /// A whole page whose file is missing or damaged.
    Lost,
    /// A change of a page.
    Change(Place),
    /// The page was freed.
    Freed,
    /// End of the segment.
    End,
    /// Nothing about rows.
    Other,
}

/// Location of a page, or of a change of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Log { offset: u64, length: usize },
    Blob(u64),
}

/// The files of a database that contain rows.
pub(crate) struct Log {
    file: File,
    blobs: PathBuf,
}

impl Log {
    pub(crate) fn open(dir: &Path) -> Result<Self, Error> {
        let file = File::open(dir.join("db")).map_err(Error::io("opening the log of a damaged store"))?;
        Ok(Self { file, blobs: dir.join("blobs") })
    }

    /// Passes every intact message to `take`, in no order.
    pub(crate) fn scan(&mut self, take: &mut dyn FnMut(&Message)) -> Result<Runs, Error> {
        let what = "reading the log of a damaged store";
        let mut runs = Runs::default();
        let (mut segment, mut start) = (Vec::new(), 0);
        let mut last = Tail::default();
        self.file.rewind().map_err(Error::io(what))?;
        loop {
            segment.clear();
            if self.file.by_ref().take(SEGMENT_BYTES).read_to_end(&mut segment).map_err(Error::io(what))? == 0 {
                runs.holes += usize::from(last.torn);
                return Ok(runs.joined());
            }
            let (mut at, mut newest) = (SEGMENT_HEADER, None);
            let (mut end, mut used_before) = (at, false);
            while at + LEAST_LEFT <= SEGMENT_BYTES {
                let Some(bytes) = segment.get(at as usize..) else { break };
                let Some(mut message) = message(bytes, start, at) else {
                    at += 1;
                    continue;
                };
                at = message.bytes.end - start;
                let number = message.lsn / SEGMENT_BYTES;
                // Remains of an earlier use of the segment were all rewritten elsewhere before it was reused.
                if newest.is_some_and(|newest| number < newest) {
                    used_before = true;
                    continue;
                }
                (newest, end) = (Some(number), at);
                if let Kind::State(Place::Blob(blob)) = message.kind
                    && read_blob(&self.blobs, blob).is_none()
                {
                    message.kind = Kind::Lost;
                }
                runs.add(&message);
                take(&message);
            }
            if newest > last.segment {
                last = Tail { segment: newest, torn: !used_before && is_written(&segment, end) };
            }
            runs.holes += usize::from(newest.is_none() && segment.iter().any(|byte| *byte != 0));
            start += SEGMENT_BYTES;
        }
    }

    /// Returns the body of a message; `None` if the file of a blob is missing or damaged.
    pub(crate) fn read(&mut self, place: Place) -> Result<Option<Vec<u8>>, Error> {
        let (offset, length) = match place {
            Place::Blob(blob) => return Ok(read_blob(&self.blobs, blob)),
            Place::Log { offset, length } => (offset, length),
        };
        let mut body = vec![0; length];
        let read = self.file.seek(SeekFrom::Start(offset)).and_then(|_| self.file.read_exact(&mut body));
        read.map_err(Error::io("reading the log of a damaged store"))?;
        Ok(Some(body))
    }
}

/// The segment that was written last.
#[derive(Default)]
struct Tail {
    segment: Option<u64>,
    /// True if there are bytes after its last intact message. They may be another message, or remains of an earlier use
    /// of the segment.
    torn: bool,
}

/// Returns true if a segment contains anything but zeros from `end` on. At each start, sled writes zeros after the last
/// message, except for the last byte.
fn is_written(segment: &[u8], end: u64) -> bool {
    let room = SEGMENT_BYTES as usize - 1;
    let rest = segment.get(end as usize..segment.len().min(room));
    rest.is_some_and(|rest| rest.iter().any(|byte| *byte != 0))
}

/// Returns the message at the beginning of `bytes`, if it is intact. `bytes` lie at `at` in a segment that begins at
/// `start` in the file.
fn message(bytes: &[u8], start: u64, at: u64) -> Option<Message> {
    let mut rest = Bytes(bytes);
    let crc = u32::from_le_bytes(*rest.array::<CRC_BYTES>()?);
    let kind = rest.byte()?;
    if !(1..=11).contains(&kind) {
        return None;
    }
    let (length, number, page) = (usize::try_from(rest.number()?).ok()?, rest.number()?, rest.number()?);
    let header = bytes.len() - rest.0.len();
    let body = rest.take(length)?;
    let lsn = number.checked_mul(SEGMENT_BYTES)?.checked_add(at)?;
    let mut sum = crc32fast::Hasher::new();
    sum.update(body);
    sum.update(bytes.get(CRC_BYTES..header)?);
    if !sum.finalize() != crc || i64::try_from(lsn).is_err() {
        return None;
    }
    let offset = start + at;
    let body_offset = offset + header as u64;
    let inline = Place::Log { offset: body_offset, length };
    let blob = || Some(Place::Blob(u64::from_le_bytes(body.try_into().ok()?)));
    let kind = match kind {
        2 => Kind::End,
        4 => Kind::Freed,
        8 => Kind::State(inline),
        9 => Kind::State(blob()?),
        10 => Kind::Change(inline),
        11 => Kind::Change(blob()?),
        // Cancelled messages, batch markers, and pages about sled itself.
        _ => Kind::Other,
    };
    Some(Message { page, lsn, kind, bytes: offset..body_offset + length as u64 })
}

fn read_blob(blobs: &Path, blob: u64) -> Option<Vec<u8>> {
    let mut bytes = fs::read(blobs.join(blob.to_string())).ok()?;
    let (crc, rest) = bytes.split_first_chunk::<CRC_BYTES>()?;
    if crc32fast::hash(rest) != u32::from_le_bytes(*crc) || rest.is_empty() {
        return None;
    }
    bytes.drain(..=CRC_BYTES);
    Some(bytes)
}

/// The parts of the log without holes.
#[derive(Default)]
pub(crate) struct Runs {
    runs: Vec<Range<u64>>,
    /// Number of holes.
    pub(crate) holes: usize,
}

impl Runs {
    fn add(&mut self, message: &Message) {
        let mut end = message.lsn + (message.bytes.end - message.bytes.start);
        let next = (message.lsn / SEGMENT_BYTES + 1) * SEGMENT_BYTES;
        if message.kind == Kind::End || next < end + LEAST_LEFT {
            end = next + SEGMENT_HEADER;
        }
        match self.runs.last_mut() {
            Some(run) if run.end == message.lsn => run.end = end,
            _ => self.runs.push(message.lsn..end),
        }
    }

    /// Joins parts that are scattered in the file, and counts the holes between them.
    fn joined(mut self) -> Self {
        self.runs.sort_by_key(|run| run.start);
        self.runs.dedup_by(|next, run| {
            let joins = run.end == next.start;
            if joins {
                run.end = next.end;
            }
            joins
        });
        // Segments in between may have been freed, which is no damage.
        let whole = |lsn: u64| lsn % SEGMENT_BYTES == SEGMENT_HEADER;
        let ends = std::iter::once(SEGMENT_HEADER).chain(self.runs.iter().map(|run| run.end));
        self.holes += self.runs.iter().zip(ends).filter(|(run, end)| !whole(*end) || !whole(run.start)).count();
        self
    }

    /// Returns true if nothing is missing between two messages.
    pub(crate) fn whole(&self, from: u64, to: u64) -> bool {
        let run = self.runs.partition_point(|run| run.end <= from);
        self.runs.get(run).is_some_and(|run| run.contains(&from) && run.contains(&to))
    }
}
