//! The classifiers for moods, tags and salience. They are trained once for each embedding model and saved beside the
//! models.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use azera_affect::Classifiers;
use azera_config::Config;
use azera_model_api::{Embedder, Priority, Purpose};

/// Examples embedded at a time.
const BATCH: usize = 16;

/// Returns the classifiers for an embedding model. Loads the saved ones, or trains them, which takes most of a minute
/// on one core. `progress` receives the number of embedded examples and their total.
pub async fn classifiers(
    config: &Config,
    embedder: &Arc<dyn Embedder>,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> anyhow::Result<Arc<Classifiers>> {
    let file = config.models_dir()?.join("senses").join(format!("{}.json", Classifiers::name_for(&embedder.info().id)));
    if let Some(saved) = load_saved(file.clone()).await? {
        return Ok(Arc::new(saved));
    }
    let examples = Classifiers::examples()?;
    let mut vectors = Vec::with_capacity(examples.len());
    for batch in examples.chunks(BATCH) {
        vectors.extend(embedder.embed(batch.to_vec(), Purpose::Document, Priority::Background).await?);
        progress(vectors.len(), examples.len());
    }
    let learned = tokio::task::spawn_blocking(move || -> anyhow::Result<Classifiers> {
        let learned = Classifiers::learn(&vectors)?;
        // If saving fails, the next start trains them again.
        if let Err(error) = save(&file, &learned) {
            tracing::warn!(error = format!("{error:#}"), "cannot save the classifiers for moods and tags");
        }
        Ok(learned)
    });
    Ok(Arc::new(learned.await??))
}

async fn load_saved(file: PathBuf) -> anyhow::Result<Option<Classifiers>> {
    let read = tokio::task::spawn_blocking(move || {
        let json = std::fs::read(&file).ok()?;
        Classifiers::from_json(&json)
            .inspect_err(|error| {
                tracing::warn!(file = %file.display(), %error, "cannot read the saved classifiers; training them again");
            })
            .ok()
    });
    Ok(read.await?)
}

fn save(file: &Path, learned: &Classifiers) -> anyhow::Result<()> {
    let dir = file.parent().context("it has no folder")?;
    std::fs::create_dir_all(dir).with_context(|| format!("making the folder {}", dir.display()))?;
    // Another process may write it at this moment.
    let staged = file.with_extension(format!("{}.new", std::process::id()));
    azera_files::write_through(&staged, file, &learned.to_json()?)
        .with_context(|| format!("writing {}", file.display()))
}
