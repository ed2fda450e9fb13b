//! The [`MoodHost`] interface: people give a persona a mood in their own place.

use async_trait::async_trait;
use azera_adapter::{Access, GivenMood, HostError, MoodHost, Reading};
use azera_affect::Mood;
use azera_types::{PlaceKind, PlatformId};

use crate::engine::Engine;
use crate::error::Error;

impl Engine {
    async fn set_mood(&self, platform: &PlatformId, at: Reading, given: GivenMood) -> Result<bool, Error> {
        let Some(here) = self.here(platform, &at).await? else { return Err(Error::NotAllowed) };
        let is_own = matches!(here.place.kind, PlaceKind::Dm(_));
        if !is_own && here.adapter.access(&at.chat, &at.person).await? < Access::Admin {
            return Err(Error::NotAllowed);
        }
        let Some(mood) = Mood::named(given.name) else { return Ok(false) };
        let valence = f64::from(given.value) * 2.0 - 1.0;
        self.0.minds.give(&here.persona, &here.place.scope(), mood, valence).await;
        Ok(true)
    }
}

#[async_trait]
impl MoodHost for Engine {
    async fn give_mood(&self, platform: &PlatformId, at: Reading, mood: GivenMood) -> Result<bool, HostError> {
        self.for_adapter(self.set_mood(platform, at, mood).await)
    }
}
