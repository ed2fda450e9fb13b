use async_trait::async_trait;
use azera_types::{PersonaId, Timestamp};
use thiserror::Error;

use crate::StoreError;

/// What an owner says about a persona. What is `None` stays, or has its usual value in a new persona.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct PersonaDraft {
    /// The displayed name.
    pub name: Option<String>,
    /// True for a role that people play.
    pub is_user: Option<bool>,
    /// What it is for.
    pub intent: Option<String>,
    /// A whole persona file, or a text that says who the persona is.
    pub text: Option<String>,
    /// The name of its voice.
    pub voice: Option<String>,
}

impl std::fmt::Debug for PersonaDraft {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PersonaDraft")
    }
}

/// A version of a persona.
#[derive(Clone, PartialEq, Eq)]
pub struct PersonaVersion {
    /// Its number, from 1.
    pub version: u32,
    /// When it was stored.
    pub at: Timestamp,
    /// Its whole file.
    pub markdown: String,
}

impl std::fmt::Debug for PersonaVersion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PersonaVersion").field("version", &self.version).finish_non_exhaustive()
    }
}

/// Why a persona was not changed.
#[derive(Debug, Error)]
pub enum PersonaError {
    /// There is no such persona that everybody may use.
    #[error("there is no such persona")]
    Missing,
    /// The draft is wrong, or the persona must stay. The text is for the owner.
    #[error("{0}")]
    Refused(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The personas that everybody may use. Only owners change them.
#[async_trait]
pub trait PersonaStore: Send + Sync {
    /// Adds a persona. Returns its id.
    async fn add(&self, draft: PersonaDraft) -> Result<PersonaId, PersonaError>;

    /// Adds the persona of a character card or of a persona file. Returns its id, and notes about what was changed.
    async fn import(&self, file: Vec<u8>) -> Result<(PersonaId, Vec<String>), PersonaError>;

    /// Returns the versions of a persona, newest first.
    async fn versions(&self, id: &PersonaId) -> Result<Vec<PersonaVersion>, PersonaError>;

    /// Stores the next version of a persona. Earlier versions stay.
    async fn change(&self, id: &PersonaId, draft: PersonaDraft) -> Result<(), PersonaError>;

    /// Removes a persona. What it remembers stays.
    async fn remove(&self, id: &PersonaId) -> Result<(), PersonaError>;
}
