//! Progress bars for long steps.

use std::sync::Mutex;
use std::time::Duration;

use azera_model_registry::Step;
use indicatif::{ProgressBar, ProgressStyle};

/// Draws one bar on the error output. Without a terminal, prints a line for each step.
pub struct Bar {
    bar: Mutex<Option<ProgressBar>>,
}

impl Bar {
    pub fn new() -> Self {
        Self { bar: Mutex::new(None) }
    }

    /// Shows received bytes out of a total.
    pub fn bytes(&self, what: &str, done: u64, total: Option<u64>) {
        bytes(&mut self.bar.lock().unwrap_or_else(std::sync::PoisonError::into_inner), what, done, total);
    }

    /// Shows a count out of a total.
    pub fn count(&self, what: &str, done: usize, total: usize) {
        let mut slot = self.bar.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let bar = slot.get_or_insert_with(|| ProgressBar::new(total as u64));
        bar.set_message(what.to_owned());
        if let Ok(style) = ProgressStyle::with_template("  {msg} {bar:30} {pos}/{len} {eta}") {
            bar.set_style(style);
        }
        bar.set_position(done as u64);
    }

    /// Shows one step of a model's installation.
    pub fn show(&self, step: Step<'_>) {
        let mut bar = self.bar.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        match step {
            Step::Receiving { file, received, total } => bytes(&mut bar, file, received, total),
            Step::Verifying { done, total } => bytes(&mut bar, "checking", done, Some(total)),
            Step::Waiting => say(&mut bar, "another Azera is fetching it; waiting"),
            Step::Trying { source } => say(&mut bar, &format!("asking {source}")),
            Step::Unpacking => say(&mut bar, "unpacking"),
            Step::Converting => say(&mut bar, "converting"),
            Step::SourceFailed { source, reason } => say(&mut bar, &format!("{source}: {reason}")),
            Step::Installed => clear(&mut bar),
            _ => {}
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        clear(&mut self.bar.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
    }
}

fn bytes(slot: &mut Option<ProgressBar>, what: &str, done: u64, total: Option<u64>) {
    let bar = slot.get_or_insert_with(|| {
        let bar = ProgressBar::no_length();
        bar.enable_steady_tick(Duration::from_millis(120));
        bar
    });
    match total {
        Some(total) if bar.length() != Some(total) => {
            bar.set_length(total);
            let style = "  {msg} {bar:30} {bytes}/{total_bytes} {bytes_per_sec} {eta}";
            if let Ok(style) = ProgressStyle::with_template(style) {
                bar.set_style(style);
            }
        }
        None if bar.length().is_some() => bar.unset_length(),
        _ => {}
    }
    bar.set_message(what.to_owned());
    bar.set_position(done);
}

fn say(slot: &mut Option<ProgressBar>, line: &str) {
    clear(slot);
    eprintln!("  {line}");
}

fn clear(slot: &mut Option<ProgressBar>) {
    if let Some(bar) = slot.take() {
        bar.finish_and_clear();
    }
}
