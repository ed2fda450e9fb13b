//! `azera hearth measure`.

use std::path::Path;

use anyhow::Context;
use azera_hearth::{Adapter, Base, Example, Place, mean_loss};
use azera_llama::LlamaReader;
use serde_json::{Value, json};

use super::lessons;
use crate::cli::Measure;

/// Tokens of plain text read as one.
const WINDOW: usize = 512;

/// Tokens computed at once.
const PASS_TOKENS: usize = 1_024;

/// Loss on lessons, and perplexity on text; without and with the adapter.
pub fn measure(model: &Path, place: &Place, options: &Measure) -> anyhow::Result<Value> {
    let reader = LlamaReader::open(model)?;
    let base = Base::open_at(model, place)?;
    let adapter = Adapter::read(&options.adapter, &base)?;
    let mut report = serde_json::Map::new();
    if let Some(path) = &options.lessons {
        let examples = lessons::read(path, &reader, options.limit, false)?;
        let loss = |adapter| mean_loss(&base, adapter, &examples, PASS_TOKENS, options.threads);
        let ((without, tokens), (with, _)) = (loss(None)?, loss(Some(&adapter))?);
        report.insert("lessons".into(), json!({"tokens": tokens, "loss_without": without, "loss_with": with}));
    }
    if let Some(path) = &options.text {
        let text = std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
        let tokens = reader.text(&text)?;
        let windows = tokens.chunks(WINDOW).filter(|window| window.len() > 1);
        let examples: Vec<Example> = windows.map(|window| Example::from_token(1, window.to_vec())).collect();
        let perplexity = |adapter| mean_loss(&base, adapter, &examples, PASS_TOKENS, options.threads);
        let ((without, tokens), (with, _)) = (perplexity(None)?, perplexity(Some(&adapter))?);
        let share = (with - without).exp();
        report.insert(
            "text".into(),
            json!({"tokens": tokens, "perplexity_without": without.exp(), "perplexity_with": with.exp(), "ratio": share}),
        );
    }
    Ok(Value::Object(report))
}
