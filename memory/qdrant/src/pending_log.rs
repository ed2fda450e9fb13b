use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use azera_memory::Error;
use azera_types::MemoryId;

/// Changes noted for the server one by one; with more, it gets all there is.
pub const MAX_WAITING: usize = 1_000_000;

/// Lines the file may have beyond what is still owed before it is written anew.
const SPARE_LINES: usize = 64 * 1_024;

/// Bytes of a line of the journal: what it says, and a memory's number.
const LINE_BYTES: usize = 9;

/// What the server is owed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PendingChanges {
    /// Everything anew.
    pub(crate) anew: bool,
    /// To forget on its disk what was removed.
    pub(crate) rewrite: bool,
    /// These memories as they are in the local index, or their removal if they are not there.
    pub(crate) ids: BTreeSet<MemoryId>,
}

impl PendingChanges {
    pub(crate) fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// Adds what `other` asks for. What is made anew needs nothing of what was owed before.
    pub(crate) fn add(&mut self, other: Self) {
        if other.anew {
            *self = Self { anew: true, ..Self::default() };
        }
        self.rewrite |= other.rewrite;
        self.ids.extend(other.ids);
    }

    fn lines(&self) -> Vec<u8> {
        let flag = |set: bool, what: u8| set.then_some((what, 0));
        let flags = [flag(self.anew, b'a'), flag(self.rewrite, b'r')];
        let lines = flags.into_iter().flatten().chain(self.ids.iter().map(|id| (b'i', id.0)));
        lines.flat_map(|(what, number)| [&[what][..], &number.to_le_bytes()].concat()).collect()
    }

    fn read(&mut self, line: &[u8]) {
        let Some((what, number)) = line.split_first().and_then(|(what, rest)| Some((what, rest.first_chunk::<8>()?)))
        else {
            return;
        };
        match what {
            b'a' => self.add(Self { anew: true, ..Self::default() }),
            b'r' => self.rewrite = true,
            b'i' => {
                self.ids.insert(MemoryId(u64::from_le_bytes(*number)));
            }
            // Of a journal that is damaged nothing is believed.
            _ => self.anew = true,
        }
    }
}

/// What the server is owed, in memory and in a file that is only appended to.
pub(crate) struct PendingLog {
    path: PathBuf,
    file: File,
    lines: usize,
    owed: PendingChanges,
    /// What is being given to the server: owed until it is given, and not offered again meanwhile.
    taken: PendingChanges,
    /// A write failed, so that behind the lines may stand a part of one.
    torn: bool,
}

fn io(source: std::io::Error) -> Error {
    Error::io("writing the journal of the vector index's server")(source)
}

