//! A recording that is being made.

use std::fs::{self, File};
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::about::About;
use crate::folder::{RecordingFolder, private};

/// Sound that is shorter is not kept.
const SHORTEST: Duration = Duration::from_secs(1);

/// A recording that is being made. After a crash, [`RecordingFolder::open`] completes it.
pub struct NewRecording {
    pub(crate) folder: RecordingFolder,
    pub(crate) number: u32,
    pub(crate) about: About,
    /// The most bytes that it may have.
    pub(crate) max_bytes: u64,
}

impl NewRecording {
    /// Returns the file for the sound.
    ///
    /// # Errors
    /// The disk fails, or the recording was removed meanwhile ([`io::ErrorKind::NotFound`]).
    pub fn file(&self) -> io::Result<File> {
        private().write(true).truncate(true).open(self.path())
    }

    fn path(&self) -> PathBuf {
        self.folder.part(self.number)
    }

    /// Returns how many bytes of sound are on disk; `None` if the recording was removed meanwhile.
    ///
    /// # Errors
    /// The disk fails.
    pub fn bytes(&self) -> io::Result<Option<u64>> {
        match fs::metadata(self.path()) {
            Ok(found) => Ok(Some(found.len())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the most bytes that it may have.
    pub fn max_bytes(&self) -> u64 {
        self.max_bytes
    }

    /// Completes it, so that the people in it can have it. If its sound is too short, it is removed. Returns whether it
    /// is there.
    ///
    /// # Errors
    /// The disk fails. The next start completes it then.
    pub fn finish(mut self, duration: Duration) -> io::Result<bool> {
        // Nothing may be removed between the look and the rename.
        let _writing = self.folder.writing();
        if self.bytes()?.is_none() {
            return Ok(false);
        }
        if duration < SHORTEST {
            self.folder.remove_files(self.number)?;
            return Ok(false);
        }
        File::open(self.path())?.sync_all()?;
        self.about.milliseconds = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        self.folder.write_about(self.number, &self.about)?;
        fs::rename(self.path(), self.folder.sound_of(self.number))?;
        Ok(true)
    }
}
