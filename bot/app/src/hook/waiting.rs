//! Transcripts that wait for the Azera that runs: a hook cannot open the data folder beside it, so it leaves a note, and
//! the running Azera imports the transcript. The note outlives a crash and a failed import.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use anyhow::Context;
use azera_config::Config;
use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tokio_util::sync::CancellationToken;

use crate::bootstrap::App;
use crate::cli::Viewer;
use crate::import::Target;

/// The folder of notes in the data folder.
const FOLDER: &str = "transcripts";

/// The ending of a note that waits.
const NOTE: &str = "json";

/// The ending of a note whose transcript is being imported.
const TAKEN: &str = "taken";

/// The ending of a note that was given up, so that `azera doctor` can name it.
const FAILED: &str = "failed";

/// How often a transcript is tried: every 30 seconds, for an hour. Its session's next hook begins anew. A full disk does not
/// count.
const MAX_TRIES: u32 = 120;

/// Time between two looks into the folder.
const LOOK_EVERY: Duration = Duration::from_secs(30);

/// Most notes that wait. One note stands for a session, however often its hook is called.
const MAX_NOTES: usize = 1_000;

/// A transcript to import, and whose it is.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Waiting {
    pub path: PathBuf,
    pub name: String,
    pub persona: Option<String>,
    pub project: String,
    /// Names of other projects that may know the session. Notes of older versions name none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub around: Vec<String>,
    /// How often it could not be imported. The hook leaves it out.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub tries: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(tries: &u32) -> bool {
    *tries == 0
}

/// Leaves a note for the running Azera. A later note about the same transcript replaces it.
pub fn put(data: &Path, waiting: &Waiting) -> anyhow::Result<()> {
    let folder = data.join(FOLDER);
    fs::create_dir_all(&folder).with_context(|| format!("making the folder {}", folder.display()))?;
    write(&folder.join(name_of(waiting)?).with_extension(NOTE), waiting)
}

/// Returns the name of a note. The names of other projects do not count: a note of an older version, which has none of them,
/// is replaced by a newer one.
fn name_of(waiting: &Waiting) -> anyhow::Result<String> {
    let named = Waiting { around: Vec::new(), ..waiting.clone() };
    Ok(HEXLOWER.encode(&Sha256::digest(serde_json::to_vec(&named)?)))
}

/// Returns when a file was last changed; `None` if it is gone.
fn changed_at(file: &Path) -> Option<SystemTime> {
    fs::metadata(file).and_then(|file| file.modified()).ok()
}

/// Writes a note. One that is left or tried again keeps its time, and so its turn.
fn write(note: &Path, waiting: &Waiting) -> anyhow::Result<()> {
    let left_at = changed_at(note).or_else(|| changed_at(&note.with_extension(TAKEN)));
    // Two hooks may write it at once.
    let staged = note.with_extension(format!("{}.new", std::process::id()));
    azera_files::write_through(&staged, note, &serde_json::to_vec(waiting)?)
        .with_context(|| format!("writing {}", note.display()))?;
    if let Some(left_at) = left_at {
        // The running Azera may have taken it already. Then its turn has come.
        File::options().write(true).open(note).and_then(|note| note.set_modified(left_at)).ok();
    }
    Ok(())
}

/// Returns the transcripts that were given up.
pub fn given_up(data: &Path) -> Vec<PathBuf> {
    let notes = files(&data.join(FOLDER), FAILED).into_iter();
    let paths = notes.filter_map(|note| Some(serde_json::from_slice::<Waiting>(&fs::read(note).ok()?).ok()?.path));
    // Of a transcript that is gone nothing can be imported.
    paths.filter(|path| path.exists()).collect()
}

/// Returns how many transcripts wait to be imported.
pub fn count_waiting(data: &Path) -> usize {
    files(&data.join(FOLDER), NOTE).len()
}

