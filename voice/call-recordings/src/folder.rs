//! The folder of recordings: `4711.json` says who is in the recording 4711, and `4711.ogg` is its sound, or `4711.part`
//! while it is being made.

use std::fs::{self, OpenOptions};
use std::io::{self, BufReader, BufWriter};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use azera_types::{PersonId, RealmId};
use azera_voice_api::{CallRecording, CallRecordings, ForgottenCalls};

use crate::about::About;
use crate::new_recording::NewRecording;
use crate::ogg_file;

/// The numbers of recordings. They are drawn by chance, so that they tell nobody how many others there are.
const NUMBERS: std::ops::Range<u32> = 10_000..100_000;

/// The most recordings that are kept.
const MAX_RECORDINGS: usize = 2_000;

const ABOUT: &str = "json";
const SOUND: &str = "ogg";
const PART: &str = "part";
const NEW: &str = "new";

/// A folder of recordings. Clones mean the same one.
#[derive(Clone)]
pub struct RecordingFolder {
    path: PathBuf,
    /// The most bytes of all recordings together, and of those of one realm.
    max_bytes: u64,
    /// See `max_bytes`.
    max_bytes_per_realm: u64,
    /// Held while files are written, renamed or removed.
    writing: Arc<Mutex<()>>,
}

/// Returns how to open a file that no other user of the machine may read.
pub(crate) fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o600);
    options
}

impl RecordingFolder {
    /// Opens a folder, which need not exist yet. Completes the recordings that a crash cut short, and removes what
    /// belongs to nobody. No other process may make recordings there.
    ///
    /// # Errors
    /// The disk fails.
    pub fn open(path: impl Into<PathBuf>, max_bytes: u64) -> io::Result<Self> {
        let folder = Self { path: path.into(), max_bytes, max_bytes_per_realm: max_bytes, writing: Arc::default() };
        folder.tidy()?;
        Ok(folder)
    }

    /// Keeps at most so many bytes of the recordings of one realm together.
    pub fn with_most_per_realm(mut self, max_bytes: u64) -> Self {
        self.max_bytes_per_realm = max_bytes;
        self
    }

