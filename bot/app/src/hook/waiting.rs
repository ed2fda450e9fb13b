//! Transcripts that wait for the Azera that runs: a hook cannot open the data folder beside it, so it leaves a note, and
//! the running Azera imports the transcript.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use azera_config::Config;
use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tempfile::NamedTempFile;
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

/// Time between two looks into the folder.
const LOOK_EVERY: Duration = Duration::from_secs(30);

/// Most notes that wait. One note stands for a session, however often its hook is called.
const MAX_NOTES: usize = 1_000;

/// A transcript to import, and whose it is.
#[derive(Debug, Serialize, Deserialize)]
pub struct Waiting {
    pub path: PathBuf,
    pub name: String,
    pub persona: Option<String>,
    pub project: String,
}

/// Leaves a note for the running Azera. A later note about the same transcript replaces it.
pub fn put(data: &Path, waiting: &Waiting) -> anyhow::Result<()> {
    let folder = data.join(FOLDER);
    let writing = || format!("writing into {}", folder.display());
    fs::create_dir_all(&folder).with_context(writing)?;
    let json = serde_json::to_vec(waiting)?;
    let note = folder.join(HEXLOWER.encode(&Sha256::digest(&json))).with_extension(NOTE);
    // Only its owner may read the file.
    let written = NamedTempFile::new_in(&folder).with_context(writing)?;
    fs::write(written.path(), json).with_context(writing)?;
    written.persist(note).with_context(writing)?;
    Ok(())
}

/// Imports what waits, again and again until `stop` is cancelled.
pub async fn take_in_waiting(app: &App, config: &Config, stop: &CancellationToken) {
    loop {
        take_in_all(app, config, stop).await;
        tokio::select! {
            () = stop.cancelled() => return,
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
        if let Err(error) = take_in_note(app, config, &note, stop).await {
            tracing::warn!("cannot import a transcript: {error:#}");
        }
        if stop.is_cancelled() {
            return;
        }
    }
}

/// Imports the transcript of a note, again if the hook leaves the note anew meanwhile. Puts the note back if it cannot be
/// imported, or if `stop` is cancelled first.
async fn take_in_note(app: &App, config: &Config, note: &Path, stop: &CancellationToken) -> anyhow::Result<()> {
    let taken = note.with_extension(TAKEN);
    while note.exists() {
        // A note that the hook leaves from here on is about what the transcript got since.
        fs::rename(note, &taken)?;
        let imported = take_in(app, config, &taken, stop).await;
        if imported.is_err() || stop.is_cancelled() {
            // A note of the same name says the same.
            fs::rename(&taken, note)?;
            return imported;
        }
        fs::remove_file(&taken)?;
    }
    Ok(())
}

/// Returns the files of the folder with this ending. Without a folder there are none.
fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut files: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|end| end == ending)).take(MAX_NOTES).collect();
    files.sort();
    files
}

async fn take_in(app: &App, config: &Config, note: &Path, stop: &CancellationToken) -> anyhow::Result<()> {
    // Without a note that can be read, or without its transcript, there is nothing to try again.
    let Ok(waiting) = serde_json::from_slice::<Waiting>(&fs::read(note)?) else {
        tracing::warn!("a note about a transcript is damaged; the transcript is not imported");
        return Ok(());
    };
    if !waiting.path.exists() {
        tracing::warn!("a transcript is gone before it was imported");
        return Ok(());
    }
    let viewer = Viewer { name: waiting.name, persona: waiting.persona };
    let target = Target::new(config, &viewer, Some(&waiting.project))?;
    target.check(&app.memory)?;
    super::import(app, config, waiting.path, &target, stop).await?;
    app.engine.index_soon();
    Ok(())
}
