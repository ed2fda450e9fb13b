//! The command line.

mod hearth;
mod measure;

use std::path::{Path, PathBuf};

use azera_types::Timestamp;
use clap::{Args, Parser, Subcommand};

pub use hearth::{Curriculum, HearthCommand, Install, Measure, Merge, Pack, Train};
pub use measure::{
    BenchCommand, BenchHearth, BenchInference, BenchInner, BenchRecall, BenchTurn, EvalCommand, EvalDreams, EvalFacts,
    EvalLabels, EvalMood, EvalRecall, MoodBy,
};

/// A self-hosted companion that remembers, dreams and reflects.
#[derive(Debug, Parser)]
#[command(
    name = "azera",
    version,
    after_help = "Examples:\n  azera chat                         talk in the terminal\n  azera doctor                       check what Azera needs\n  azera models pull qwen3-1.7b       fetch a larger model\n  azera memory search \"locker code\"  look what is remembered\n\nEverything stays on this machine, unless you name a server in the configuration."
)]
pub struct Cli {
    /// The configuration file; see `azera config`
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Let the chat model answer without its adapter
    #[arg(long, global = true)]
    pub no_adapter: bool,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Talk in the terminal; with input from a pipe, one message a line
    #[command(
        after_help = "Examples:\n  azera chat\n  azera chat --as Ann --persona areza\n  echo 'Hello!' | azera chat\n  azera chat --json < messages.txt"
    )]
    Chat(ChatOptions),
    /// Serve the platforms that are configured, until Ctrl-C
    #[command(after_help = "Example:\n  AZERA__MATRIX__PASSWORD=... azera run --config azera.toml")]
    Run(RunOptions),
    /// Discord: the link that lets the bot into a server
    Discord {
        #[command(subcommand)]
        command: DiscordCommand,
    },
    /// A few made-up days in a few minutes, with the models of this machine: what Azera is like
    Tour(TourOptions),
    /// Play a timeline of many people and chats in virtual time; JSON lines in, JSON lines out
    #[command(after_help = "Example:\n  azera replay week.jsonl --data /tmp/week --model scripted")]
    Replay(ReplayOptions),
    /// Models: list, fetch, import, choose, remove
    Models {
        #[command(subcommand)]
        command: ModelsCommand,
    },
    /// Personas: list, show, add, remove, export
    Persona {
        #[command(subcommand)]
        command: PersonaCommand,
        #[command(flatten)]
        data: DataOption,
    },
    /// What is remembered: search, show, forget, export, rebuild, stats
    Memory {
        #[command(subcommand)]
        command: MemoryCommand,
        #[command(flatten)]
        data: DataOption,
    },
    /// Teach a model its job: lessons, training, and what came of it
    Hearth {
        #[command(subcommand)]
        command: HearthCommand,
    },
    /// Measure
    Eval {
        #[command(subcommand)]
        command: EvalCommand,
    },
    /// Read how fast things are, on made-up memories
    Bench {
        #[command(subcommand)]
        command: BenchCommand,
    },
    /// Make a backup of what is remembered, list them, or check one
    #[command(
        args_conflicts_with_subcommands = true,
        after_help = "Examples:\n  azera backup                        into the folder of the backups\n  azera backup --to /mnt/usb/azera.zip\n  azera backup list\n  azera backup verify\n  azera backup give-up /mnt/lost      a folder of backups that will not come back\n\nWhile Azera runs it makes its own, every 5 minutes if anything changed; then this command is not needed, and\nrefused. A backup holds messages, replies, memories, personas and settings of chats; neither models (fetched\nagain) nor the search indexes (built anew) nor the configuration."
    )]
    Backup {
        #[command(subcommand)]
        command: Option<BackupCommand>,
        /// Write this file instead of one in the folder of the backups; it is yours, and forgets nothing
        #[arg(long, value_name = "FILE")]
        to: Option<PathBuf>,
        #[command(flatten)]
        data: DataOption,
    },
    /// Bring a backup back
    #[command(
        after_help = "Examples:\n  azera restore                       the newest backup, into an empty data folder\n  azera restore --replace             the same, in the place of what is there\n  azera restore azera-20260301T120500Z-0a1b2c3d.zip --replace\n  azera restore --salvage --replace   what can still be read of a damaged record\n  azera restore --undo                back to what was there before\n\nA backup is checked whole before anything is touched. What was there is put aside, and goes when Azera runs 7 days\nlater or something is forgotten. Nothing brings back what was forgotten since. The next start builds the indexes\nanew. What was under way when the backup was made is not answered again."
    )]
    Restore(RestoreOptions),
    /// Check everything Azera needs, and say how to mend what is missing
    Doctor(DataOption),
    /// Print a configuration file with every key, its default and what it does
    Config,
}