/// Imports what waits, again and again until `stop` is cancelled: at once where a hook says so, and else every
/// [`LOOK_EVERY`].
pub async fn take_in_waiting(app: &App, config: &Config, stop: &CancellationToken) {
    loop {
        take_in_all(app, config, stop).await;
        tokio::select! {
            () = stop.cancelled() => return,
            () = app.transcripts.notified() => {}
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
    }
}

/// Imports what waits now.
pub async fn take_in_all(app: &App, config: &Config, stop: &CancellationToken) {
    let folder = app.data.join(FOLDER);
    // What a crash left unfinished. Only one process holds the data folder.
    for taken in files(&folder, TAKEN) {
        if let Err(error) = fs::rename(&taken, taken.with_extension(NOTE)) {
            tracing::warn!(%error, "cannot put a note about a transcript back");
        }
    }
    for note in files(&folder, NOTE) {
        let import = |taken| take_in(app, config, taken, stop);
        if let Err(error) = take_in_note(&note, stop, import).await {
            tracing::warn!("cannot look after a transcript that waits: {error:#}");
        }
        if stop.is_cancelled() {
            return;
        }
    }
}

/// Imports the transcript of a note, again if the hook leaves the note anew meanwhile. `import` returns false if there was
/// nothing to import. Puts the note back if it cannot be
/// imported, or if `stop` is cancelled first, and gives it up after [`MAX_TRIES`].
async fn take_in_note<F: Future<Output = anyhow::Result<bool>>>(
    note: &Path,
    stop: &CancellationToken,
    import: impl Fn(PathBuf) -> F,
) -> anyhow::Result<()> {
    let taken = note.with_extension(TAKEN);
    while note.exists() {
        // A note that the hook leaves from here on is about what the transcript got since.
        fs::rename(note, &taken)?;
        let is_imported = match import(taken.clone()).await {
            Ok(is_imported) => is_imported,
            Err(error) => return failed(note, &taken, &error),
        };
        if stop.is_cancelled() {
            // A note of the same name is about the same transcript and project.
            fs::rename(&taken, note)?;
            return Ok(());
        }
        fs::remove_file(&taken)?;
        waits_for_room().remove(note);
        // It may have been given up before.
        fs::remove_file(note.with_extension(FAILED)).ok();
        if is_imported {
            tracing::info!("the transcript that a hook left is imported");
        }
    }
    Ok(())
}

/// Returns the notes whose transcripts wait for room, so that the log names each of them once.
fn waits_for_room() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    static WAITS: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    WAITS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns true if an error only says that the disk is full. Then a transcript waits for room, however long that takes.
fn is_full(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let memory = cause.downcast_ref::<azera_memory::Error>();
        let io = cause.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
        matches!(memory, Some(azera_memory::Error::Full { .. }))
            || matches!(io, Some(ErrorKind::StorageFull | ErrorKind::QuotaExceeded))
    })
}

/// Counts a try that failed. The last one gives the transcript up, and says what to do.
fn failed(note: &Path, taken: &Path, error: &anyhow::Error) -> anyhow::Result<()> {
    if is_full(error) {
        if waits_for_room().insert(note.to_owned()) {
            let path = fs::read(taken).ok().and_then(|note| serde_json::from_slice::<Waiting>(&note).ok());
            let path = path.map(|waiting| waiting.path).unwrap_or_default();
            tracing::warn!(
                "{} waits until there is room on the disk, and for larger files: {error:#}. `azera doctor` counts what waits",
                path.display()
            );
        }
        // Renaming and removing need no room. A newer note of the hook says more.
        if note.exists() {
            return Ok(fs::remove_file(taken)?);
        }
        return Ok(fs::rename(taken, note)?);
    }
    let mut waiting: Waiting = serde_json::from_slice(&fs::read(taken)?)?;
    waiting.tries += 1;
    let (path, tries) = (waiting.path.display(), waiting.tries);
    if tries >= MAX_TRIES {
        tracing::error!(
            tries,
            "cannot import {path}, and gives it up: {error:#}. `azera import` imports it by hand; its session's next hook \
             tries again"
        );
        write(&note.with_extension(FAILED), &waiting)?;
    } else {
        // Few lines of the log say as much as many.
        if tries.is_power_of_two() {
            tracing::warn!(tries, "cannot import {path}, and tries again: {error:#}");
        }
        // A newer note of the hook counts anew.
        if !note.exists() {
            write(note, &waiting)?;
        }
    }
    Ok(fs::remove_file(taken)?)
}

/// Returns the files of the folder with this ending, the oldest first: the session's first stop knows best in which project
/// it began. Without a folder there are none.
fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut files: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|end| end == ending)).take(MAX_NOTES).collect();
    files.sort_by_cached_key(|path| (changed_at(path), path.clone()));
    files
}

