use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Secret;

// The comments of these fields are also the comments of azera.example.toml: they speak to the operator.

/// Whose invitations are accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MatrixInvites {
    /// everybody's
    Anyone,
    /// those of accounts on the servers in `invites_from`, or on the bot's own if that names none
    Servers,
    /// those of the accounts in `invites_from`
    Users,
}

/// Rooms on a Matrix homeserver. `azera run` serves them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Matrix {
    /// The homeserver: its address, or the name behind the colon of its accounts. When unset: no Matrix.
    #[schemars(length(min = 1, max = 2048), example = "https://matrix.example.org")]
    pub homeserver: Option<String>,
    /// The bot's account, whole or the part before the colon. It should be the bot's alone.
    #[schemars(length(min = 1, max = 255), example = "@azera:example.org")]
    pub user: Option<String>,
    /// Its password, needed for the first start alone. Better kept in AZERA__MATRIX__PASSWORD than in a file.
    #[schemars(length(min = 1, max = 1024), example = "...", extend("writeOnly" = true))]
    pub password: Option<Secret>,
    /// An access token where there is no password, of a login that is used for nothing else. Better kept in
    /// AZERA__MATRIX__TOKEN than in a file.
    #[schemars(length(min = 1, max = 1024), example = "syt_...", extend("writeOnly" = true))]
    pub token: Option<Secret>,
    /// Whose invitations are accepted; others are declined.
    pub invites: MatrixInvites,
    /// Servers or accounts, as `invites` says.
    #[schemars(length(max = 100), inner(length(min = 1, max = 255)))]
    pub invites_from: Vec<String>,
    /// Send keys to devices alone that their owners have verified, and read what such devices send alone. Who has not
    /// verified a session of theirs then cannot talk in encrypted rooms.
    pub strict: bool,
    /// What a command begins with in a room. The bot's name with a / behind it works too; in direct chats a ! or / alone.
    #[schemars(length(min = 1, max = 32))]
    pub prefix: String,
    /// Messages of one person that are heeded in a minute. Who writes more is told so, once.
    #[schemars(range(min = 1, max = 10_000))]
    pub person_per_minute: u32,
    /// Messages in one room that are heeded in a minute.
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
    /// Values that are allowed each, but not together: the keys, the telling one first, and why.
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