    /// Begins a recording. Returns `None` if the folder is full, or has enough of this realm.
    ///
    /// # Errors
    /// The disk fails.
    pub fn begin(&self, about: About) -> io::Result<Option<NewRecording>> {
        let _writing = self.writing();
        let numbers = self.numbers()?;
        let left = self.max_bytes.saturating_sub(self.bytes()?);
        let of_realm = self.bytes_of(&numbers, about.realm.as_ref())?;
        let left = left.min(self.max_bytes_per_realm.saturating_sub(of_realm));
        if numbers.len() >= MAX_RECORDINGS || left == 0 {
            return Ok(None);
        }
        let mut number = fastrand::u32(NUMBERS);
        while numbers.contains(&number) {
            number = fastrand::u32(NUMBERS);
        }
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.path)?;
        self.write_about(number, &about)?;
        private().write(true).create_new(true).open(self.part(number))?;
        Ok(Some(NewRecording {
            folder: self.clone(),
            number,
            about,
            max_bytes: left,
            begun: Instant::now(),
            is_opened: AtomicBool::new(false),
        }))
    }

    pub(crate) fn writing(&self) -> MutexGuard<'_, ()> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn named(&self, number: u32, extension: &str) -> PathBuf {
        self.path.join(format!("{number}.{extension}"))
    }

    pub(crate) fn part(&self, number: u32) -> PathBuf {
        self.named(number, PART)
    }

    pub(crate) fn sound_of(&self, number: u32) -> PathBuf {
        self.named(number, SOUND)
    }

    /// Writes what is known about a recording, atomically.
    pub(crate) fn write_about(&self, number: u32, about: &About) -> io::Result<()> {
        azera_files::write_through(&self.named(number, NEW), &self.named(number, ABOUT), &serde_json::to_vec(about)?)
    }

    /// Removes all files of a recording. Without the first one, nobody can have the others.
    pub(crate) fn remove_files(&self, number: u32) -> io::Result<()> {
        for extension in [ABOUT, PART, SOUND, NEW] {
            match fs::remove_file(self.named(number, extension)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    fn files(&self) -> io::Result<Vec<PathBuf>> {
        match fs::read_dir(&self.path) {
            Ok(entries) => entries.map(|entry| Ok(entry?.path())).collect(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    fn numbers(&self) -> io::Result<Vec<u32>> {
        let number = |path: &PathBuf| path.file_stem()?.to_str()?.parse::<u32>().ok();
        let mut numbers: Vec<u32> = self.files()?.iter().filter_map(number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        Ok(numbers)
    }

    fn bytes(&self) -> io::Result<u64> {
        let size = |path: PathBuf| fs::metadata(path).map_or(0, |found| found.len());
        Ok(self.files()?.into_iter().map(size).sum())
    }

    /// Returns the bytes of the recordings of a realm, or of those that belong to none.
    fn bytes_of(&self, numbers: &[u32], realm: Option<&RealmId>) -> io::Result<u64> {
        let mut bytes = 0;
        for number in numbers {
            if self.about(*number)?.is_some_and(|about| about.realm.as_ref() == realm) {
                let size = |extension| fs::metadata(self.named(*number, extension)).map_or(0, |found| found.len());
                bytes += [ABOUT, PART, SOUND].map(size).iter().sum::<u64>();
            }
        }
        Ok(bytes)
    }

    /// Reads what is known about a recording; `None` if it is not there. A damaged file names nobody, so nobody can
    /// have the recording.
    fn about(&self, number: u32) -> io::Result<Option<About>> {
        let bytes = match fs::read(self.named(number, ABOUT)) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        Ok(serde_json::from_slice(&bytes).ok())
    }

    /// Returns a recording that is whole, if a person is in it.
    fn of_person(&self, person: &PersonId, number: u32) -> io::Result<Option<CallRecording>> {
        // What is known is written before the sound is whole, so it is read after.
        if !self.sound_of(number).exists() {
            return Ok(None);
        }
        let about = self.about(number)?.filter(|about| about.is_of(person));
        Ok(about.map(|about| about.with_number(number)))
    }

    fn tidy(&self) -> io::Result<()> {
        let _writing = self.writing();
        for number in self.numbers()? {
            let Some(about) = self.about(number)? else {
                tracing::warn!(number, "a recording of a call names nobody; it is removed");
                self.remove_files(number)?;
                continue;
            };
            if self.part(number).exists() {
                self.complete(number, about)?;
            }
            if !self.sound_of(number).exists() {
                self.remove_files(number)?;
                continue;
            }
            // An older version did not write the end.
            if let Some(mut about) = self.about(number)?.filter(|about| about.ended.is_none()) {
                about.end_at(about.lasts(), written(&self.sound_of(number)));
                self.write_about(number, &about)?;
            }
            if self.named(number, NEW).exists() {
                fs::remove_file(self.named(number, NEW))?;
            }
        }
        Ok(())
    }

    /// Completes a recording that a crash cut short. Without sound it stays as it is.
    fn complete(&self, number: u32, mut about: About) -> io::Result<()> {
        let (part, new) = (self.part(number), self.named(number, NEW));
        match rewrite(&part, &new) {
            Ok(lasts) if !lasts.is_zero() => {
                about.end_at(lasts, written(&part));
                fs::rename(&new, self.sound_of(number))?;
                self.write_about(number, &about)?;
                tracing::info!(number, "completed a recording of a call that was cut short");
            }
            Ok(_) => tracing::info!(number, "a recording of a call has no sound; it is removed"),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                tracing::warn!(number, %error, "a recording of a call cannot be completed; it is removed");
            }
            Err(error) => return Err(error),
        }
        fs::remove_file(&part)
    }
}

/// Returns when a file was written last.
fn written(file: &Path) -> io::Result<SystemTime> {
    fs::metadata(file)?.modified()
}

/// Writes what is whole of a file into another one. Returns how long its sound lasts.
fn rewrite(from: &Path, to: &Path) -> io::Result<Duration> {
    let mut out = BufWriter::new(private().write(true).create(true).truncate(true).open(to)?);
    let lasts = ogg_file::complete(BufReader::new(fs::File::open(from)?), &mut out)?;
    out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
    Ok(lasts)
}

impl CallRecordings for RecordingFolder {
    fn of(&self, person: &PersonId) -> io::Result<Vec<CallRecording>> {
        let mut found = Vec::new();
        for number in self.numbers()? {
            found.extend(self.of_person(person, number)?);
        }
        found.sort_by_key(|recording| std::cmp::Reverse(recording.began));
        Ok(found)
    }

    fn sound(&self, person: &PersonId, number: u32, max_bytes: usize) -> io::Result<Option<Vec<Vec<u8>>>> {
        if self.of_person(person, number)?.is_none() {
            return Ok(None);
        }
        let file = match fs::File::open(self.sound_of(number)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        ogg_file::split(BufReader::new(file), max_bytes).map(Some)
    }

    fn remove(&self, person: &PersonId, number: u32) -> io::Result<bool> {
        let _writing = self.writing();
        let is_theirs = self.of_person(person, number)?.is_some();
        if is_theirs {
            self.remove_files(number)?;
        }
        Ok(is_theirs)
    }

    fn forget(&self, what: &ForgottenCalls) -> io::Result<usize> {
        let _writing = self.writing();
        let mut gone = 0;
        for number in self.numbers()? {
            // What names nobody may be of anybody.
            if self.about(number)?.is_none_or(|about| about.is_forgotten_by(what)) {
                self.remove_files(number)?;
                gone += 1;
            }
        }
        Ok(gone)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Write as _};

    use azera_types::{ChatId, Timestamp};
    use azera_voice_opus::NoteWriter;

    use super::*;

    const SPACE: u64 = 1 << 20;

    fn person(name: &str) -> PersonId {
        PersonId::new(name).unwrap()
    }

    fn about(people: &[&str]) -> About {
        About {
            chat: ChatId::new("parlour").unwrap(),
            realm: Some(RealmId::new("house").unwrap()),
            place: "Parlour".to_owned(),
            began: Timestamp::from_second(1_000).unwrap(),
            milliseconds: 0,
            ended: None,
            people: people.iter().map(|name| (person(name), (*name).to_owned())).collect(),
        }
    }

    fn sound(seconds: usize) -> Vec<u8> {
        let mut file = Vec::new();
        let mut writer = NoteWriter::new(&mut file).unwrap();
        writer.push(&vec![0.25; seconds * 48_000]).unwrap();
        writer.finish().unwrap();
        file
    }

    fn record(folder: &RecordingFolder, people: &[&str], seconds: usize) {
        let new = folder.begin(about(people)).unwrap().unwrap();
        new.file().unwrap().write_all(&sound(seconds)).unwrap();
        assert!(new.finish(Duration::from_secs(seconds as u64)).unwrap());
    }

    fn open() -> (tempfile::TempDir, RecordingFolder) {
        let there = tempfile::tempdir().unwrap();
        let folder = RecordingFolder::open(there.path().join("calls"), SPACE).unwrap();
        (there, folder)
    }

    #[test]
    fn only_people_who_are_in_a_recording_can_see_have_or_remove_it() {
        let (_there, folder) = open();
        record(&folder, &["ann", "bob"], 2);
        let number = folder.of(&person("ann")).unwrap()[0].number;
        assert_eq!(folder.of(&person("bob")).unwrap()[0].duration, Duration::from_secs(2));
        assert_eq!(folder.sound(&person("bob"), number, 1 << 20).unwrap(), Some(vec![sound(2)]));
        let cid = person("cid");
        assert!(folder.of(&cid).unwrap().is_empty());
        assert_eq!(folder.sound(&cid, number, 1 << 20).unwrap(), None);
        assert!(!folder.remove(&cid, number).unwrap());
        assert!(folder.remove(&person("bob"), number).unwrap());
        assert!(folder.of(&person("ann")).unwrap().is_empty());
        assert_eq!(folder.files().unwrap(), Vec::<PathBuf>::new());
    }

    #[test]
    fn what_is_forgotten_goes_also_while_it_is_being_made() {
        let (_there, folder) = open();
        record(&folder, &["ann", "bob"], 2);
        record(&folder, &["bob"], 2);
        let open = folder.begin(about(&["ann"])).unwrap().unwrap();
        let mut file = open.file().unwrap();
        assert_eq!(folder.forget(&ForgottenCalls::Person(person("ann"))).unwrap(), 2);
        file.write_all(&sound(2)).unwrap();
        assert_eq!(open.bytes().unwrap(), None);
        assert!(!open.finish(Duration::from_secs(2)).unwrap(), "it does not come back");
        assert_eq!(folder.of(&person("bob")).unwrap().len(), 1);
        let at = |second| Timestamp::from_second(second).unwrap();
        let span = |from, to| ForgottenCalls::Chat(ChatId::new("parlour").unwrap(), at(from), at(to));
        assert_eq!(folder.forget(&span(1_003, 2_000)).unwrap(), 0, "it was over by then");
        assert_eq!(folder.forget(&span(1_001, 1_001)).unwrap(), 1);
        record(&folder, &["bob"], 2);
        assert_eq!(folder.forget(&ForgottenCalls::Realm(RealmId::new("house").unwrap())).unwrap(), 1);
        assert_eq!(folder.files().unwrap(), Vec::<PathBuf>::new());
    }

    #[test]
    fn the_next_start_completes_what_a_crash_cut_short_and_removes_what_has_no_sound() {
        let (there, folder) = open();
        let whole = sound(5);
        let cut = folder.begin(about(&["ann"])).unwrap().unwrap();
        cut.file().unwrap().write_all(&whole[..whole.len() - 100]).unwrap();
        let empty = folder.begin(about(&["ann"])).unwrap().unwrap();
        empty.file().unwrap().write_all(&whole[..30]).unwrap();
        let torn = folder.begin(about(&["ann"])).unwrap().unwrap();
        torn.file().unwrap().write_all(&whole).unwrap();
        fs::write(folder.named(torn.number, ABOUT), "{\"chat\":").unwrap();
        assert!(folder.of(&person("ann")).unwrap().is_empty(), "nothing of it is whole");
        let folder = RecordingFolder::open(there.path().join("calls"), SPACE).unwrap();
        let found = folder.of(&person("ann")).unwrap();
        assert_eq!(found.len(), 1);
        assert!(found[0].duration >= Duration::from_secs(3), "{:?}", found[0].duration);
        let parts = folder.sound(&person("ann"), found[0].number, 1 << 20).unwrap().unwrap();
        assert!(ogg_file::complete(Cursor::new(&parts[0]), Vec::new()).unwrap() >= Duration::from_secs(3));
        assert_eq!(folder.files().unwrap().len(), 2);
    }

    #[test]
    fn a_recording_with_a_pause_is_forgotten_with_every_time_until_it_ended() {
        let (there, folder) = open();
        let at = |second| Timestamp::from_second(second).unwrap();
        let span = |from, to| ForgottenCalls::Chat(ChatId::new("parlour").unwrap(), at(from), at(to));
        let mut new = folder.begin(about(&["ann"])).unwrap().unwrap();
        // A minute, of which two seconds are no pause.
        new.begun = new.begun.checked_sub(Duration::from_secs(60)).unwrap();
        new.file().unwrap().write_all(&sound(2)).unwrap();
        assert!(new.finish(Duration::from_secs(2)).unwrap());
        let number = folder.of(&person("ann")).unwrap()[0].number;
        assert_eq!(folder.of(&person("ann")).unwrap()[0].duration, Duration::from_secs(2));
        assert_eq!(folder.forget(&span(1_065, 2_000)).unwrap(), 0, "it was over by then");
        // An older version left out the end; then it is when the file was written last.
        let text = fs::read_to_string(folder.named(number, ABOUT)).unwrap();
        let mut old: serde_json::Value = serde_json::from_str(&text).unwrap();
        old.as_object_mut().unwrap().remove("ended").unwrap();
        fs::write(folder.named(number, ABOUT), old.to_string()).unwrap();
        let file = fs::File::options().write(true).open(folder.sound_of(number)).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1_060)).unwrap();
        let folder = RecordingFolder::open(there.path().join("calls"), SPACE).unwrap();
        assert_eq!(folder.forget(&span(1_061, 2_000)).unwrap(), 0, "it was over by then");
        // A file that was written before the recording began tells no end.
        fs::write(folder.named(number, ABOUT), old.to_string()).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        let folder = RecordingFolder::open(there.path().join("calls"), SPACE).unwrap();
        assert_eq!(folder.forget(&span(900, 999)).unwrap(), 0, "it had not begun");
        assert_eq!(folder.forget(&span(1_065, 2_000)).unwrap(), 1);
        // The words after a pause are forgotten, too.
        let mut new = folder.begin(about(&["ann"])).unwrap().unwrap();
        new.begun = new.begun.checked_sub(Duration::from_secs(60)).unwrap();
        new.file().unwrap().write_all(&sound(2)).unwrap();
        assert!(new.finish(Duration::from_secs(2)).unwrap());
        assert_eq!(folder.forget(&span(1_030, 1_040)).unwrap(), 1);
    }

    #[test]
    fn a_recording_that_was_cut_short_ends_when_it_was_written_last() {
        let (there, folder) = open();
        let cut = folder.begin(about(&["ann"])).unwrap().unwrap();
        let mut file = cut.file().unwrap();
        file.write_all(&sound(5)).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1_060)).unwrap();
        let folder = RecordingFolder::open(there.path().join("calls"), SPACE).unwrap();
        let at = |second| Timestamp::from_second(second).unwrap();
        let span = |from, to| ForgottenCalls::Chat(ChatId::new("parlour").unwrap(), at(from), at(to));
        assert_eq!(folder.forget(&span(1_061, 2_000)).unwrap(), 0, "it was over by then");
        assert_eq!(folder.forget(&span(1_050, 2_000)).unwrap(), 1);
    }

    #[test]
    fn a_recording_that_never_began_leaves_no_names() {
        let (_there, folder) = open();
        drop(folder.begin(about(&["ann"])).unwrap().unwrap());
        assert_eq!(folder.files().unwrap(), Vec::<PathBuf>::new());
    }

    #[test]
    fn a_realm_that_has_enough_leaves_room_for_others() {
        let (_there, folder) = open();
        let folder = folder.with_most_per_realm(20_000);
        let size = sound(3).len() as u64;
        record(&folder, &["ann"], 3);
        let next = folder.begin(about(&["ann"])).unwrap().unwrap();
        assert!(next.max_bytes() <= 20_000 - size, "{} of {size}", next.max_bytes());
        drop(next);
        while let Some(new) = folder.begin(about(&["ann"])).unwrap() {
            new.file().unwrap().write_all(&sound(3)).unwrap();
            assert!(new.finish(Duration::from_secs(3)).unwrap());
        }
        let elsewhere = About { realm: Some(RealmId::new("hut").unwrap()), ..about(&["bob"]) };
        assert_eq!(folder.begin(elsewhere).unwrap().unwrap().max_bytes(), 20_000);
    }

    #[test]
    fn a_full_folder_takes_no_more_and_short_sound_is_not_kept() {
        let (_there, mut folder) = open();
        let short = folder.begin(about(&["ann"])).unwrap().unwrap();
        short.file().unwrap().write_all(&sound(1)).unwrap();
        assert!(!short.finish(Duration::from_millis(900)).unwrap());
        assert_eq!(folder.files().unwrap(), Vec::<PathBuf>::new());
        record(&folder, &["ann"], 2);
        folder.max_bytes = 100;
        assert!(folder.begin(about(&["ann"])).unwrap().is_none());
        assert!(!format!("{:?}{:?}", about(&["ann"]), folder.of(&person("ann")).unwrap()).contains("ann"));
    }
}
