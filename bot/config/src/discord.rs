use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Secret;

// The doc comments of these fields are also the comments of azera.example.toml, so they address the operator.

/// The bot on Discord.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Discord {
    /// The bot's token, from the Bot page of the developer portal. With a token, `azera run` connects to Discord.
    /// Better store it with `azera vault set discord` and write "vault:discord" here, or set AZERA__DISCORD__TOKEN or
    /// AZERA__DISCORD__TOKEN_FILE, than write the token here.
    #[schemars(length(min = 1, max = 1024), example = "...", extend("writeOnly" = true))]
    pub token: Option<Secret>,
    /// The operators of the bot, by user id (Copy User ID, with Developer Mode on). They count as admins in
    /// every server, and may also change the model.
    #[schemars(length(max = 100), inner(length(min = 1, max = 20)))]
    pub operators: Vec<String>,
    /// Hours to look back after Azera was away: it answers the messages of that time, and none with 0.
    #[schemars(range(min = 0, max = 168))]
    pub catch_up_hours: u32,
    /// Messages from one person that are read per minute. Azera does not read further ones and tells the person.
    #[schemars(range(min = 1, max = 10_000))]
    pub messages_per_person: u32,
    /// Messages from one server that are read per minute.
    #[schemars(range(min = 1, max = 100_000))]
    pub messages_per_server: u32,
    /// Days after which a server that removed the bot is forgotten, with everything said there; 0 forgets it at once.
    #[schemars(range(min = 0, max = 365))]
    pub keep_removed_days: u32,
    /// The address and port of your own proxy, which is used instead of Discord's API.
    #[schemars(length(min = 1, max = 100), example = "127.0.0.1:8443")]
    pub api_address: Option<String>,
    /// The certificate (a PEM file) of the authority that signed the proxy's certificate.
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
