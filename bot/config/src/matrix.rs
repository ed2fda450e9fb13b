use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Secret;

// The doc comments of these fields are also the comments of azera.example.toml, so they address the operator.

/// Whose invitations are accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MatrixInvites {
    /// everybody's
    Anyone,
    /// those of accounts on the servers in `invites_from`, or on the bot's own server if the list is empty
    Servers,
    /// those of the accounts in `invites_from`
    Users,
}

/// Rooms on a Matrix homeserver. `azera run` serves them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Matrix {
    /// The homeserver: its address, or the server name in its accounts (after the colon). When unset: no Matrix.
    #[schemars(length(min = 1, max = 2048), example = "https://matrix.example.org")]
    pub homeserver: Option<String>,
    /// The bot's account: the full name, or the part before the colon. Use an account that only the bot uses.
    #[schemars(length(min = 1, max = 255), example = "@azera:example.org")]
    pub user: Option<String>,
    /// The account's password, needed only for the first start. Better set AZERA__MATRIX__PASSWORD than write it here.
    #[schemars(length(min = 1, max = 1024), example = "...", extend("writeOnly" = true))]
    pub password: Option<Secret>,
    /// An access token, if there is no password, from a login that nothing else uses. Better set AZERA__MATRIX__TOKEN
    /// than write it here.
    #[schemars(length(min = 1, max = 1024), example = "syt_...", extend("writeOnly" = true))]
    pub token: Option<Secret>,
    /// Whose invitations are accepted. Others are declined.
    pub invites: MatrixInvites,
    /// Servers or accounts, depending on `invites`.
    #[schemars(length(max = 100), inner(length(min = 1, max = 255)))]
    pub invites_from: Vec<String>,
    /// Send keys only to devices that their owners have verified, and read only messages from such devices. People who
    /// have not verified their session then cannot talk in encrypted rooms.
    pub strict: bool,
    /// The prefix of commands in a room. The bot's name followed by / works too; in direct chats ! or / is enough.
    #[schemars(length(min = 1, max = 32))]
    pub prefix: String,
    /// Messages from one person that are handled per minute. Someone who writes more is told once.
    #[schemars(range(min = 1, max = 10_000))]
    pub person_per_minute: u32,
    /// Messages in one room that are handled per minute.
    #[schemars(range(min = 1, max = 10_000))]
    pub room_per_minute: u32,
}

impl Default for Matrix {
    fn default() -> Self {
        Self {
            homeserver: None,
            user: None,
            password: None,
            token: None,
            invites: MatrixInvites::Servers,
            invites_from: Vec::new(),
            strict: false,
            prefix: "!azera".into(),
            person_per_minute: 30,
            room_per_minute: 120,
        }
    }
}

impl Matrix {
    /// Returns values that are each allowed, but not together: the two keys, the deciding one first, and the reason.
    pub(crate) fn contradictions(&self) -> Vec<([&'static str; 2], String)> {
        let mut found = Vec::new();
        if self.homeserver.is_some() && self.user.is_none() {
            found.push((["homeserver", "user"], "`matrix.user` must name the bot's account".to_owned()));
        }
        if self.invites == MatrixInvites::Users && self.invites_from.is_empty() {
            let message = "`matrix.invites_from` must name accounts, or the bot accepts no invitation".to_owned();
            found.push((["invites", "invites_from"], message));
        }
        found
    }
}
