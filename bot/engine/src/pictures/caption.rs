//! The texts of messages about pictures.

use std::time::Duration;

use azera_memory::PictureRow;
use azera_model_image::{ImageError, ImageProgress, Outage};

use super::PictureLook;
use super::outages::AWAY_FOR;

/// Cells of a bar.
const CELLS: u32 = 12;

/// The most characters of a prompt in a caption.
const MAX_PROMPT_CHARS: usize = 400;

/// The most characters of a file's name, without its ending.
const MAX_NAME_CHARS: usize = 40;

/// Returns the text while a picture is drawn: a bar, the steps, and the seconds that are left, as far as they are known.
pub(super) fn progress(row: &PictureRow, progress: &ImageProgress, since: Duration, left: Option<u64>) -> String {
    let what = shortened(row.prompt.as_str(), 120);
    if let Some(downloaded) = progress.loading {
        let what_it_does = match downloaded {
            0 => "The server loads its model".to_owned(),
            bytes => format!("The server downloads its model, {:.1} GB so far", bytes as f64 / 1e9),
        };
        return format!("🎨 {what}\n{what_it_does} … ({} s)", since.as_secs());
    }
    if progress.steps == 0 {
        let ahead = match progress.ahead {
            0 => "I begin".to_owned(),
            1 => "The server has 1 other picture to draw first".to_owned(),
            more => format!("The server has {more} other pictures to draw first"),
        };
        return format!("🎨 {what}\n{ahead} … ({} s)", since.as_secs());
    }
    let step = progress.step.min(progress.steps);
    // A server may report any number.
    let full = u64::from(step) * u64::from(CELLS) / u64::from(progress.steps).max(1);
    let bar: String = (0..CELLS).map(|cell| if u64::from(cell) < full { '▰' } else { '▱' }).collect();
    let left = left.map(|seconds| format!(", about {seconds} s left")).unwrap_or_default();
    format!("🎨 {what}\n{bar} step {step} of {}{left}", progress.steps)
}

/// Returns the caption of a drawn picture.
pub(super) fn drawn(row: &PictureRow, look: &PictureLook, size: (u32, u32), model: &str) -> String {
    let name = row.name.as_deref().map(|name| format!("**{}**: ", name.replace('*', ""))).unwrap_or_default();
    let model = if model.is_empty() { String::new() } else { format!(" · {}", model.replace(['*', '_', '`'], " ")) };
    let hint = match look.portrait_of {
        Some(_) => format!("\nAdmins: `/persona face {}` makes it the persona's face.", row.number),
        None => String::new(),
    };
    format!(
        "🎨 {name}{}\n*picture {} · seed {} · {}×{} · {} steps{model}*{hint}",
        shortened(row.prompt.as_str(), MAX_PROMPT_CHARS),
        row.number,
        look.seed,
        size.0,
        size.1,
        look.steps,
    )
}

/// Returns the text for a picture that could not be drawn.
pub(super) fn failed(row: &PictureRow, error: &ImageError) -> String {
    let why = match error {
        // The operator finds it in the log.
        ImageError::Configuration(_) | ImageError::Protocol(_) => {
            "the server that draws does not work as it should; the operator finds the reason in the log".to_owned()
        }
        ImageError::Unavailable { outage, .. } => trouble(*outage),
        ImageError::Flagged => "the server's safety check withheld it".to_owned(),
        other => other.to_string(),
    };
    format!("🎨 {}\nI could not draw that: {why}.", shortened(row.prompt.as_str(), 120))
}

/// Returns what kept a picture from being drawn or shown, for everybody.
fn trouble(outage: Outage) -> String {
    match outage {
        Outage::Away => format!("the server that draws could not be reached for {} minutes", AWAY_FOR.as_secs() / 60),
        Outage::Slow => "the server that draws gave no picture in time; fewer steps or a smaller size may help".into(),
        Outage::OutOfMemory => "the server that draws ran out of memory; a smaller size may help".into(),
        Outage::Failed => {
            "the model or the workflow of the server that draws failed; the operator finds the reason in the log".into()
        }
        Outage::Unjudged => {
            "I must look at a picture before I show it, and the model that sees gave no clear answer, though I asked it \
             three times; the operator finds the reason in the log"
                .into()
        }
        Outage::Unseen => {
            "I must look at a picture before I show it, and the model that sees does not answer, though I kept asking \
             it for minutes; this counts for no limit, so ask again later"
                .into()
        }
    }
}

/// Returns the text of a picture that waits. It shows no prompt: nobody has asked yet who may read it now.
pub(super) fn waiting(row: &PictureRow, place: usize) -> String {
    format!("🎨 Picture {} is number {place} of those that wait.", row.number)
}

/// Returns the text while the server of a picture is away.
pub(super) fn away(row: &PictureRow) -> String {
    let minutes = AWAY_FOR.as_secs() / 60;
    let what = shortened(row.prompt.as_str(), 120);
    format!("🎨 {what}\nThe server that draws cannot be reached. I keep trying for {minutes} minutes.")
}

/// Returns the name of a picture's file.
pub(super) fn file_name(row: &PictureRow) -> String {
    let words = row.name.as_deref().unwrap_or(row.prompt.as_str());
    let plain: String = words.chars().map(|c| if c.is_alphanumeric() { c } else { '-' }).collect();
    let parts: Vec<&str> = plain.split('-').filter(|part| !part.is_empty()).collect();
    let name: String = parts.join("-").to_lowercase().chars().take(MAX_NAME_CHARS).collect();
    let name = if name.is_empty() { "picture".to_owned() } else { name };
    format!("{}.png", name.trim_end_matches('-'))
}

/// Returns the beginning of a text in one line.
pub(crate) fn shortened(text: &str, most: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= most {
        return line;
    }
    let cut: String = line.chars().take(most.saturating_sub(1)).collect();
    format!("{}…", cut.trim_end())
}
