//! The options of `azera voice`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::DataOption;

#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  azera voice                        press Enter, and talk\n  azera voice --hands-free\n  azera voice samples list\n\nIt records with arecord, parec or pw-record, and plays with aplay, pacat or pw-play, whichever is installed. It needs the models whisper-base, piper-en-us-joe and silero-vad."
)]
pub struct VoiceOptions {
    #[command(subcommand)]
    pub command: Option<VoiceCommand>,
    #[command(flatten)]
    pub talk: TalkOptions,
}

#[derive(Debug, Args)]
pub struct TalkOptions {
    #[command(flatten)]
    pub data: DataOption,
    /// Name of the speaker
    #[arg(long = "as", value_name = "NAME", default_value = "You")]
    pub name: String,
    /// Persona that answers in a new chat
    #[arg(long, value_name = "ID")]
    pub persona: Option<String>,
    /// Chat model: its name in the registry or on the chat server, or `default`
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    /// Listen all the time, and not only after Enter
    #[arg(long)]
    pub hands_free: bool,
}

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
