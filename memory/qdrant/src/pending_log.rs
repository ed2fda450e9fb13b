use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use azera_memory::Error;
use azera_types::MemoryId;

/// Most changes noted one by one. With more, the server is refilled.
pub const MAX_WAITING: usize = 1_000_000;

/// Lines that the file may have beyond the pending changes before it is rewritten.
const SPARE_LINES: usize = 64 * 1_024;

/// Bytes of a line: its kind, and the number of a memory.
const LINE_BYTES: usize = 9;

/// Changes that the server does not have yet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PendingChanges {
    /// Refill the server.
    pub(crate) anew: bool,
    /// Delete removed points from its disk.
    pub(crate) rewrite: bool,
    /// Memories to send in their local state, or to remove if they are gone locally.
    pub(crate) ids: BTreeSet<MemoryId>,
}

impl PendingChanges {
    pub(crate) fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// Adds `other`. A refill replaces everything pending before it.
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
            // A damaged log means that nothing is known; so the server is refilled.
            _ => self.anew = true,
        }
    }
}

/// Pending changes, in memory and in an append-only file.
pub(crate) struct PendingLog {
    path: PathBuf,
    file: File,
    lines: usize,
    pending: PendingChanges,
    /// Changes being sent. They stay pending until acknowledged, and are not taken again meanwhile.
    taken: PendingChanges,
    /// True after a failed write, which may have left part of a line.
    torn: bool,
}

fn io(source: std::io::Error) -> Error {
    Error::io("writing the journal of the vector index's server")(source)
}

