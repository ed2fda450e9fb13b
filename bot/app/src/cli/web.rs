//! Options of `azera web`.

use clap::{Args, Subcommand};

use super::DataOption;

#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  azera web                                  the address, or the link that makes your account\n  azera web key create phone --scope chat    a key for a program; it is shown once\n  azera web key list\n  azera web key revoke 4f1c...\n\n`azera run` serves the web. These commands ask the one that runs in the same data folder."
)]
pub struct WebOptions {
    #[command(subcommand)]
    pub command: Option<WebCommand>,
    #[command(flatten)]
    pub data: DataOption,
}

#[derive(Debug, Subcommand)]
pub enum WebCommand {
    /// Manage the owner's API keys
    Key {
        #[command(subcommand)]
        command: KeyCommand,
    },
}

#[derive(Debug, Subcommand)]
pub enum KeyCommand {
    /// Make a key and print it once
    Create {
        /// A name by which you know the key
        name: String,
        /// What the key may do; give it several times for several scopes
        #[arg(long = "scope", value_name = "SCOPE", required = true, value_parser = ["chat", "memory:read", "memory:write", "admin", "mcp", "vault"])]
        scopes: Vec<String>,
    },
    /// List the keys, and the programs that were given access by OAuth
    List,
    /// Revoke a key, or end the access of a program
    Revoke {
        /// The id, from `azera web key list`
        id: String,
    },
}