impl PendingLog {
    /// Opens the journal in a file, making it if there is none. What a crash left of a line is cut off.
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).map_err(io)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(io)?;
        let mut owed = PendingChanges::default();
        let (lines, rest) = bytes.as_chunks::<LINE_BYTES>();
        lines.iter().for_each(|line| owed.read(line));
        if !rest.is_empty() {
            file.set_len((lines.len() * LINE_BYTES) as u64).map_err(io)?;
        }
        file.seek(SeekFrom::End(0)).map_err(io)?;
        Ok(Self {
            path: path.to_owned(),
            lines: lines.len(),
            file,
            owed,
            taken: PendingChanges::default(),
            torn: false,
        })
    }

    pub(crate) fn pending(&self) -> &PendingChanges {
        &self.owed
    }

    /// Notes what the server is owed. It outlives the process at once, and the machine after [`PendingLog::sync`].
    pub(crate) fn note(&mut self, owed: PendingChanges) -> Result<(), Error> {
        if owed.is_nothing() {
            return Ok(());
        }
        let lines = owed.lines();
        self.owed.add(owed);
        if self.lines + lines.len() / LINE_BYTES > MAX_WAITING {
            if self.owed.ids.len() > MAX_WAITING / 2 {
                self.owed = PendingChanges { anew: true, rewrite: self.owed.rewrite, ids: BTreeSet::new() };
            }
            return self.write_anew();
        }
        self.append(&lines)
    }

    /// Appends whole lines. What a failed write left of a line is cut off first, or all behind it would be misread.
    fn append(&mut self, lines: &[u8]) -> Result<(), Error> {
        if std::mem::replace(&mut self.torn, true) {
            let end = (self.lines * LINE_BYTES) as u64;
            self.file.set_len(end).and_then(|()| self.file.seek(SeekFrom::Start(end))).map_err(io)?;
        }
        self.file.write_all(lines).map_err(io)?;
        self.lines += lines.len() / LINE_BYTES;
        self.torn = false;
        Ok(())
    }

    pub(crate) fn sync(&self) -> Result<(), Error> {
        self.file.sync_data().map_err(io)
    }

    /// Takes out what is given to the server next; what was taken before must have been given or put back. It stays in the
    /// file until [`PendingLog::given`].
    pub(crate) fn take(&mut self, next: PendingChanges) {
        self.owed.anew &= !next.anew;
        self.owed.rewrite &= !next.rewrite;
        self.owed.ids.retain(|id| !next.ids.contains(id));
        self.taken = next;
    }

    /// Puts back what could not be given, below what came since.
    pub(crate) fn put_back(&mut self) {
        let taken = std::mem::take(&mut self.taken);
        self.owe_before(taken);
    }

    /// What was taken was given, and in its place the server is owed something less: `left`.
    pub(crate) fn given_but(&mut self, left: PendingChanges) -> Result<(), Error> {
        self.taken = PendingChanges::default();
        self.owe_before(left);
        self.write_anew()
    }

    /// What was taken was given. The file may say more than is owed for a while: giving it again does no harm.
    pub(crate) fn given(&mut self) -> Result<(), Error> {
        let flags = self.taken.anew || self.taken.rewrite;
        self.taken = PendingChanges::default();
        if flags || self.owed.ids.is_empty() || self.lines > self.owed.ids.len() + SPARE_LINES {
            return self.write_anew();
        }
        Ok(())
    }

    fn owe_before(&mut self, owed: PendingChanges) {
        let since = std::mem::replace(&mut self.owed, owed);
        self.owed.add(since);
    }

    /// Writes what is owed, and being given, in the place of the file.
    fn write_anew(&mut self) -> Result<(), Error> {
        let mut all = self.taken.clone();
        all.add(self.owed.clone());
        let lines = all.lines();
        if lines.is_empty() {
            self.file.set_len(0).and_then(|()| self.file.seek(SeekFrom::Start(0))).map_err(io)?;
            (self.lines, self.torn) = (0, false);
            return self.sync();
        }
        // Beside it first: a crash leaves the old one or the new one.
        let beside = self.path.with_extension("new");
        let mut file = File::create(&beside).map_err(io)?;
        file.write_all(&lines).and_then(|()| file.sync_data()).map_err(io)?;
        std::fs::rename(&beside, &self.path).map_err(io)?;
        self.file = file;
        (self.lines, self.torn) = (lines.len() / LINE_BYTES, false);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    fn ids(numbers: &[u64]) -> PendingChanges {
        PendingChanges { ids: numbers.iter().copied().map(MemoryId).collect(), ..PendingChanges::default() }
    }

    #[test]
    fn what_is_noted_outlives_the_process() {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("journal");
        let mut journal = PendingLog::open(&path).unwrap();
        journal.note(ids(&[1, u64::MAX, 3])).unwrap();
        let all = ids(&[1, 3, u64::MAX]);
        assert_eq!(*journal.pending(), all);
        journal.take(all.clone());
        assert!(journal.pending().is_nothing());
        assert_eq!(*PendingLog::open(&path).unwrap().pending(), all, "taken is not given");
        journal.note(ids(&[7])).unwrap();
        journal.given().unwrap();
        assert_eq!(*journal.pending(), ids(&[7]));
        assert!(PendingLog::open(&path).unwrap().pending().ids.contains(&MemoryId(7)), "it may say more, and not less");
        journal.note(ids(&[8])).unwrap();
        journal.take(ids(&[8]));
        journal.put_back();
        assert_eq!(*journal.pending(), ids(&[7, 8]));
        journal.note(PendingChanges { anew: true, ..PendingChanges::default() }).unwrap();
        journal.take(PendingChanges { anew: true, ..PendingChanges::default() });
        journal.given_but(ids(&[5, 6])).unwrap();
        assert_eq!((journal.pending(), PendingLog::open(&path).unwrap().pending()), (&ids(&[5, 6]), &ids(&[5, 6])));
        journal.note(PendingChanges { rewrite: true, ..PendingChanges::default() }).unwrap();
        journal.note(PendingChanges { anew: true, ..PendingChanges::default() }).unwrap();
        journal.note(ids(&[9])).unwrap();
        let want = PendingChanges { anew: true, rewrite: false, ids: ids(&[9]).ids };
        assert_eq!((journal.pending(), PendingLog::open(&path).unwrap().pending()), (&want, &want));
        // A crash in the middle of a line, and a file that somebody else has written.
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(&path, &whole[..whole.len() - 4]).unwrap();
        assert_eq!(
            *PendingLog::open(&path).unwrap().pending(),
            PendingChanges { anew: true, ..PendingChanges::default() }
        );
        std::fs::write(&path, b"something else").unwrap();
        assert!(PendingLog::open(&path).unwrap().pending().anew);
        let all = journal.pending().clone();
        journal.take(all);
        journal.given().unwrap();
        assert!(PendingLog::open(&path).unwrap().pending().is_nothing());
    }

    #[test]
    fn what_a_failed_write_left_is_cut_off() {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("journal");
        let mut journal = PendingLog::open(&path).unwrap();
        journal.note(ids(&[1])).unwrap();
        // A disk that fills up takes the beginning of a line; here the file is one that takes nothing.
        OpenOptions::new().append(true).open(&path).unwrap().write_all(b"i\x02\x00").unwrap();
        let whole = std::mem::replace(&mut journal.file, File::open(&path).unwrap());
        journal.note(ids(&[2])).unwrap_err();
        journal.file = whole;
        journal.note(ids(&[3])).unwrap();
        assert_eq!(*PendingLog::open(&path).unwrap().pending(), ids(&[1, 3]));
        assert_eq!(*journal.pending(), ids(&[1, 2, 3]), "in memory it is owed");
    }

    #[test]
    fn the_file_has_a_limit() {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("journal");
        let mut journal = PendingLog::open(&path).unwrap();
        let few = ids(&(0..1_000).collect::<Vec<_>>());
        journal.note(ids(&[u64::MAX])).unwrap();
        journal.take(ids(&[u64::MAX]));
        for _ in 0..1_500 {
            journal.note(few.clone()).unwrap();
        }
        assert_eq!(*journal.pending(), few, "the same ones again and again");
        assert!(
            PendingLog::open(&path).unwrap().pending().ids.contains(&MemoryId(u64::MAX)),
            "on its way, and not given"
        );
        assert!(path.metadata().unwrap().len() <= (MAX_WAITING * LINE_BYTES) as u64);
        for thousand in 0..1_100 {
            journal.note(ids(&(thousand * 1_000..(thousand + 1) * 1_000).collect::<Vec<_>>())).unwrap();
        }
        assert!(journal.pending().anew && journal.pending().ids.len() < MAX_WAITING);
        assert!(path.metadata().unwrap().len() <= (MAX_WAITING * LINE_BYTES) as u64);
    }
}
