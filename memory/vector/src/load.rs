//! Reading the file, record by record: to fill the memory at the start, and to copy what is left of it to another file.

use std::fs::File;

use azera_memory::Error;
use azera_types::MemoryId;
use rayon::prelude::*;

use crate::code::Code;
use crate::file::read_exact_at;
use crate::log::{HEADER_BYTES, Header, Log, read_header};
use crate::points::{NewPoint, Points};
use crate::record::{FLUSH_MARK, FRAME_BYTES, PointRecord, Record, Records, first_record, longest, read};

/// Bytes read at once, and shared by threads.
const BATCH_BYTES: usize = 8 * 1024 * 1024;

/// Bytes of records written at once to another file.
const COPY_BYTES: usize = 4 * 1024 * 1024;

const OPENING: &str = "opening the vector index";

/// Reads everything that lies in the file. What was never flushed and is not whole is cut off.
///
/// # Errors
///
/// [`Error::Invalid`] if the file holds vectors of another dimension; [`Error::Backend`] if something that was flushed
/// is damaged.
pub(crate) fn load(log: &mut Log, dimension: usize) -> Result<Points, Error> {
    check_header(log, dimension)?;
    let mut points = Points::new(dimension);
    let mut offset = HEADER_BYTES;
    while offset < log.end() {
        let bytes = batch(log, offset, OPENING)?;
        let records = split(&bytes, offset, dimension);
        let decoded: Vec<Option<Decoded<'_>>> =
            records.par_iter().map(|(offset, record)| decode(record, *offset, dimension)).collect();
        let before = offset;
        for ((at, record), decoded) in records.iter().zip(decoded) {
            let Some(decoded) = decoded else { break };
            apply(decoded, &mut points).ok_or_else(|| damaged("a record names no persona and scope"))?;
            offset = at + record.len() as u64;
        }
        let read_all = records.last().is_some_and(|(at, record)| at + record.len() as u64 == offset);
        if offset == before || !read_all {
            cut_torn_end(log, offset, dimension)?;
        }
    }
    Ok(points)
}

fn check_header(log: &Log, dimension: usize) -> Result<(), Error> {
    let mut header = [0; HEADER_BYTES as usize];
    if log.end() < HEADER_BYTES {
        return Err(damaged("the file is too short"));
    }
    read_exact_at(log.file(), &mut header, 0).map_err(Error::io(OPENING))?;
    match read_header(&header) {
        Header::Dimension(found) if found == dimension => Ok(()),
        Header::Dimension(found) => Err(Error::Invalid(format!(
            "the vector index holds vectors of {found} numbers and the embedding model makes {dimension}; run `azera memory \
             rebuild`"
        ))),
        Header::Version(version) => {
            Err(unusable(format!("its format has version {version}, which this Azera cannot read")))
        }
        Header::Damaged => Err(damaged("the header is wrong")),
    }
}

/// A damaged file, with what to do about it.
fn damaged(why: &str) -> Error {
    unusable(format!("its file is damaged ({why})"))
}

/// A file that cannot be used, with what to do about it.
pub(crate) fn unusable(why: String) -> Error {
    let why = format!("{why}; `azera memory rebuild` makes it anew from the record");
    Error::Backend { what: OPENING, why, transient: false }
}

/// What a record changes, ready for memory.
enum Decoded<'a> {
    Point(NewPoint<'a>),
    Removed(Vec<MemoryId>),
    Nothing,
}

fn decode(record: &[u8], offset: u64, dimension: usize) -> Option<Decoded<'_>> {
    Some(match read(record, offset, dimension)? {
        Record::Point(PointRecord { id, at, key, own, window, offset }) => {
            let window = window.map(|window| Code::of(&window));
            Decoded::Point(NewPoint { id, at, key, own: Code::of(&own), window, offset })
        }
        Record::Removed(ids) => Decoded::Removed(ids),
        Record::Flushed => Decoded::Nothing,
    })
}

fn apply(decoded: Decoded<'_>, points: &mut Points) -> Option<()> {
    match decoded {
        Decoded::Point(point) => points.insert(point)?,
        Decoded::Removed(ids) => ids.into_iter().for_each(|id| points.remove(id)),
        Decoded::Nothing => {}
    }
    Some(())
}

