//! `azera hearth measure`: measures a LoRA.

use std::path::Path;

use anyhow::Context;
use azera_model_llama::LlamaVocabulary;
use azera_model_training::{BaseModel, ComputeDevice, Lora, TokenizedExample, mean_loss};
use serde_json::{Value, json};

use super::examples;
use crate::cli::Measure;

/// Tokens of plain text in one window.
const WINDOW: usize = 512;

/// Tokens computed at once.
const PASS_TOKENS: usize = 1_024;

/// Returns the loss on examples and the perplexity on text, without and with the LoRA.
pub fn measure(model: &Path, device: &ComputeDevice, options: &Measure) -> anyhow::Result<Value> {
    let reader = LlamaVocabulary::open(model)?;
    let base = BaseModel::open_at(model, device)?;
    let lora = Lora::read(&options.lora, &base)?;
    let mut report = serde_json::Map::new();
    if let Some(path) = &options.lessons {
        let examples = examples::read(path, &reader, options.limit, false)?;
        let loss = |lora| mean_loss(&base, lora, &examples, PASS_TOKENS, options.threads);
        let ((without, tokens), (with, _)) = (loss(None)?, loss(Some(&lora))?);
        report.insert("lessons".into(), json!({"tokens": tokens, "loss_without": without, "loss_with": with}));
    }
    if let Some(path) = &options.text {
        let text = std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
        let tokens = reader.text(&text)?;
        let windows = tokens.chunks(WINDOW).filter(|window| window.len() > 1);
        let examples: Vec<TokenizedExample> =
            windows.map(|window| TokenizedExample::from_token(1, window.to_vec())).collect();
        let perplexity = |lora| mean_loss(&base, lora, &examples, PASS_TOKENS, options.threads);
        let ((without, tokens), (with, _)) = (perplexity(None)?, perplexity(Some(&lora))?);
        let share = (with - without).exp();
        report.insert(
            "text".into(),
            json!({"tokens": tokens, "perplexity_without": without.exp(), "perplexity_with": with.exp(), "ratio": share}),
        );
    }
    Ok(Value::Object(report))
}
