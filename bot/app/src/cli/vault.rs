//! Options of `azera vault`.

use azera_memory_vault::EntryName;
use clap::{Args, Subcommand, ValueEnum};

use super::DataOption;

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  azera vault set discord                    asks for the value, and hides it\n  azera vault set matrix < password.txt\n  azera vault list\n  azera vault get discord | xclip            the value goes to the output only\n  azera vault delete matrix\n  azera vault rotate                         new keys for everything\n\nIn azera.toml, \"vault:discord\" then stands for the value: token = \"vault:discord\".\n\nThe vault is encrypted with the key in vault.key_file (`azera vault list` prints where it is). Keep a copy of that file apart from your backups: backups do not contain it, and without it nobody can read the secrets."
)]
pub struct VaultOptions {
    #[command(subcommand)]
    pub command: VaultCommand,
    #[command(flatten)]
    pub data: DataOption,
}

#[derive(Debug, Subcommand)]
pub enum VaultCommand {
    /// Store a secret; reads the value from the terminal without showing it, or from the input
    Set {
        /// Name of the entry
        name: EntryName,
    },
    /// Print a secret to the output, without a line end
    Get {
        /// Name of the entry
        name: EntryName,
        /// Print it even if the output is a terminal
        #[arg(long)]
        show: bool,
    },
    /// List the names, never the values
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Delete a secret
    Delete {
        /// Name of the entry
        name: EntryName,
    },
    /// Replace keys, and encrypt the secrets of the operator and of all people anew
    #[command(
        after_help = "Examples:\n  azera vault rotate                 new master key and new data keys\n  azera vault rotate master          only the key in the key file\n  azera vault rotate data-keys       only the keys that encrypt the values\n\nStop Azera first. An interrupted rotation loses nothing; run it again. The key file keeps the last eight master keys, so that older backups can still be restored. Copy the key file again afterwards."
    )]
    Rotate {
        /// What to replace
        #[arg(value_name = "WHAT", default_value = "all")]
        what: RotateWhat,
    },
}

/// What `azera vault rotate` replaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RotateWhat {
    /// The master key
    Master,
    /// The key of each vault
    DataKeys,
    /// Both
    All,
}
