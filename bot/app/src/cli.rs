//! The command line.

#[cfg(test)]
mod documented;
mod hearth;
mod import;
mod link;
mod mcp;
mod measure;
mod memory;
mod say;
mod transcribe;
mod vault;
mod voice;
mod web;

use std::path::{Path, PathBuf};

use azera_adapter_console::MessagePer;
use clap::{Args, Parser, Subcommand, ValueEnum};

pub use hearth::HearthCommand;
#[cfg(feature = "learning")]
pub use hearth::{Curriculum, Install, Measure, Merge, Pack, Train};
pub use import::{HookCommand, HookOptions, HookSession, ImportOptions};
pub use link::LinkOptions;
pub use mcp::McpOptions;
pub use measure::{
    BenchCommand, BenchFill, BenchGraph, BenchHearth, BenchInference, BenchInner, BenchRecall, BenchTurn, EvalCommand,
    EvalDreams, EvalExtraction, EvalFacts, EvalLabels, EvalMood, EvalRecall, EvalSafety, EvalTimelines, Half, MoodBy,
    ReplayOptions,
};
pub use memory::{ForgetWhat, MemoryCommand, Viewer};
pub use say::SayOptions;
pub use transcribe::TranscribeOptions;
pub use vault::{RotateWhat, VaultCommand, VaultOptions};
pub use voice::{SamplesCommand, TalkOptions, VoiceCommand, VoiceOptions};
pub use web::WebOptions;
#[cfg(feature = "http")]
pub use web::{KeyCommand, WebCommand};

/// The widest lines of `--help`.
const HELP_COLUMNS: usize = 80;

/// The heading of the options that every command takes.
const EVERYWHERE: &str = "Options of every command";

