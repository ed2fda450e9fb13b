use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use azera_memory::Error;
use azera_types::MemoryId;

/// Changes noted for the server one by one; with more, it gets all there is.
pub const MAX_WAITING: usize = 1_000_000;

/// Bytes of a line of the journal: what it says, and a memory's number.
const LINE_BYTES: usize = 9;

/// What the server is owed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Owed {
    /// Everything anew.
    pub(crate) anew: bool,
    /// To forget on its disk what was removed.
    pub(crate) rewrite: bool,
    /// These memories as they are in the local index, or their removal if they are not there.
    pub(crate) ids: BTreeSet<MemoryId>,
}

impl Owed {
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
pub(crate) struct Journal {
    path: PathBuf,
    file: File,
    lines: usize,
    owed: Owed,
}

fn io(source: std::io::Error) -> Error {
    Error::Io { what: "writing the journal of the vector index's server", source }
}

impl Journal {
    /// Opens the journal in a file, making it if there is none. What a crash left of a line is cut off.
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).map_err(io)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(io)?;
        let mut owed = Owed::default();
        let (lines, rest) = bytes.as_chunks::<LINE_BYTES>();
        lines.iter().for_each(|line| owed.read(line));
        if !rest.is_empty() {
            file.set_len((lines.len() * LINE_BYTES) as u64).map_err(io)?;
        }
        file.seek(SeekFrom::End(0)).map_err(io)?;
        Ok(Self { path: path.to_owned(), lines: lines.len(), file, owed })
    }

    pub(crate) fn owed(&self) -> &Owed {
        &self.owed
    }

    /// Notes what the server is owed. It outlives the process at once, and the machine after [`Journal::sync`].
    pub(crate) fn note(&mut self, owed: Owed) -> Result<(), Error> {
        if owed.is_nothing() {
            return Ok(());
        }
        let lines = owed.lines();
        self.owed.add(owed);
        if self.lines + lines.len() / LINE_BYTES > MAX_WAITING {
            let anew = Owed { anew: true, rewrite: self.owed.rewrite, ids: BTreeSet::new() };
            return self.replace(if self.owed.ids.len() > MAX_WAITING / 2 { anew } else { self.owed.clone() });
        }
        self.lines += lines.len() / LINE_BYTES;
        self.file.write_all(&lines).map_err(io)
    }

    pub(crate) fn sync(&self) -> Result<(), Error> {
        self.file.sync_data().map_err(io)
    }

    /// To take out what is to be given to the server next. It stays in the file until [`Journal::given`].
    pub(crate) fn owed_mut(&mut self) -> &mut Owed {
        &mut self.owed
    }

    /// Puts back what could not be given, below what came since.
    pub(crate) fn put_back(&mut self, owed: Owed) {
        let since = std::mem::replace(&mut self.owed, owed);
        self.owed.add(since);
    }

    /// What was taken was given: the file says what is left.
    pub(crate) fn given(&mut self) -> Result<(), Error> {
        let left = self.owed.clone();
        self.replace(left)
    }

    fn replace(&mut self, owed: Owed) -> Result<(), Error> {
        let lines = owed.lines();
        self.owed = owed;
        if lines.is_empty() {
            self.file.set_len(0).and_then(|()| self.file.seek(SeekFrom::Start(0))).map_err(io)?;
            self.lines = 0;
            return self.sync();
        }
        // Beside it first: a crash leaves the old one or the new one.
        let beside = self.path.with_extension("new");
        let mut file = File::create(&beside).map_err(io)?;
        file.write_all(&lines).and_then(|()| file.sync_data()).map_err(io)?;
        std::fs::rename(&beside, &self.path).map_err(io)?;
        self.file = file;
        self.lines = lines.len() / LINE_BYTES;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    fn ids(numbers: &[u64]) -> Owed {
        Owed { ids: numbers.iter().copied().map(MemoryId).collect(), ..Owed::default() }
    }

    #[test]
    fn what_is_noted_outlives_the_process() {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("journal");
        let mut journal = Journal::open(&path).unwrap();
        journal.note(ids(&[1, u64::MAX, 3])).unwrap();
        let taken = std::mem::take(journal.owed_mut());
        assert_eq!(taken, ids(&[1, 3, u64::MAX]));
        assert_eq!(*Journal::open(&path).unwrap().owed(), taken, "taken is not given");
        journal.note(ids(&[7])).unwrap();
        journal.given().unwrap();
        assert_eq!(*Journal::open(&path).unwrap().owed(), ids(&[7]));
        journal.put_back(ids(&[8]));
        assert_eq!(*journal.owed(), ids(&[7, 8]));
        journal.note(Owed { rewrite: true, ..Owed::default() }).unwrap();
        journal.note(Owed { anew: true, ..Owed::default() }).unwrap();
        journal.note(ids(&[9])).unwrap();
        let want = Owed { anew: true, rewrite: false, ids: ids(&[9]).ids };
        assert_eq!((journal.owed(), Journal::open(&path).unwrap().owed()), (&want, &want));
        // A crash in the middle of a line, and a file that somebody else has written.
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(&path, &whole[..whole.len() - 4]).unwrap();
        assert_eq!(*Journal::open(&path).unwrap().owed(), Owed { anew: true, ..Owed::default() });
        std::fs::write(&path, b"something else").unwrap();
        assert!(Journal::open(&path).unwrap().owed().anew);
        *journal.owed_mut() = Owed::default();
        journal.given().unwrap();
        assert!(Journal::open(&path).unwrap().owed().is_nothing());
    }

    #[test]
    fn the_file_has_a_limit() {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("journal");
        let mut journal = Journal::open(&path).unwrap();
        let few = ids(&(0..1_000).collect::<Vec<_>>());
        for _ in 0..1_500 {
            journal.note(few.clone()).unwrap();
        }
        assert_eq!(*journal.owed(), few, "the same ones again and again");
        assert!(path.metadata().unwrap().len() <= (MAX_WAITING * LINE_BYTES) as u64);
        for thousand in 0..1_100 {
            journal.note(ids(&(thousand * 1_000..(thousand + 1) * 1_000).collect::<Vec<_>>())).unwrap();
        }
        assert!(journal.owed().anew && journal.owed().ids.len() < MAX_WAITING);
        assert!(path.metadata().unwrap().len() <= (MAX_WAITING * LINE_BYTES) as u64);
    }
}
