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
    let note = folder.join(format!("{}.json", HEXLOWER.encode(&Sha256::digest(&json))));
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
    for note in notes(&app.data.join(FOLDER)) {
        if let Err(error) = take_in(app, config, &note, stop).await {
            tracing::warn!("cannot import a transcript: {error:#}");
        }
        if stop.is_cancelled() {
            return;
        }
        // The hook leaves another note when the session goes on.
        if let Err(error) = fs::remove_file(&note) {
            tracing::warn!(%error, "cannot remove the note about a transcript");
        }
    }
}

/// Returns the notes that are there. Without a folder there are none.
fn notes(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut notes: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|end| end == "json")).take(MAX_NOTES).collect();
    notes.sort();
    notes
}

async fn take_in(app: &App, config: &Config, note: &Path, stop: &CancellationToken) -> anyhow::Result<()> {
    let waiting: Waiting = serde_json::from_slice(&fs::read(note)?).context("the note cannot be read")?;
    let viewer = Viewer { name: waiting.name, persona: waiting.persona };
    let target = Target::new(config, &viewer, Some(&waiting.project))?;
    target.check(&app.memory)?;
    super::import(app, config, waiting.path, &target, stop).await?;
    app.engine.index_soon();
    Ok(())
}