/// A self-hosted companion that remembers, dreams and reflects.
#[derive(Debug, Parser)]
#[command(
    name = "azera",
    version,
    max_term_width = HELP_COLUMNS,
    after_help = "Examples:\n  azera chat                         talk in the terminal\n  azera doctor                       check what Azera needs\n  azera models pull                  fetch the model that suits this machine\n  azera memory search \"locker code\"  search its memories\n\nEverything stays on this machine, except what Azera says on Discord and Matrix and what you send to model servers or stores that you configure.\n\nFor developers, not listed above: azera replay, eval, bench and hearth, each with --help."
)]
pub struct Cli {
    /// Configuration file; `azera config` prints an example
    #[arg(long, global = true, value_name = "FILE", help_heading = EVERYWHERE)]
    pub config: Option<PathBuf>,
    /// Run the chat model without its LoRA
    #[arg(long, alias = "no-adapter", global = true, help_heading = EVERYWHERE)]
    pub no_lora: bool,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Chat in the terminal; each line of piped input is a message, unless `--message-per` says otherwise
    #[command(
        after_help = "Examples:\n  azera chat\n  azera chat --as Ann --persona areza\n  echo 'Hello!' | azera chat\n  git diff | azera chat --message-per file\n  azera chat --json < messages.txt"
    )]
    Chat(ChatOptions),
    /// Serve the web, and Discord and Matrix as configured, until Ctrl-C
    #[command(after_help = "Example:\n  AZERA__MATRIX__PASSWORD=... azera run --config azera.toml")]
    Run(RunOptions),
    /// Print the link that invites the Discord bot
    Discord {
        #[command(subcommand)]
        command: DiscordCommand,
    },
    /// Play two made-up days in a few minutes, with this machine's models, to show what Azera is like
    Tour(TourOptions),
    /// Print what is said in sound files: WAV, FLAC, MP3 or Ogg (Opus and Vorbis)
    Transcribe(TranscribeOptions),
    /// Play a timeline of many people and chats in virtual time; reads and writes JSON lines
    #[command(hide = true, after_help = "Example:\n  azera replay week.jsonl --data /tmp/week --model scripted")]
    Replay(ReplayOptions),
    /// Speak text into a WAV file
    Say(SayOptions),
    /// Talk by microphone and loudspeaker; manage recordings of voices for an XTTS server
    Voice(VoiceOptions),
    /// Manage models: list, recommend, pull, import, use, remove, verify
    Models {
        #[command(subcommand)]
        command: ModelsCommand,
    },
    /// Manage personas: list, show, template, add, remove, export
    Persona {
        #[command(subcommand)]
        command: PersonaCommand,
        #[command(flatten)]
        data: DataOption,
    },
    /// Manage memories: search, show, forget, export, rebuild, check, stats
    Memory {
        #[command(subcommand)]
        command: MemoryCommand,
        #[command(flatten)]
        data: DataOption,
    },
    /// Import conversations from Claude Code, ChatGPT, Claude, Discord or SillyTavern
    Import(ImportOptions),
    /// Link a person of this machine with their accounts on Discord, Matrix or the web
    Link(LinkOptions),
    /// Import coding sessions, and show their memories to the next session
    Hook(HookOptions),
    /// Write training examples, train LoRAs and measure them
    #[command(hide = true)]
    Hearth {
        #[command(subcommand)]
        command: HearthCommand,
    },
    /// Evaluate models, recall and classifiers
    #[command(hide = true)]
    Eval {
        #[command(subcommand)]
        command: EvalCommand,
    },
    /// Measure speed on made-up memories
    #[command(hide = true)]
    Bench {
        #[command(subcommand)]
        command: BenchCommand,
    },
    /// Create, list or verify backups
    #[command(
        args_conflicts_with_subcommands = true,
        after_help = "Examples:\n  azera backup                        write to the backup folder\n  azera backup --to /mnt/usb/azera.zip\n  azera backup list\n  azera backup verify\n  azera backup give-up /mnt/lost      a backup folder that is lost for good\n\nA running Azera makes a backup every 5 minutes if anything changed, and refuses this command. A backup holds messages, their files, replies, memories, personas and chat settings. It leaves out the models (they can be fetched again), the search indexes (they are rebuilt) and the configuration."
    )]
    Backup {
        #[command(subcommand)]
        command: Option<BackupCommand>,
        /// Write to this file instead of the backup folder; Azera does not manage this file, so nothing is ever
        /// forgotten in it
        #[arg(long, value_name = "FILE")]
        to: Option<PathBuf>,
        #[command(flatten)]
        data: DataOption,
    },
    /// Restore a backup
    #[command(
        after_help = "Examples:\n  azera restore                       the newest backup, into an empty folder\n  azera restore --replace             the newest backup, replacing the data\n  azera restore azera-20260301T120500Z-0a1b2c3d.zip --replace\n  azera restore --salvage --replace   the readable rows of a damaged record\n  azera restore --undo                return to the data before the last restore\n\nAzera checks the whole backup before it changes anything, and sets the current data aside. It deletes that data when it runs 7 days later, or as soon as something is forgotten. Content forgotten after the backup stays forgotten. It then builds the indexes. Messages that were waiting for a reply when the backup was made are not answered."
    )]
    Restore(RestoreOptions),
    /// Check everything Azera needs and say how to fix each problem
    Doctor(DataOption),
    /// Check the heartbeat of `azera run`; fails if the last one is older than 60 seconds
    #[command(
        after_help = "Examples:\n  azera health                        for people\n  azera health >/dev/null || systemctl restart azera\n\nA running bot writes a heartbeat into its data folder every 15 seconds. This command fails if the last one is older than 60 seconds. The container image uses it as its health check."
    )]
    Health(DataOption),
    /// Print the address of the running web; manage its API keys
    Web(WebOptions),
    /// Keep secrets encrypted: tokens and passwords of the configuration
    Vault(VaultOptions),
    /// Give other assistants this memory: speak the Model Context Protocol over stdio
    Mcp(McpOptions),
    /// Print a configuration file with every key, its default and its purpose
    Config,
}

