//! Options of `azera import` and `azera hook`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{DataOption, Viewer};

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  azera import conversations.json            ChatGPT or Claude\n  azera import session.jsonl --project gate  Claude Code\n  azera import kitchen.json --me ann         DiscordChatExporter\n  azera import chat.jsonl --persona areza    SillyTavern\n  azera import conversations.json --dry-run\n  azera import --list\n  azera import --undo 3f2a91c07b\n\nOnly the person named by --as may read what is imported, and only --persona remembers it. Nothing is answered. Importing a file again adds what is new in it. Messages that were forgotten are not imported again."
)]
pub struct ImportOptions {
    /// Files to read
    #[arg(value_name = "FILE", required_unless_present_any = ["list", "undo"])]
    pub files: Vec<PathBuf>,
    /// Format of the files
    #[arg(
        long,
        value_name = "FORMAT",
        default_value = "auto",
        value_parser = ["auto", "claude-code", "chatgpt", "claude", "discord", "sillytavern"]
    )]
    pub format: String,
    #[command(flatten)]
    pub viewer: Viewer,
    /// Your name or id in a Discord export; without it, no message counts as yours
    #[arg(long, value_name = "NAME")]
    pub me: Option<String>,
    /// Project that the conversations belong to; it is a realm of its own
    #[arg(long, value_name = "NAME")]
    pub project: Option<String>,
    /// Only count what would be imported
    #[arg(long)]
    pub dry_run: bool,
    /// List what was imported
    #[arg(long, conflicts_with_all = ["files", "undo", "dry_run"])]
    pub list: bool,
    /// Forget every conversation of an import, by its id
    #[arg(long, value_name = "ID", conflicts_with_all = ["files", "dry_run"])]
    pub undo: Option<String>,
    /// With --undo: also forget the replies built on it
    #[arg(long, requires = "undo")]
    pub quotes: bool,
    /// With --undo: do not ask for confirmation
    #[arg(long, requires = "undo")]
    pub yes: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub data: DataOption,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Claude Code, in ~/.claude/settings.json:\n  {\"hooks\": {\n    \"SessionStart\": [{\"hooks\": [{\"type\": \"command\", \"command\": \"azera hook start\"}]}],\n    \"Stop\": [{\"hooks\": [{\"type\": \"command\", \"command\": \"azera hook stop\"}]}]}}\n\nThe assistant passes its session as JSON on the input. Without --project, the project is the folder with the session's .git, or the session's own folder."
)]
pub struct HookOptions {
    #[command(subcommand)]
    pub command: HookCommand,
    #[command(flatten)]
    pub data: DataOption,
}

#[derive(Debug, Subcommand)]
pub enum HookCommand {
    /// Print what is remembered of a project, for a coding assistant whose session starts
    Start {
        /// About how many tokens to print at most, up to 32000
        #[arg(long, value_name = "N", default_value_t = 2_000)]
        tokens: usize,
        #[command(flatten)]
        session: HookSession,
    },
    /// Import the transcript of a coding assistant's session
    Stop {
        #[command(flatten)]
        session: HookSession,
    },
}

#[derive(Debug, Args)]
pub struct HookSession {
    #[command(flatten)]
    pub viewer: Viewer,
    /// Name of the project
    #[arg(long, value_name = "NAME")]
    pub project: Option<String>,
}
