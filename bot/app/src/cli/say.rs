//! Options of `azera say`.

use std::path::PathBuf;

use azera_voice_engines::{MAX_PACE, MIN_PACE};
use azera_voice_recordings::Pitch;
use clap::Args;

/// The most of a voice's own liveliness.
const MAX_LIVELINESS: f32 = 1.5;

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  azera say Good morning, Ann.\n  azera say --out news.wav < news.txt\n  azera say --out note.ogg Good night\n  azera say --pace 1.2 --out - 'Fast talk' | aplay\n  azera say --list-voices\n\nThe default voice is a 56 MB download: azera models pull piper-en-us-joe"
)]
pub struct SayOptions {
    /// What to say; without it, or for `-`, the standard input
    #[arg(value_name = "TEXT")]
    pub text: Vec<String>,
    /// WAV file to write, or a voice note if it ends in .ogg; `-` writes a WAV file to the standard output
    #[arg(long, value_name = "FILE", default_value = "say.wav")]
    pub out: PathBuf,
    /// Voice on this machine or of the configured server; default: the server's, or the one in use
    #[arg(long, value_name = "NAME")]
    pub voice: Option<String>,
    /// Pace, from 0.5 to 2; 1 is the voice's own
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = pace)]
    pub pace: f32,
    /// Pitch, from 0.7 to 1.4; 1 is the voice's own, and the pace stays
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = pitch)]
    pub pitch: f32,
    /// How lively it sounds, from 0 to 1.5; 0 sounds the same each time
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = liveliness)]
    pub liveliness: f32,
    /// List the voices and their state on this machine
    #[arg(long)]
    pub list_voices: bool,
}

fn pace(text: &str) -> Result<f32, String> {
    factor(text, MIN_PACE, MAX_PACE)
}

fn pitch(text: &str) -> Result<f32, String> {
    factor(text, Pitch::MIN, Pitch::MAX)
}

fn liveliness(text: &str) -> Result<f32, String> {
    factor(text, 0.0, MAX_LIVELINESS)
}

fn factor(text: &str, least: f32, most: f32) -> Result<f32, String> {
    let factor = text.parse().ok().filter(|factor: &f32| (least..=most).contains(factor));
    factor.ok_or_else(|| format!("give a number from {least} to {most}"))
}
