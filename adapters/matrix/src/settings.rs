use std::path::PathBuf;

/// How the bot gets at its account.
#[derive(Clone, Default)]
pub struct Login {
    /// The account, as in `@azera:example.org`, or the part before the colon.
    pub user: String,
    /// Its password; needed once.
    pub password: Option<String>,
    /// An access token in the place of a password. Its device must be the bot's alone.
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
    /// Everybody's.
    Anyone,
    /// Those of accounts on these servers; on the bot's own, if none is named.
    Servers(Vec<String>),
    /// Those of these accounts.
    Users(Vec<String>),
}

/// How much of the bot's time people and rooms get.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Messages of one person heeded in a minute.
    pub person_per_minute: u32,
    /// Messages in one room heeded in a minute.
    pub room_per_minute: u32,
}

/// Everything the adapter needs to know.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The homeserver: an address, or a server's name whose well-known file tells it.
    pub homeserver: String,
    /// The account.
    pub login: Login,
    /// The folder of the session, the keys and the rooms; the adapter's alone.
    pub folder: PathBuf,
    /// Whose invitations are accepted.
    pub invites: Invites,
    /// Send keys to devices that their owners have verified, and trust such devices alone.
    pub strict: bool,
    /// What a command begins with in a room.
    pub prefix: String,
    /// How much is heeded.
    pub limits: Limits,
}
