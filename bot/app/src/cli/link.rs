//! Options of `azera link`.

use clap::Args;

use super::DataOption;

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  azera link K7M29QXA                link with the account that was shown this code\n  azera link K7M29QXA --as Ann\n  azera link                         show a code for your other account\n  azera link --list\n  azera link --remove                unlink this account\n  azera link --remove discord:42     unlink another one\n\nAzera shows a code when you write /link to it in a direct message on Discord, Matrix or the web. The code works once, for 10 minutes, and only while that Azera runs. Linked accounts share what you told Azera in direct messages, what you imported, and your projects; other people see nothing more."
)]
pub struct LinkOptions {
    /// Code that your other account was shown; without one, this command shows a code
    pub code: Option<String>,
    /// Person of this machine to link, as in `azera import --as`
    #[arg(long = "as", value_name = "NAME", default_value = "You")]
    pub name: String,
    /// List the linked accounts
    #[arg(long, conflicts_with_all = ["code", "remove"])]
    pub list: bool,
    /// Unlink an account, by its id or name: this one without a name, or `all`
    #[arg(long, value_name = "ACCOUNT", num_args = 0..=1, default_missing_value = "", conflicts_with = "code")]
    pub remove: Option<String>,
    /// Do not ask whether the other account is yours
    #[arg(long, requires = "code")]
    pub yes: bool,
    #[command(flatten)]
    pub data: DataOption,
}
