//! The log of sled 0.34, read without sled.
//!
//! The file `db` consists of segments of [`SEGMENT_BYTES`], each with a header of its own and messages behind it, one after
//! the other. Segments are used again, so their order in the file says nothing; a message's place in the order of all
//! that was written (its LSN) is the number of its segment times the size of one, and its offset there.
//!
//! ```text
//! message  CRC-32 of what follows, body first, inverted (4 bytes, little-endian) · kind (1) · length of the body ·
//!          number of the segment · page · body                                 three varints (`Bytes::number`)
//! blob     CRC-32 of what follows (4) · kind (1) · body; a file `blobs/<LSN>`, named in a message of 8 bytes
//! ```
//!
//! So a message can be reported anywhere in the file by itself, and neither headers of segments nor snapshots of the page table
//! are looked at. Azera does not have sled compress anything.

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

/// No message begins with less than this left in its segment.
const LEAST_LEFT: u64 = 32;

/// Bytes of a checksum.
const CRC_BYTES: usize = 4;

/// A message that came through whole.
pub(crate) struct Message {
    pub(crate) page: u64,
    /// When it was written, in the order of all messages.
    pub(crate) lsn: u64,
    pub(crate) kind: Kind,
    /// Where it lies in the file, header and all.
    pub(crate) bytes: Range<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A whole page.
    State(Place),
    /// A whole page in a file that is gone or damaged.
    Lost,
    /// A change of a page.
    Change(Place),
    /// The page is no more.
    Freed,
    /// The segment ends here.
    End,
    /// Nothing about rows.
    Other,
}

/// Where a page or a change of one lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Log { offset: u64, length: usize },
    Blob(u64),
}

/// The files of a database that rows lie in.
pub(crate) struct Log {
    file: File,
    blobs: PathBuf,
}

impl Log {
    pub(crate) fn open(dir: &Path) -> Result<Self, Error> {
        let file = File::open(dir.join("db")).map_err(Error::io("opening the log of a damaged store"))?;
        Ok(Self { file, blobs: dir.join("blobs") })
    }

    /// Hands every message that came through whole to `take`, in no order.
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
                // What is left of an earlier use of the segment was all written elsewhere before it was used again.
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

    /// The body of a message; nothing where the file of a blob is gone or damaged.
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
    /// Whether something stands behind its last message that came through: nothing newer tells that this was one, too.
    /// Where the segment had been used before, it may be what is left of that.
    torn: bool,
}

/// Whether anything but zeros stands in a segment from `end` on. sled, which puts zeros behind the last message at each
/// start, leaves out the last byte.
fn is_written(segment: &[u8], end: u64) -> bool {
    let room = SEGMENT_BYTES as usize - 1;
    let rest = segment.get(end as usize..segment.len().min(room));
    rest.is_some_and(|rest| rest.iter().any(|byte| *byte != 0))
}

/// The message that `bytes` begin with, if it is whole; they lie at `at` in a segment that lies at `start` in the file.
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
        // What was given up, marks of batches, and pages about sled itself.
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

/// What of the log came through without a hole.
#[derive(Default)]
pub(crate) struct Runs {
    runs: Vec<Range<u64>>,
    /// Places at which something is missing.
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

    /// Puts together what lies apart in the file, and counts what is missing between.
    fn joined(mut self) -> Self {
        self.runs.sort_by_key(|run| run.start);
        self.runs.dedup_by(|next, run| {
            let joins = run.end == next.start;
            if joins {
                run.end = next.end;
            }
            joins
        });
        // Between whole segments others may have been given up, which is no damage.
        let whole = |lsn: u64| lsn % SEGMENT_BYTES == SEGMENT_HEADER;
        let ends = std::iter::once(SEGMENT_HEADER).chain(self.runs.iter().map(|run| run.end));
        self.holes += self.runs.iter().zip(ends).filter(|(run, end)| !whole(*end) || !whole(run.start)).count();
        self
    }

    /// Whether nothing that was written from one message to a later one is missing.
    pub(crate) fn whole(&self, from: u64, to: u64) -> bool {
        let run = self.runs.partition_point(|run| run.end <= from);
        self.runs.get(run).is_some_and(|run| run.contains(&from) && run.contains(&to))
    }
}