impl Command {
    /// The data folder named on the command line.
    pub fn data(&self) -> Option<&Path> {
        match self {
            Self::Chat(options) => options.data.data.as_deref(),
            Self::Run(options) => options.data.data.as_deref(),
            Self::Replay(options) => options.data.data.as_deref(),
            Self::Restore(options) => options.data.data.as_deref(),
            Self::Persona { data, .. } | Self::Memory { data, .. } | Self::Backup { data, .. } | Self::Doctor(data) => {
                data.data.as_deref()
            }
            Self::Tour(_)
            | Self::Models { .. }
            | Self::Eval { .. }
            | Self::Hearth { .. }
            | Self::Bench { .. }
            | Self::Discord { .. }
            | Self::Config => None,
        }
    }

    /// Whether log lines would stand between what a person reads.
    pub fn quiet(&self) -> bool {
        !matches!(self, Self::Doctor(_) | Self::Run(_))
    }
}

#[derive(Debug, Args)]
pub struct DataOption {
    /// The folder everything is kept in
    #[arg(long, value_name = "DIR", global = true)]
    pub data: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct ChatOptions {
    #[command(flatten)]
    pub data: DataOption,
    /// Who speaks
    #[arg(long = "as", value_name = "NAME", default_value = "You")]
    pub name: String,
    /// Who answers in a new chat
    #[arg(long, value_name = "ID")]
    pub persona: Option<String>,
    /// The chat model, by its name in the ledger or on the chat server, or `default`
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    /// Makes replies reproducible
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Print events as JSON lines; people (`/as NAME`) then talk at once
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct RunOptions {
    #[command(flatten)]
    pub data: DataOption,
    /// The chat model, by its name in the ledger or on the chat server, `default`, or `scripted` (a short fixed
    /// acknowledgement, real memory)
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
}

#[derive(Debug, Subcommand)]
pub enum DiscordCommand {
    /// Print the link at which a server's admin lets the bot in, with exactly the permissions it needs
    Invite,
}

#[derive(Debug, Args)]
pub struct TourOptions {
    /// The model that answers: `default`, `scripted` or the name of one that is there
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub model: String,
}

#[derive(Debug, Args)]
pub struct ReplayOptions {
    /// The timeline; `-` reads it from the input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    #[command(flatten)]
    pub data: DataOption,
    /// `default`, `scripted` (a short fixed acknowledgement, real memory) or a model's name
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub model: String,
    /// Makes replies reproducible
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
}

#[derive(Debug, Subcommand)]
pub enum BackupCommand {
    /// Every backup there is, the oldest first
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Ask no more after a folder of backups that is gone for good; what was forgotten stays in them
    GiveUp {
        /// The folder, as `azera doctor` names it
        #[arg(value_name = "DIR")]
        dir: PathBuf,
    },
    /// Read backups whole and compare them with their checksums
    Verify {
        /// A file, or a name in the folder of the backups; all of them if left out
        #[arg(value_name = "BACKUP")]
        backup: Option<PathBuf>,
    },
}

#[derive(Debug, Args)]
pub struct RestoreOptions {
    /// A file, or a name in the folder of the backups; the newest if left out
    #[arg(value_name = "BACKUP")]
    pub backup: Option<PathBuf>,
    /// Put what is there aside
    #[arg(long)]
    pub replace: bool,
    /// Make a record of what can still be read of the damaged one, in the place of a backup
    #[arg(long, conflicts_with = "backup")]
    pub salvage: bool,
    /// Bring back what the last restore put aside
    #[arg(long, conflicts_with_all = ["backup", "replace", "salvage"])]
    pub undo: bool,
    #[command(flatten)]
    pub data: DataOption,
}

#[derive(Debug, Subcommand)]
pub enum ModelsCommand {
    /// Every known model and what is here of it
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Fetch models; without a name, those in use
    Pull {
        /// Names in the ledger
        names: Vec<String>,
    },
    /// Install a GGUF file of one's own
    #[command(after_help = "Example:\n  azera models import ~/Downloads/my-model.gguf --name my-model")]
    Import {
        /// The file
        file: PathBuf,
        /// The name it gets
        #[arg(long)]
        name: String,
    },
    /// Choose the model of its kind that runs, from the next start on
    Use {
        /// Its name
        name: String,
    },
    /// Delete a model's file
    Remove {
        /// Its name
        name: String,
        /// Even if it is in use
        #[arg(long)]
        force: bool,
    },
    /// Read an installed model again and compare it with what was installed
    Verify {
        /// Its name
        name: String,
    },
}

#[derive(Debug, Subcommand)]
pub enum PersonaCommand {
    /// Every persona and role
    List {
        /// Those a realm owns, by its id
        #[arg(long, value_name = "ID")]
        realm: Option<String>,
    },
    /// Print a persona's file
    Show {
        /// Its id
        id: String,
        /// An earlier version
        #[arg(long, value_name = "N")]
        version: Option<u32>,
        /// Owned by this realm
        #[arg(long, value_name = "ID")]
        realm: Option<String>,
    },
    /// Print a file to begin a new persona with
    #[command(
        after_help = "Example:\n  azera persona template Mira > mira.md && $EDITOR mira.md && azera persona add mira.md"
    )]
    Template {
        /// Its name
        #[arg(default_value = "New Persona")]
        name: String,
    },
    /// Add a persona, or a new version of one: a markdown file, or a character card (JSON or PNG)
    Add {
        /// The file
        file: PathBuf,
        /// Only check the file and show what it would become
        #[arg(long)]
        check: bool,
        /// For this realm alone, by its id; nobody elsewhere sees it
        #[arg(long, value_name = "ID")]
        realm: Option<String>,
    },
    /// Remove a persona; its versions stay, and `add` brings it back
    Remove {
        /// Its id
        id: String,
        /// Owned by this realm
        #[arg(long, value_name = "ID")]
        realm: Option<String>,
    },
    /// Print a persona as markdown or as a character card
    Export {
        /// Its id
        id: String,
        /// Print a V3 character card
        #[arg(long)]
        card: bool,
        /// Owned by this realm
        #[arg(long, value_name = "ID")]
        realm: Option<String>,
    },
}

