use azera_types::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Caller, OpenSession, Preferences};
use crate::oauth::Grant;
use crate::secrets::PasswordHash;

/// Longest name of an account, in characters.
pub(crate) const MAX_NAME_CHARS: usize = 64;

/// What an account may do besides talking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Role {
    /// Administers Azera. Sees nothing of what others said.
    Owner,
    /// Talks, and manages its own data.
    Guest,
}

/// What a key or a session may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) enum Scope {
    /// Talk to personas, and read one's own chats.
    #[serde(rename = "chat")]
    Chat,
    /// Read one's own memories.
    #[serde(rename = "memory:read")]
    MemoryRead,
    /// Add and forget one's own memories.
    #[serde(rename = "memory:write")]
    MemoryWrite,
    /// Administer Azera; only for owners.
    #[serde(rename = "admin")]
    Admin,
    /// Use the tools of the Model Context Protocol.
    #[serde(rename = "mcp")]
    Mcp,
    /// Read the values of one's own vault.
    #[serde(rename = "vault")]
    Vault,
}

impl Scope {
    /// Every scope.
    pub(crate) const ALL: [Self; 6] =
        [Self::Chat, Self::MemoryRead, Self::MemoryWrite, Self::Admin, Self::Mcp, Self::Vault];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::MemoryRead => "memory:read",
            Self::MemoryWrite => "memory:write",
            Self::Admin => "admin",
            Self::Mcp => "mcp",
            Self::Vault => "vault",
        }
    }
}

impl Role {
    /// Returns everything that an account of this role may do.
    pub(crate) fn scopes(self) -> Vec<Scope> {
        Scope::ALL.into_iter().filter(|scope| self == Self::Owner || *scope != Scope::Admin).collect()
    }
}

/// One account, as it is stored.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Account {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) role: Role,
    pub(crate) password: PasswordHash,
    pub(crate) created_at: Timestamp,
    #[serde(default)]
    pub(super) sessions: Vec<Session>,
    #[serde(default)]
    pub(super) keys: Vec<Key>,
    #[serde(default)]
    pub(crate) grants: Vec<Grant>,
    #[serde(default)]
    pub(super) invitations: Vec<Invitation>,
    #[serde(default)]
    pub(crate) preferences: Preferences,
}

impl Account {
    /// Returns true if the account has a key of this id.
    pub(super) fn has_key(&self, id: &str) -> bool {
        self.keys.iter().any(|key| key.id == id)
    }

    /// Returns the account as the source of a request with some of its scopes.
    pub(crate) fn caller(&self, key: Option<String>, session: Option<OpenSession>, scopes: Vec<Scope>) -> Caller {
        let may = self.role.scopes();
        let scopes = scopes.into_iter().filter(|scope| may.contains(scope)).collect();
        Caller {
            account: self.id.clone(),
            name: self.name.clone(),
            role: self.role,
            scopes,
            key,
            session,
            pass: None,
            grant: None,
            is_local: false,
        }
    }

    /// Returns true if this is the account's name. Case does not count.
    pub(super) fn is_named(&self, name: &str) -> bool {
        self.name.to_lowercase() == name.trim().to_lowercase()
    }
}

/// A login in one browser.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Session {
    /// Digest of the present token.
    pub(super) token: String,
    /// Digest of the token before, and until when it works: requests that were under way still carry it.
    pub(super) before: Option<(String, Timestamp)>,
    /// What requests that change something must repeat in a header.
    pub(super) csrf: String,
    pub(super) created_at: Timestamp,
    pub(super) used_at: Timestamp,
    /// When the present token was made.
    pub(super) renewed_at: Timestamp,
}

/// An API key.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Key {
    pub(super) id: String,
    pub(super) name: String,
    /// Digest of the secret part.
    pub(super) secret: String,
    pub(super) scopes: Vec<Scope>,
    pub(super) created_at: Timestamp,
    pub(super) used_at: Option<Timestamp>,
}

/// A link that makes one more account.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Invitation {
    /// Digest of the code.
    pub(super) code: String,
    pub(super) until: Timestamp,
}