/// Imports the transcript of a note. Returns false without a note that can be read, or without its transcript: there is
/// nothing to try again.
async fn take_in(app: &App, config: &Config, note: PathBuf, stop: &CancellationToken) -> anyhow::Result<bool> {
    let Ok(waiting) = serde_json::from_slice::<Waiting>(&fs::read(note)?) else {
        tracing::warn!("a note about a transcript is damaged; the transcript is not imported");
        return Ok(false);
    };
    if !waiting.path.exists() {
        tracing::warn!("a transcript is gone before it was imported");
        return Ok(false);
    }
    let viewer = Viewer { name: waiting.name, persona: waiting.persona };
    let target = Target::new(config, &viewer, Some(&waiting.project))?;
    target.check(&app.memory)?;
    super::import(app, config, waiting.path, target, waiting.around, stop).await?;
    app.engine.index_soon();
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(folder: &Path) -> (PathBuf, PathBuf) {
        let note = folder.join("a").with_extension(NOTE);
        let path = folder.join("session.jsonl");
        fs::write(&path, "").unwrap();
        let (name, project, around) = ("ann".to_owned(), "boat".to_owned(), Vec::new());
        let waiting = Waiting { path, name, persona: None, project, around, tries: 0 };
        write(&note, &waiting).unwrap();
        (note.clone(), note.with_extension(TAKEN))
    }

    /// Lets imports fail so often; returns true if the transcript still waits.
    fn waits_after(tries: u32, error: impl Fn() -> anyhow::Error) -> bool {
        let folder = tempfile::tempdir().unwrap();
        let (note, taken) = note(folder.path());
        for _ in 0..tries {
            fs::rename(&note, &taken).unwrap();
            failed(&note, &taken, &error()).unwrap();
            if !note.exists() {
                return false;
            }
        }
        !note.with_extension(FAILED).exists() && !taken.exists()
    }

    #[test]
    fn a_note_that_the_hook_left_meanwhile_outlives_a_full_disk_and_is_counted() {
        let data = tempfile::tempdir().unwrap();
        let folder = data.path().join(FOLDER);
        fs::create_dir(&folder).unwrap();
        let (note, taken) = note(&folder);
        fs::rename(&note, &taken).unwrap();
        fs::write(&note, "newer").unwrap();
        failed(&note, &taken, &azera_memory::Error::Full { what: "writing" }.into()).unwrap();
        assert_eq!((fs::read_to_string(&note).unwrap().as_str(), taken.exists()), ("newer", false));
        assert_eq!(count_waiting(data.path()), 1);
        assert!(!waits_for_room().insert(note.clone()), "the log names it once");
        assert!(waits_for_room().remove(&note));
    }

    #[test]
    fn notes_are_taken_in_the_order_in_which_they_were_left() {
        let folder = tempfile::tempdir().unwrap();
        let (newest, _) = note(folder.path());
        let waiting: Waiting = serde_json::from_slice(&fs::read(&newest).unwrap()).unwrap();
        let left = |name: &str, second: u64| {
            let note = folder.path().join(name).with_extension(NOTE);
            write(&note, &waiting).unwrap();
            let times = fs::FileTimes::new().set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(second));
            File::options().write(true).open(&note).unwrap().set_times(times).unwrap();
            note
        };
        let (second, first, third) = (left("b", 1), left("d", 0), left("c", 1));
        let in_order = [first.clone(), second, third, newest];
        assert_eq!(files(folder.path(), NOTE), in_order);
        write(&first, &waiting).unwrap();
        assert_eq!(files(folder.path(), NOTE), in_order, "a later stop keeps the turn of the note");
        fs::rename(&first, first.with_extension(TAKEN)).unwrap();
        failed(&first, &first.with_extension(TAKEN), &anyhow::anyhow!("it is locked")).unwrap();
        assert_eq!(files(folder.path(), NOTE), in_order, "so does another try");
    }

    /// Otherwise a note that an older version gave up would outlive the import of its transcript.
    #[test]
    fn a_note_has_the_name_that_older_versions_gave_it() {
        let path = PathBuf::from("/home/ann/session.jsonl");
        let (name, project) = ("ann".to_owned(), "boat".to_owned());
        let old = Waiting { path, name, persona: None, project, around: Vec::new(), tries: 0 };
        let new = Waiting { around: vec!["sea".into()], ..old.clone() };
        for waiting in [old, new] {
            assert_eq!(name_of(&waiting).unwrap(), "caeed9dfb08021fb1c09705a03d55d7e1284b81aed624118287a4919f8eadb85");
        }
    }

    /// The session goes on while its beginning is being imported.
    #[tokio::test]
    async fn what_a_session_gets_during_its_import_is_imported_too() {
        let folder = tempfile::tempdir().unwrap();
        let (note, taken) = note(folder.path());
        let read: Mutex<Vec<String>> = Mutex::default();
        let (left, is_taken, texts) = (&note, &taken, &read);
        let import = move |path: PathBuf| async move {
            assert!(&path == is_taken && !left.exists(), "a note of the hook does not meet the one that is taken");
            let waiting: Waiting = serde_json::from_slice(&fs::read(&path)?)?;
            texts.lock().unwrap().push(fs::read_to_string(&waiting.path)?);
            if texts.lock().unwrap().len() == 1 {
                fs::write(&waiting.path, "more")?;
                write(left, &waiting)?;
            }
            anyhow::Ok(true)
        };
        take_in_note(&note, &CancellationToken::new(), import).await.unwrap();
        assert_eq!(*read.lock().unwrap(), ["", "more"]);
        assert!(!note.exists() && !taken.exists(), "nothing waits");
    }

    #[test]
    fn a_transcript_waits_for_room_on_the_disk_and_for_nothing_else_without_end() {
        let full = || anyhow::Error::from(azera_memory::Error::Full { what: "writing" }).context("importing");
        let no_room = || anyhow::Error::from(std::io::Error::from(ErrorKind::StorageFull)).context("importing");
        assert!(waits_after(MAX_TRIES * 3, full) && waits_after(MAX_TRIES * 3, no_room));
        assert!(waits_after(MAX_TRIES - 1, || anyhow::anyhow!("it is damaged")));
        assert!(!waits_after(MAX_TRIES, || anyhow::anyhow!("it is damaged")));
        assert!(!waits_after(MAX_TRIES, || anyhow::Error::from(std::io::Error::from(ErrorKind::NotFound))));
    }
}