impl PendingLog {
    /// Opens the log, or creates it. Cuts off a partial line that a crash left.
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).map_err(io)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(io)?;
        let mut pending = PendingChanges::default();
        let (lines, rest) = bytes.as_chunks::<LINE_BYTES>();
        lines.iter().for_each(|line| pending.read(line));
        if !rest.is_empty() {
            file.set_len((lines.len() * LINE_BYTES) as u64).map_err(io)?;
        }
        file.seek(SeekFrom::End(0)).map_err(io)?;
        Ok(Self {
            path: path.to_owned(),
            lines: lines.len(),
            file,
            pending,
            taken: PendingChanges::default(),
            torn: false,
        })
    }

    pub(crate) fn pending(&self) -> &PendingChanges {
        &self.pending
    }

    /// Notes changes. They survive the process at once, and a crash of the machine after [`PendingLog::sync`].
    pub(crate) fn note(&mut self, pending: PendingChanges) -> Result<(), Error> {
        if pending.is_nothing() {
            return Ok(());
        }
        let lines = pending.lines();
        self.pending.add(pending);
        if self.lines + lines.len() / LINE_BYTES > MAX_WAITING {
            if self.pending.ids.len() > MAX_WAITING / 2 {
                self.pending = PendingChanges { anew: true, rewrite: self.pending.rewrite, ids: BTreeSet::new() };
            }
            return self.write_anew();
        }
        self.append(&lines)
    }

    /// Appends whole lines. Cuts off the remains of a failed write first; otherwise all later lines would be misread.
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

    /// Takes the changes to send next. Earlier ones must have been acknowledged or put back. They stay in the file
    /// until [`PendingLog::given`].
    pub(crate) fn take(&mut self, next: PendingChanges) {
        self.pending.anew &= !next.anew;
        self.pending.rewrite &= !next.rewrite;
        self.pending.ids.retain(|id| !next.ids.contains(id));
        self.taken = next;
    }

    /// Puts back changes that could not be sent, before those that came since.
    pub(crate) fn put_back(&mut self) {
        let taken = std::mem::take(&mut self.taken);
        self.prepend(taken);
    }

    /// Records that the taken changes were sent, except for `left`, which is still pending.
    pub(crate) fn given_but(&mut self, left: PendingChanges) -> Result<(), Error> {
        self.taken = PendingChanges::default();
        self.prepend(left);
        self.write_anew()
    }

    /// Records that the taken changes were sent. The file may list more for a while: sending a change twice does no
    /// harm.
    pub(crate) fn given(&mut self) -> Result<(), Error> {
        let flags = self.taken.anew || self.taken.rewrite;
        self.taken = PendingChanges::default();
        if flags || self.pending.ids.is_empty() || self.lines > self.pending.ids.len() + SPARE_LINES {
            return self.write_anew();
        }
        Ok(())
    }

    fn prepend(&mut self, pending: PendingChanges) {
        let since = std::mem::replace(&mut self.pending, pending);
        self.pending.add(since);
    }

    /// Replaces the file with one that lists the pending and the taken changes.
    fn write_anew(&mut self) -> Result<(), Error> {
        let mut all = self.taken.clone();
        all.add(self.pending.clone());
        let lines = all.lines();
        if lines.is_empty() {
            self.file.set_len(0).and_then(|()| self.file.seek(SeekFrom::Start(0))).map_err(io)?;
            (self.lines, self.torn) = (0, false);
            return self.sync();
        }
        // The new file is written next to the old one, so that a crash leaves one of them.
        let temporary = self.path.with_extension("new");
        let mut file = File::create(&temporary).map_err(io)?;
        file.write_all(&lines).and_then(|()| file.sync_data()).map_err(io)?;
        std::fs::rename(&temporary, &self.path).map_err(io)?;
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
    fn noted_changes_survive_the_process() {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("journal");
        let mut log = PendingLog::open(&path).unwrap();
        log.note(ids(&[1, u64::MAX, 3])).unwrap();
        let all = ids(&[1, 3, u64::MAX]);
        assert_eq!(*log.pending(), all);
        log.take(all.clone());
        assert!(log.pending().is_nothing());
        assert_eq!(*PendingLog::open(&path).unwrap().pending(), all, "taken changes are not sent yet");
        log.note(ids(&[7])).unwrap();
        log.given().unwrap();
        assert_eq!(*log.pending(), ids(&[7]));
        assert!(
            PendingLog::open(&path).unwrap().pending().ids.contains(&MemoryId(7)),
            "the file may hold more changes, but not fewer"
        );
        log.note(ids(&[8])).unwrap();
        log.take(ids(&[8]));
        log.put_back();
        assert_eq!(*log.pending(), ids(&[7, 8]));
        log.note(PendingChanges { anew: true, ..PendingChanges::default() }).unwrap();
        log.take(PendingChanges { anew: true, ..PendingChanges::default() });
        log.given_but(ids(&[5, 6])).unwrap();
        assert_eq!((log.pending(), PendingLog::open(&path).unwrap().pending()), (&ids(&[5, 6]), &ids(&[5, 6])));
        log.note(PendingChanges { rewrite: true, ..PendingChanges::default() }).unwrap();
        log.note(PendingChanges { anew: true, ..PendingChanges::default() }).unwrap();
        log.note(ids(&[9])).unwrap();
        let want = PendingChanges { anew: true, rewrite: false, ids: ids(&[9]).ids };
        assert_eq!((log.pending(), PendingLog::open(&path).unwrap().pending()), (&want, &want));
        // A crash in the middle of a line, and a file that another program wrote.
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(&path, &whole[..whole.len() - 4]).unwrap();
        assert_eq!(
            *PendingLog::open(&path).unwrap().pending(),
            PendingChanges { anew: true, ..PendingChanges::default() }
        );
        std::fs::write(&path, b"something else").unwrap();
        assert!(PendingLog::open(&path).unwrap().pending().anew);
        let all = log.pending().clone();
        log.take(all);
        log.given().unwrap();
        assert!(PendingLog::open(&path).unwrap().pending().is_nothing());
    }

    #[test]
    fn the_remains_of_a_failed_write_are_cut_off() {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("journal");
        let mut log = PendingLog::open(&path).unwrap();
        log.note(ids(&[1])).unwrap();
        // A full disk takes only the beginning of a line. Here the file refuses every write.
        OpenOptions::new().append(true).open(&path).unwrap().write_all(b"i\x02\x00").unwrap();
        let whole = std::mem::replace(&mut log.file, File::open(&path).unwrap());
        log.note(ids(&[2])).unwrap_err();
        log.file = whole;
        log.note(ids(&[3])).unwrap();
        assert_eq!(*PendingLog::open(&path).unwrap().pending(), ids(&[1, 3]));
        assert_eq!(*log.pending(), ids(&[1, 2, 3]), "the change is pending in memory");
    }

    #[test]
    fn the_file_has_a_limit() {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("journal");
        let mut log = PendingLog::open(&path).unwrap();
        let few = ids(&(0..1_000).collect::<Vec<_>>());
        log.note(ids(&[u64::MAX])).unwrap();
        log.take(ids(&[u64::MAX]));
        for _ in 0..1_500 {
            log.note(few.clone()).unwrap();
        }
        assert_eq!(*log.pending(), few, "repeated changes count once");
        assert!(
            PendingLog::open(&path).unwrap().pending().ids.contains(&MemoryId(u64::MAX)),
            "taken changes are not sent yet"
        );
        assert!(path.metadata().unwrap().len() <= (MAX_WAITING * LINE_BYTES) as u64);
        for thousand in 0..1_100 {
            log.note(ids(&(thousand * 1_000..(thousand + 1) * 1_000).collect::<Vec<_>>())).unwrap();
        }
        assert!(log.pending().anew && log.pending().ids.len() < MAX_WAITING);
        assert!(path.metadata().unwrap().len() <= (MAX_WAITING * LINE_BYTES) as u64);
    }
}
