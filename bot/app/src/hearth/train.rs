//! `azera hearth train`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use azera_hearth::{Adapter, Base, Progress, Recipe, Then, Training};
use azera_llama::LlamaReader;
use indicatif::{HumanDuration, ProgressBar, ProgressStyle};

use super::lessons;
use crate::cli::Train;

/// Steps after which the checkpoint is written anew.
const CHECKPOINT_STEPS: usize = 25;

/// Steps after which a line is printed where nobody watches a bar.
const LINE_STEPS: usize = 10;

/// Trains until the last step or Ctrl-C.
pub async fn train(model: PathBuf, options: Train) -> anyhow::Result<ExitCode> {
    let stop = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&stop);
    tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            asked.store(true, Ordering::Relaxed);
        }
    });
    tokio::task::spawn_blocking(move || learn(&model, &options, &stop)).await?
}

fn learn(model: &Path, options: &Train, stop: &AtomicBool) -> anyhow::Result<ExitCode> {
    let reader = LlamaReader::open(model)?;
    let examples = lessons::read(&options.lessons, &reader, usize::MAX)?;
    drop(reader);
    let base = Base::open(model)?;
    let out = options.out.as_ref().context("--out FILE says where the adapter is to be written")?;
    let checkpoint = out.with_extension("checkpoint");
    let recipe = Recipe {
        rank: options.rank,
        alpha: 2.0 * options.rank as f32,
        seed: options.seed,
        steps: options.steps,
        batch: options.batch,
        warm_up: (options.steps / 12).max(1),
        rate: options.rate,
        pass_tokens: options.pass_tokens,
        ..Recipe::default()
    };
    let mut training = if checkpoint.exists() && !options.anew {
        let training = Training::resume(&base, &examples, &checkpoint, options.threads)?;
        if *training.recipe() != recipe {
            anyhow::bail!("{} follows another recipe: --anew begins again", checkpoint.display());
        }
        eprintln!("going on after step {}", training.step());
        training
    } else {
        match &options.from {
            Some(path) => Training::from(&base, &examples, recipe, Adapter::read(path, &base)?, options.threads)?,
            None => Training::new(&base, &examples, recipe, options.threads)?,
        }
    };
    let bar = bar();
    let mut kept = Ok(());
    let finished = training.run(&mut |training, now| {
        show(&bar, now);
        if now.step % CHECKPOINT_STEPS == 0 {
            kept = training.save(&checkpoint);
        }
        if kept.is_err() || stop.load(Ordering::Relaxed) { Then::Pause } else { Then::GoOn }
    })?;
    bar.finish_and_clear();
    kept?;
    training.save(&checkpoint)?;
    if !finished {
        println!("paused after step {}; the same command goes on", training.step());
        return Ok(ExitCode::SUCCESS);
    }
    let recipe = serde_json::to_string(training.recipe())?;
    let notes = [
        ("general.base_model.sha256", base.sha256().to_owned()),
        ("azera.hearth.recipe", recipe),
        ("azera.hearth.lessons_sha256", training.examples_sha256().to_owned()),
    ];
    training.adapter().write(out, &notes)?;
    std::fs::remove_file(&checkpoint).with_context(|| format!("removing {}", checkpoint.display()))?;
    println!("{}", out.display());
    Ok(ExitCode::SUCCESS)
}

/// A bar that [`show`] moves.
pub fn bar() -> ProgressBar {
    let bar = ProgressBar::no_length();
    if let Ok(style) = ProgressStyle::with_template("  {bar:30} {pos}/{len} {msg}") {
        bar.set_style(style);
    }
    bar
}

/// Shows how far a training is.
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