#[derive(Debug, Args)]
pub struct Viewer {
    /// As whom; what only others may see is not shown
    #[arg(long = "as", value_name = "NAME", default_value = "You")]
    pub name: String,
    /// Whose memories
    #[arg(long, value_name = "ID")]
    pub persona: Option<String>,
}

#[derive(Debug, Args)]
pub struct ForgetWhat {
    /// One memory, as in m42
    #[arg(long, group = "what")]
    pub memory: Option<String>,
    /// Everything a person said, by their id
    #[arg(long, group = "what")]
    pub person: Option<String>,
    /// One message, by its id
    #[arg(long, group = "what")]
    pub message: Option<String>,
    /// Everything in a chat, by its id
    #[arg(long, group = "what")]
    pub chat: Option<String>,
    /// Everything public in a realm, by its id
    #[arg(long, group = "what")]
    pub realm: Option<String>,
    /// With --chat: from this time on (RFC 3339)
    #[arg(long, value_name = "TIME", requires = "chat")]
    pub from: Option<Timestamp>,
    /// With --chat: up to this time
    #[arg(long, value_name = "TIME", requires = "chat")]
    pub to: Option<Timestamp>,
}

#[derive(Debug, Subcommand)]
pub enum MemoryCommand {
    /// Find memories, as a reply would
    Search {
        /// What to look for
        query: String,
        /// Hits at most
        #[arg(long, default_value_t = 10)]
        limit: usize,
        /// Print JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        viewer: Viewer,
    },
    /// Show one memory
    Show {
        /// Its id, as in m42
        id: String,
        #[command(flatten)]
        viewer: Viewer,
    },
    /// Forget for good: a memory, a message, a person, a chat or a time in it, a realm
    #[command(
        after_help = "Examples:\n  azera memory forget --memory m42\n  azera memory forget --person console:you --yes\n  azera memory forget --chat console:you:main --from 2026-05-01T00:00:00Z --quotes --yes"
    )]
    Forget {
        #[command(flatten)]
        what: ForgetWhat,
        /// Also the replies built on it
        #[arg(long)]
        quotes: bool,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
    /// Print everything held about a person as JSON
    Export {
        /// The person's id, as in console:you
        #[arg(long)]
        person: String,
    },
    /// Build both indexes anew from the record
    Rebuild,
    /// Look for damage: rows that cannot be read or miss others, and indexes that differ from the record
    #[command(
        after_help = "Examples:\n  azera memory check\n  azera memory check --deep --mend\n\nEnds with an error if something is wrong that was not mended."
    )]
    Check {
        /// Also embed every text again and compare it with its vector
        #[arg(long)]
        deep: bool,
        /// Index anew what differs, and overwrite on disk what was forgotten and still stands there
        #[arg(long)]
        mend: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Compare record and indexes, and count
    Stats {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}
