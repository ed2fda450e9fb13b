//! What is learned once for each embedding model, and kept beside the models: telling moods and tags.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use azera_affect::Classifiers;
use azera_config::Config;
use azera_model_api::{Embedder, Priority, Purpose};
use tempfile::NamedTempFile;

/// Examples embedded at a time.
const BATCH: usize = 16;

/// The senses for an embedding model: those that were kept, or else learned now, which takes most of a minute of a core.
/// `progress` is told how many examples of how many are embedded.
pub async fn classifiers(
    config: &Config,
    embedder: &Arc<dyn Embedder>,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> anyhow::Result<Arc<Classifiers>> {
    let file = config.models_dir()?.join("senses").join(format!("{}.json", Classifiers::name_for(&embedder.info().id)));
    if let Some(retained) = load_stored(file.clone()).await? {
        return Ok(Arc::new(retained));
    }
    let examples = Classifiers::examples()?;
    let mut vectors = Vec::with_capacity(examples.len());
    for batch in examples.chunks(BATCH) {
        vectors.extend(embedder.embed(batch.to_vec(), Purpose::Document, Priority::Background).await?);
        progress(vectors.len(), examples.len());
    }
    let learned = tokio::task::spawn_blocking(move || -> anyhow::Result<Classifiers> {
        let learned = Classifiers::learn(&vectors)?;
        // Where it cannot be kept it is learned again at the next start.
        if let Err(error) = keep(&file, &learned) {
            tracing::warn!(error = format!("{error:#}"), "what was learned of moods and tags is not kept");
        }
        Ok(learned)
    });
    Ok(Arc::new(learned.await??))
}

async fn load_stored(file: PathBuf) -> anyhow::Result<Option<Classifiers>> {
    let read = tokio::task::spawn_blocking(move || {
        let json = std::fs::read(&file).ok()?;
        Classifiers::from_json(&json)
            .inspect_err(|error| tracing::warn!(file = %file.display(), %error, "it is learned anew"))
            .ok()
    });
    Ok(read.await?)
}

fn keep(file: &Path, learned: &Classifiers) -> anyhow::Result<()> {
    let dir = file.parent().context("it has no folder")?;
    std::fs::create_dir_all(dir).with_context(|| format!("making the folder {}", dir.display()))?;
    let written = NamedTempFile::new_in(dir).with_context(|| format!("writing into {}", dir.display()))?;
    std::fs::write(written.path(), learned.to_json()?)?;
    // Whole or not at all: another Azera may read it at this moment.
    written.persist(file).with_context(|| format!("writing {}", file.display()))?;
    Ok(())
}
