use async_trait::async_trait;
use azera_types::{MemoryId, PlatformId};

use crate::{HostError, Reading, ShownMemory};

/// A statement that was made in many chats of one place, so that it counts as known in the whole place.
#[derive(Debug, Clone, PartialEq)]
pub struct ShownKnown {
    /// The newest memory of it.
    pub memory: ShownMemory,
    /// The other memories of it, newest first.
    pub also: Vec<MemoryId>,
    /// The number of chats it was said in.
    pub chats: usize,
    /// The number of people who said it.
    pub people: usize,
    /// False if too few are left of those who want their words to count.
    pub counts: bool,
    /// True if the person who reads said it, and so can change that.
    pub is_own: bool,
    /// False if the person who reads does not want their own words to count.
    pub own_counts: bool,
}

/// A page of what counts as known.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ShownKnowns {
    /// The statements, those in most chats first.
    pub known: Vec<ShownKnown>,
    /// How many there are on all pages.
    pub total: usize,
}

/// The engine's list of what counts as known in a whole place. The command `/memory known` changes it.
#[async_trait]
pub trait KnownReader: Send + Sync {
    /// Returns at most `limit` statements behind the first `skip`. The person may read every memory that they rest on in the
    /// chat, at that moment; a person who cannot read the chat gets nothing.
    async fn known(
        &self,
        platform: &PlatformId,
        at: Reading,
        skip: usize,
        limit: usize,
    ) -> Result<ShownKnowns, HostError>;
}