impl Command {
    /// Returns the data folder named on the command line.
    pub fn data(&self) -> Option<&Path> {
        match self {
            Self::Chat(options) => options.data.data.as_deref(),
            Self::Voice(options) => options.talk.data.data.as_deref(),
            Self::Mcp(options) => options.data.data.as_deref(),
            Self::Web(options) => options.data.data.as_deref(),
            Self::Vault(options) => options.data.data.as_deref(),
            Self::Import(options) => options.data.data.as_deref(),
            Self::Hook(options) => options.data.data.as_deref(),
            Self::Link(options) => options.data.data.as_deref(),
            Self::Run(options) => options.data.data.as_deref(),
            Self::Replay(options) => options.data.data.as_deref(),
            Self::Restore(options) => options.data.data.as_deref(),
            Self::Persona { data, .. }
            | Self::Memory { data, .. }
            | Self::Backup { data, .. }
            | Self::Doctor(data)
            | Self::Health(data) => data.data.as_deref(),
            Self::Tour(_)
            | Self::Transcribe(_)
            | Self::Say(_)
            | Self::Models { .. }
            | Self::Eval { .. }
            | Self::Hearth { .. }
            | Self::Bench { .. }
            | Self::Discord { .. }
            | Self::Config => None,
        }
    }

    /// Returns true if info log lines would get in the way of the command's own output.
    pub fn quiet(&self) -> bool {
        !matches!(self, Self::Doctor(_) | Self::Run(_))
    }
}

#[derive(Debug, Args)]
pub struct DataOption {
    /// Data folder
    #[arg(long, value_name = "DIR", global = true)]
    pub data: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct ChatOptions {
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
    /// Seed for reproducible replies
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// How much of piped input is one message
    #[arg(long, value_name = "UNIT", default_value = "line")]
    pub message_per: MessageUnit,
    /// Print events as JSON lines; messages of different people (`/as NAME`) then run in parallel
    #[arg(long)]
    pub json: bool,
}

/// How much of piped input is one message.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum MessageUnit {
    /// Each line
    Line,
    /// The lines between blank lines; code blocks stay whole
    Paragraph,
    /// The text between NUL bytes, as `find -print0` and `printf 'a\\0b'` write them
    Nul,
    /// The whole input
    File,
}

impl From<MessageUnit> for MessagePer {
    fn from(unit: MessageUnit) -> Self {
        match unit {
            MessageUnit::Line => Self::Line,
            MessageUnit::Paragraph => Self::Paragraph,
            MessageUnit::Nul => Self::Nul,
            MessageUnit::File => Self::File,
        }
    }
}

#[derive(Debug, Args)]
pub struct RunOptions {
    #[command(flatten)]
    pub data: DataOption,
    /// Chat model: its name in the registry or on the chat server, `default`, or `scripted` (a short fixed
    /// acknowledgement, with real memory)
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
}

#[derive(Debug, Subcommand)]
pub enum DiscordCommand {
    /// Print the link with which a server admin adds the bot, with exactly the permissions it needs
    Invite,
}

#[derive(Debug, Args)]
pub struct TourOptions {
    /// Model that answers: `default`, `scripted` or the name of an installed model
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub model: String,
}

#[derive(Debug, Subcommand)]
pub enum BackupCommand {
    /// List all backups, oldest first
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Stop waiting for a backup folder that is lost for good; content forgotten since stays in its backups
    GiveUp {
        /// Folder, as `azera doctor` prints it
        #[arg(value_name = "DIR")]
        dir: PathBuf,
    },
    /// Read backups completely and compare them with their checksums
    Verify {
        /// File, or name in the backup folder; default: all
        #[arg(value_name = "BACKUP")]
        backup: Option<PathBuf>,
    },
}

