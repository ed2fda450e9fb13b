use async_trait::async_trait;
use azera_types::PlatformId;

use crate::{HostError, Reading};

/// A mood that somebody gives a persona.
#[derive(Debug, Clone, PartialEq)]
pub struct GivenMood {
    /// One of the names in `/status`, such as `calm`.
    pub name: &'static str,
    /// How pleasant it is, from 0 to 1; 0.5 is neutral.
    pub value: f32,
}

/// Changes how a persona feels.
#[async_trait]
pub trait MoodHost: Send + Sync {
    /// Gives the persona that answers in the chat a mood in that place alone. It fades like every other mood. Returns false
    /// if there is no such mood.
    ///
    /// # Errors
    /// [`HostError::NotAllowed`] for a person who may not change how the persona is in that place: everybody in their own
    /// direct messages, and admins elsewhere.
    async fn give_mood(&self, platform: &PlatformId, at: Reading, mood: GivenMood) -> Result<bool, HostError>;
}