/// Reads the bytes from `offset` on.
fn batch(log: &Log, offset: u64, what: &'static str) -> Result<Vec<u8>, Error> {
    let bytes = usize::try_from(log.end().saturating_sub(offset)).unwrap_or(usize::MAX).min(BATCH_BYTES);
    let mut buffer = vec![0; bytes];
    read_exact_at(log.file(), &mut buffer, offset).map_err(Error::io(what))?;
    Ok(buffer)
}

/// Splits bytes into whole records, each with its place in the file. Their checksums are not looked at.
fn split(mut bytes: &[u8], mut offset: u64, dimension: usize) -> Vec<(u64, &[u8])> {
    let longest = longest(dimension);
    let mut records = Vec::new();
    while let Some(record) = first_record(bytes, longest) {
        records.push((offset, record));
        offset += record.len() as u64;
        bytes = bytes.split_at(record.len()).1;
    }
    records
}

/// Cuts off what lies behind a record that is not whole, unless something behind it was flushed: then the record was
/// whole once.
fn cut_torn_end(log: &mut Log, offset: u64, dimension: usize) -> Result<(), Error> {
    if flush_lies_behind(log, offset, dimension)? {
        return Err(damaged(&format!("the record at byte {offset} was flushed and cannot be read")));
    }
    let bytes = log.end() - offset;
    tracing::debug!(bytes, "cut off what a crash had left unfinished at the end of the vector index");
    log.cut(offset)
}

/// Whether a record of a flush lies at or behind `from`.
fn flush_lies_behind(log: &Log, from: u64, dimension: usize) -> Result<bool, Error> {
    // A record of a flush is its frame, its kind and the mark.
    let before_mark = FRAME_BYTES + 1;
    let record_bytes = before_mark + FLUSH_MARK.len();
    let mut offset = from;
    while offset < log.end() {
        let bytes = batch(log, offset, OPENING)?;
        for (start, record) in bytes.windows(record_bytes).enumerate() {
            let marked = record.get(before_mark..) == Some(&FLUSH_MARK[..]);
            if marked && read(record, offset + start as u64, dimension) == Some(Record::Flushed) {
                return Ok(true);
            }
        }
        if bytes.len() < BATCH_BYTES {
            break;
        }
        // A record may lie across the border of two batches.
        offset += (BATCH_BYTES - record_bytes + 1) as u64;
    }
    Ok(false)
}

/// Appends the records of all points that are there to another file, in the order of this one. Returns where the vectors
/// of each lie in that file.
pub(crate) fn copy(from: &Log, points: &Points, dimension: usize, to: &mut Log) -> Result<Vec<(MemoryId, u64)>, Error> {
    const REWRITING: &str = "rewriting the vector index";
    let wrong = || {
        let why = "its file is damaged; `azera memory rebuild` makes it anew from the record".to_owned();
        Error::Backend { what: REWRITING, why, transient: false }
    };
    let mut moved = Vec::new();
    let mut records: Records = to.records();
    let mut offset = HEADER_BYTES;
    while offset < from.end() {
        let bytes = batch(from, offset, REWRITING)?;
        let found = split(&bytes, offset, dimension);
        let (last, last_record) = found.last().ok_or_else(wrong)?;
        offset = last + last_record.len() as u64;
        for (at, record) in found {
            let Record::Point(point) = read(record, at, dimension).ok_or_else(wrong)? else { continue };
            let there = points.find(point.id).is_some_and(|(_, _, own, _)| own == point.offset);
            if !there {
                continue;
            }
            let offset = records.point((point.id, point.at), point.key, &point.own, point.window.as_deref())?;
            moved.push((point.id, offset));
            if records.bytes().len() >= COPY_BYTES {
                to.append(&records)?;
                records = to.records();
            }
        }
    }
    to.append(&records)?;
    Ok(moved)
}

/// Reads a vector.
pub(crate) fn vector_at(file: &File, offset: u64, buffer: &mut [u8]) -> Result<Vec<f32>, Error> {
    read_exact_at(file, buffer, offset).map_err(Error::io("reading the vector index"))?;
    Ok(crate::record::floats(buffer))
}