#[derive(Debug, Args)]
pub struct RestoreOptions {
    /// File, or name in the backup folder; default: the newest
    #[arg(value_name = "BACKUP")]
    pub backup: Option<PathBuf>,
    /// Replace the current data; it is set aside, not deleted
    #[arg(long)]
    pub replace: bool,
    /// Build a record from the readable rows of the damaged one instead of from a backup
    #[arg(long, conflicts_with = "backup")]
    pub salvage: bool,
    /// Return to the data that the last restore set aside
    #[arg(long, conflicts_with_all = ["backup", "replace", "salvage"])]
    pub undo: bool,
    #[command(flatten)]
    pub data: DataOption,
}

#[derive(Debug, Subcommand)]
pub enum ModelsCommand {
    /// List all known models and their state on this machine
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show which chat model suits this machine, and what each needs
    Recommend,
    /// Fetch models; without a name, the models in use, or on the first time those that suit this machine
    #[command(
        after_help = "Without a name and a choice, it picks a chat model by free memory, cores, GPU and network, and says why. It asks before a large download. Without a terminal and in CI it picks smollm2-135m and asks nothing."
    )]
    Pull {
        /// Names in the registry
        names: Vec<String>,
    },
    /// Install a GGUF file of your own, or a folder with a BERT model
    #[command(
        after_help = "A folder holds config.json, vocab.txt and model.safetensors of a sentence encoder or cross-encoder, which is converted.\n\nExample:\n  azera models import ~/Downloads/my-model.gguf --name my-model"
    )]
    Import {
        /// GGUF file, or folder
        file: PathBuf,
        /// Name to install it under
        #[arg(long)]
        name: String,
    },
    /// Use this model for its kind from the next start on
    Use {
        /// Model name
        name: String,
    },
    /// Delete a model's file
    Remove {
        /// Model name
        name: String,
        /// Remove it even if it is in use
        #[arg(long)]
        force: bool,
    },
    /// Read an installed model again and compare it with its recorded checksum
    Verify {
        /// Model name
        name: String,
    },
}

#[derive(Debug, Subcommand)]
pub enum PersonaCommand {
    /// List all personas and user personas
    List {
        /// Only personas owned by this realm
        #[arg(long, value_name = "ID")]
        realm: Option<String>,
    },
    /// Print a persona's file
    Show {
        /// Persona id
        id: String,
        /// Print an earlier version
        #[arg(long, value_name = "N")]
        version: Option<u32>,
        /// Realm that owns the persona
        #[arg(long, value_name = "ID")]
        realm: Option<String>,
    },
    /// Print a template for a new persona
    #[command(after_help = "Example:\n  azera persona template Mira > mira.md\n  azera persona add mira.md")]
    Template {
        /// Name of the new persona
        #[arg(default_value = "New Persona")]
        name: String,
    },
    /// Add a persona or a new version of one: a Markdown file or a character card (JSON, PNG or CharX)
    Add {
        /// Persona file
        file: PathBuf,
        /// Put the file in the place of this persona, without its memories: the file gets a new id, and chats move to it
        #[arg(long, value_name = "ID")]
        replace: Option<String>,
        /// With --replace: take over the memories, as the persona's next version
        #[arg(long, requires = "replace")]
        keep_memories: bool,
        /// Only check the file and print the resulting persona
        #[arg(long)]
        check: bool,
        /// Realm that owns the persona; other realms cannot see it
        #[arg(long, value_name = "ID")]
        realm: Option<String>,
    },
    /// Remove a persona; its versions stay, and `add` brings it back
    Remove {
        /// Persona id
        id: String,
        /// Realm that owns the persona
        #[arg(long, value_name = "ID")]
        realm: Option<String>,
    },
    /// Print a persona as Markdown or as a character card
    Export {
        /// Persona id
        id: String,
        /// Print a V3 character card
        #[arg(long)]
        card: bool,
        /// Realm that owns the persona
        #[arg(long, value_name = "ID")]
        realm: Option<String>,
    },
}
