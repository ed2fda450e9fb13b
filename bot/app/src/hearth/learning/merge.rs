//! `azera hearth merge`.

use std::path::Path;

use anyhow::Context;
use azera_hearth::{Adapter, Base};
use serde_json::{Value, json};

use crate::cli::Merge;

/// Writes the mean of what adapters do; gives what is left of it at its rank.
pub fn merge(model: &Path, options: &Merge) -> anyhow::Result<Value> {
    let base = Base::open(model)?;
    let read = |path| Adapter::read(path, &base).with_context(|| format!("reading {}", Path::display(path)));
    let adapters: Vec<Adapter> = options.adapters.iter().map(|path| read(path)).collect::<Result<_, _>>()?;
    let merged = Adapter::mean(&adapters)?.compressed(options.rank, options.threads)?;
    let identities: Vec<String> = adapters.iter().map(Adapter::identity).collect();
    let notes = [
        ("general.base_model.sha256", base.sha256().to_owned()),
        ("azera.hearth.mean_of_sha256", identities.join(" ")),
    ];
    let adapter = merged.adapter.scaled(options.scale);
    adapter.write(&options.out, &notes).with_context(|| format!("writing {}", options.out.display()))?;
    Ok(json!({"adapters": adapters.len(), "rank": adapter.rank(), "kept": merged.kept}))
}
