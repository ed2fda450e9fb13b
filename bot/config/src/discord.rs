use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Secret;

// The comments of these fields are also the comments of azera.example.toml: they speak to the operator.

/// The bot on Discord.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Discord {
    /// The bot's token, from the Bot page of the developer portal. With one, `azera run` is on Discord. Better kept in
    /// AZERA__DISCORD__TOKEN, or in a file that AZERA__DISCORD__TOKEN_FILE names, than here.
    #[schemars(length(min = 1, max = 1024), example = "...", extend("writeOnly" = true))]
    pub token: Option<Secret>,
    /// Who runs the bot, by their user ids (Copy User ID, with Developer Mode on): they may also change the model.
    #[schemars(length(max = 100), inner(length(min = 1, max = 20)))]
    pub operators: Vec<String>,
    /// What was said while Azera was away is answered if it was said in so many hours before; 0 answers none of it.
    #[schemars(range(min = 0, max = 168))]
    pub catch_up_hours: u32,
    /// Messages of one person that are taken in a minute; what comes beyond that is left unread, and they are told so.
    #[schemars(range(min = 1, max = 10_000))]
    pub messages_per_person: u32,
    /// Messages of one server that are taken in a minute.
    #[schemars(range(min = 1, max = 100_000))]
    pub messages_per_server: u32,
    /// A server that removes the bot is forgotten after so many days, with all that was said there; 0: at once.
    #[schemars(range(min = 0, max = 365))]
    pub keep_removed_days: u32,
    /// An address and port that is asked in the place of Discord's own, for a proxy of your own.
    #[schemars(length(min = 1, max = 100), example = "127.0.0.1:8443")]
    pub api_address: Option<String>,
    /// The file (PEM) with the certificate of the authority that vouches for that proxy.
    #[schemars(length(min = 1, max = 4096), example = "/etc/azera/proxy.pem")]
    pub api_root_certificate: Option<PathBuf>,
}

impl Default for Discord {
    fn default() -> Self {
        Self {
            token: None,
            operators: Vec::new(),
            catch_up_hours: 24,
            messages_per_person: 30,
            messages_per_server: 300,
            keep_removed_days: 30,
            api_address: None,
            api_root_certificate: None,
        }
    }
}
