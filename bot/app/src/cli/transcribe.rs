//! The options of `azera transcribe`.

use std::path::PathBuf;

use clap::Args;

/// Shown after the options.
const EXAMPLES: &str = "Examples:\n  azera transcribe note.mp3\n  azera transcribe --model whisper-tiny.en *.wav\n  azera transcribe --language de --json interview.flac\n\nThe text goes to stdout, the time it took to stderr. The first call fetches the model (128 MB). Nothing leaves this machine unless `recognition_server` in the configuration names a server.";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct TranscribeOptions {
    /// Sound files of at most 2 hours each
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// Speech model on this machine, as `azera models list` names it; default: the configured server, or the model in use
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    /// Spoken language, such as `en` or `de`; default: detected
    #[arg(long, value_name = "CODE")]
    pub language: Option<String>,
    /// Print a line of JSON for each file, with the times of parts and words and with confidence
    #[arg(long)]
    pub json: bool,
}
