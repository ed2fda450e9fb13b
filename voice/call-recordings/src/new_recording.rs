//! A recording that is being made.

use std::fs::{self, File};
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::about::About;
use crate::folder::{RecordingFolder, private};

/// Sound that is shorter is not kept.
const SHORTEST: Duration = Duration::from_secs(1);

/// A recording that is being made. After a crash, [`RecordingFolder::open`] completes it. If it is dropped before its file
/// was opened, nothing of it stays.
pub struct NewRecording {
    pub(crate) folder: RecordingFolder,
    pub(crate) number: u32,
    pub(crate) about: About,
    /// The most bytes that it may have.
    pub(crate) max_bytes: u64,
    /// When it began, by a clock that nobody sets.
    pub(crate) begun: Instant,
    /// True once its file was opened, so that there may be sound.
    pub(crate) is_opened: AtomicBool,
}

impl NewRecording {
    /// Returns the file for the sound.
    ///
    /// # Errors
    /// The disk fails, or the recording was removed meanwhile ([`io::ErrorKind::NotFound`]).
    pub fn file(&self) -> io::Result<File> {
        let file = private().write(true).truncate(true).open(self.path())?;
        self.is_opened.store(true, Ordering::Release);
        Ok(file)
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
        self.is_opened.store(true, Ordering::Release);
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
        // Its sound holds no pauses, so it may be shorter than the time since it began.
        let lasted = self.begun.elapsed().max(duration);
        self.about.end(duration, self.about.began.checked_add(lasted).ok());
        self.folder.write_about(self.number, &self.about)?;
        fs::rename(self.path(), self.folder.sound_of(self.number))?;
        Ok(true)
    }
}

impl Drop for NewRecording {
    fn drop(&mut self) {
        if self.is_opened.load(Ordering::Acquire) {
            return;
        }
        let _writing = self.folder.writing();
        if let Err(error) = self.folder.remove_files(self.number) {
            tracing::warn!(number = self.number, %error, "cannot remove a recording of a call that never began");
        }
    }
}
