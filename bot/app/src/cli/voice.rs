//! The options of `azera voice`.

use std::path::PathBuf;

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub enum VoiceCommand {
    /// Recordings of voices that an XTTS server speaks with
    #[command(
        after_help = "Examples:\n  azera voice samples add ann.wav --name ann --consent 'Ann, who agreed on 1 March'\n  azera voice samples list\n  azera voice samples remove ann"
    )]
    Samples {
        #[command(subcommand)]
        command: SamplesCommand,
    },
}

#[derive(Debug, Subcommand)]
pub enum SamplesCommand {
    /// Check a recording of 3 to 30 s of speech and keep it as a voice
    Add {
        /// WAV, MP3, Ogg or FLAC file of at most 10 MB
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// Name of the voice: a to z, 0 to 9, - and _
        #[arg(long, value_name = "NAME")]
        name: String,
        /// Whose voice it is, and that this person agreed
        #[arg(long, value_name = "WHO")]
        consent: String,
    },
    /// List the samples
    List,
    /// Remove a sample whole
    Remove {
        /// Name of the voice
        #[arg(value_name = "NAME")]
        name: String,
    },
}
