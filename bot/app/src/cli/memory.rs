//! The options of `azera memory`.

use azera_types::Timestamp;
use clap::{Args, Subcommand};

#[derive(Debug, Clone, Args)]
pub struct Viewer {
    /// Person to act as; memories that only others may see stay hidden
    #[arg(long = "as", value_name = "NAME", default_value = "You")]
    pub name: String,
    /// Persona whose memories to use
    #[arg(long, value_name = "ID")]
    pub persona: Option<String>,
}

#[derive(Debug, Args)]
pub struct ForgetWhat {
    /// One memory, such as m42
    #[arg(long, group = "what")]
    pub memory: Option<String>,
    /// Everything a person said, by person id
    #[arg(long, group = "what")]
    pub person: Option<String>,
    /// One message, by id
    #[arg(long, group = "what")]
    pub message: Option<String>,
    /// Everything in a chat, by id
    #[arg(long, group = "what")]
    pub chat: Option<String>,
    /// Everything public in a realm, by id
    #[arg(long, group = "what")]
    pub realm: Option<String>,
    /// With --chat: start of the period (RFC 3339)
    #[arg(long, value_name = "TIME", requires = "chat")]
    pub from: Option<Timestamp>,
    /// With --chat: end of the period
    #[arg(long, value_name = "TIME", requires = "chat")]
    pub to: Option<Timestamp>,
}

#[derive(Debug, Subcommand)]
pub enum MemoryCommand {
    /// Search memories the way a reply does
    Search {
        /// Text to search for
        query: String,
        /// Maximum number of results
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
        /// Memory id, such as m42
        id: String,
        #[command(flatten)]
        viewer: Viewer,
    },
    /// Forget permanently: a memory, a message, a person, a chat, a period of a chat or a realm
    #[command(
        after_help = "Examples:\n  azera memory forget --memory m42\n  azera memory forget --person console:you --yes\n  azera memory forget --chat console:you:main --from 2026-05-01T00:00:00Z --yes"
    )]
    Forget {
        #[command(flatten)]
        what: ForgetWhat,
        /// Also forget the replies built on it
        #[arg(long)]
        quotes: bool,
        /// Do not ask for confirmation
        #[arg(long)]
        yes: bool,
    },
    /// Print everything stored about a person as JSON
    Export {
        /// Person id, such as console:you
        #[arg(long)]
        person: String,
    },
    /// Rebuild both indexes from the record
    Rebuild,
    /// Look for damage: unreadable or dangling rows, and indexes that differ from the record
    #[command(
        after_help = "Examples:\n  azera memory check\n  azera memory check --deep --mend\n\nExits with an error if a problem remains."
    )]
    Check {
        /// Also embed every text again and compare it with its stored vector
        #[arg(long)]
        deep: bool,
        /// Index differing memories again, and overwrite forgotten content that is still on disk
        #[arg(long)]
        mend: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Count and compare the record and the indexes
    Stats {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}
