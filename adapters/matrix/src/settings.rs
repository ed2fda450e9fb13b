use std::path::PathBuf;

use azera_adapter::Command;

/// How the bot logs in.
#[derive(Clone, Default)]
pub struct Login {
    /// The account, such as `@azera:example.org`, or its part before the colon.
    pub user: String,
    /// The password; needed once.
    pub password: Option<String>,
    /// An access token instead of a password. Its device must belong to the bot only.
    pub token: Option<String>,
}

impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Login").field("user", &self.user).finish_non_exhaustive()
    }
}

/// Whose invitations are accepted; others are declined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Invites {
    /// Everyone's.
    Anyone,
    /// Those of accounts on these servers; if none is named, on the bot's own.
    Servers(Vec<String>),
    /// Those of these accounts.
    Users(Vec<String>),
}

/// Rate limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Messages of one person per minute.
    pub person_per_minute: u32,
    /// Messages in one room per minute.
    pub room_per_minute: u32,
}

/// Settings of the adapter.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The homeserver: an address, or a server name with a well-known file.
    pub homeserver: String,
    /// The account.
    pub login: Login,
    /// The folder of the session, keys and rooms, used by the adapter only.
    pub folder: PathBuf,
    /// Whose invitations are accepted.
    pub invites: Invites,
    /// True to send keys only to devices that their owners verified, and to trust only those.
    pub strict: bool,
    /// The default command prefix in rooms.
    pub prefix: String,
    /// The engine's commands.
    pub commands: &'static [Command],
    /// Rate limits.
    pub limits: Limits,
}
