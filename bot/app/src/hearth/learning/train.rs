//! `azera hearth train`: trains a LoRA on a file of examples.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use azera_model_llama::LlamaVocabulary;
use azera_model_training::{BaseModel, ComputeDevice, Lora, NextStep, Progress, Recipe, Training};
use indicatif::{HumanDuration, ProgressBar, ProgressStyle};
use tokio_util::sync::CancellationToken;

use super::examples;
use crate::cli::Train;
use crate::run::cancel_on_signal;

/// Steps between two checkpoints.
const CHECKPOINT_STEPS: usize = 25;

/// Steps between two printed lines, if there is no progress bar.
const LINE_STEPS: usize = 10;

/// Extension of the checkpoint, beside the LoRA.
const CHECKPOINT: &str = "checkpoint";

/// Trains until the last step, Ctrl-C or SIGTERM.
pub async fn train(model: PathBuf, device: ComputeDevice, options: Train) -> anyhow::Result<ExitCode> {
    let stop = CancellationToken::new();
    cancel_on_signal(stop.clone(), || eprintln!("pausing; the second time, it ends at once"), || {})?;
    tokio::task::spawn_blocking(move || learn(&model, &device, &options, &stop)).await?
}

fn learn(model: &Path, device: &ComputeDevice, options: &Train, stop: &CancellationToken) -> anyhow::Result<ExitCode> {
    let out = options.out.as_ref().context("--out FILE says where to write the LoRA")?;
    let checkpoint = out.with_extension(CHECKPOINT);
    anyhow::ensure!(*out != checkpoint, "{} would be its own checkpoint: give it another ending", out.display());
    let reader = LlamaVocabulary::open(model)?;
    let examples = examples::read(&options.lessons, &reader, usize::MAX, options.keep_prose)?;
    drop(reader);
    let base = BaseModel::open_at(model, device)?;
    eprintln!("training with {device}");
    let read = |path: &PathBuf| Lora::read(path, &base);
    let from = options.from.as_ref().map(read).transpose()?;
    let beside: Vec<Lora> = options.beside.iter().map(read).collect::<Result<_, _>>()?;
    let recipe = Recipe {
        rank: options.rank,
        alpha: 2.0 * options.rank as f32,
        seed: options.seed,
        steps: options.steps,
        batch: options.batch,
        length_power: options.length_power,
        warm_up: (options.steps / 12).max(1),
        rate: options.rate,
        pass_tokens: options.pass_tokens,
        ..Recipe::default()
    };
    let mut training = if checkpoint.exists() && !options.anew {
        let training = Training::resume(&base, &beside, &examples, &checkpoint, options.threads)
            .context("going on where it was left off; --anew begins again instead")?;
        if *training.recipe() != recipe {
            anyhow::bail!("{} follows another recipe: --anew begins again", checkpoint.display());
        }
        if training.began_with() != from.as_ref().map_or_else(String::new, Lora::identity) {
            anyhow::bail!("{} did not begin with what --from says: --anew begins again", checkpoint.display());
        }
        eprintln!("going on after step {}", training.step());
        training
    } else {
        match from {
            Some(from) => Training::from(&base, &examples, recipe, from, options.threads)?,
            None => Training::new(&base, &beside, &examples, recipe, options.threads)?,
        }
    };
    // Write a checkpoint first, so that a path that cannot be written fails now and not after an hour.
    training.save(&checkpoint)?;
    let bar = bar();
    let mut saved = Ok(());
    let finished = training.run(&|| stop.is_cancelled(), &mut |training, now| {
        show(&bar, now);
        if now.step % CHECKPOINT_STEPS == 0 {
            saved = training.save(&checkpoint);
        }
        if saved.is_err() { NextStep::Pause } else { NextStep::GoOn }
    })?;
    bar.finish_and_clear();
    saved?;
    training.save(&checkpoint)?;
    if !finished {
        println!("paused after step {}; the same command goes on", training.step());
        return Ok(ExitCode::SUCCESS);
    }
    let recipe = serde_json::to_string(training.recipe())?;
    let mut notes = vec![
        ("general.base_model.sha256", base.sha256().to_owned()),
        ("azera.hearth.recipe", recipe),
        ("azera.hearth.lessons_sha256", training.examples_sha256().to_owned()),
    ];
    if !training.began_with().is_empty() {
        notes.push(("azera.hearth.began_with_sha256", training.began_with().to_owned()));
    }
    if !beside.is_empty() {
        let all: Vec<String> = beside.iter().map(Lora::identity).collect();
        notes.push(("azera.hearth.beside_sha256", all.join(" ")));
    }
    training.lora().clone().scaled(options.scale).write(out, &notes)?;
    std::fs::remove_file(&checkpoint).with_context(|| format!("removing {}", checkpoint.display()))?;
    println!("{}", out.display());
    Ok(ExitCode::SUCCESS)
}

/// Returns the progress bar that [`show`] moves.
pub fn bar() -> ProgressBar {
    let bar = ProgressBar::no_length();
    if let Ok(style) = ProgressStyle::with_template("  {bar:30} {pos}/{len} {msg}") {
        bar.set_style(style);
    }
    bar
}

/// Shows the progress of a training.
pub fn show(bar: &ProgressBar, now: &Progress) {
    let said = format!("loss {:.3}, {} left", now.mean_loss, HumanDuration(now.left));
    bar.set_message(said.clone());
    bar.set_length(now.steps as u64);
    bar.set_position(now.step as u64);
    if bar.is_hidden() && now.step.is_multiple_of(LINE_STEPS) {
        eprintln!(
            "step {} of {}: {said}, {} tokens, {:.1} s",
            now.step,
            now.steps,
            now.tokens,
            now.elapsed.as_secs_f64()
        );
    }
}
