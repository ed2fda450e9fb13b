//! Access: what a persona may show to whom, as the platforms report it at this moment. Nothing here is cached.

use std::sync::Arc;

use azera_adapter::Platform;
use azera_memory::ReadScope;
use azera_types::{ChatId, PersonaId, Place};

use crate::error::Error;
use crate::links::LinkCodes;
use crate::services::Services;

/// Answers who may read what. `links` adds linked accounts, `addressee` the personas that may be heard in a place.
pub(crate) struct AccessControl {
    pub(crate) services: Arc<Services>,
    /// Codes of `/link` that wait to be entered by another account.
    pub(crate) codes: LinkCodes,
}

impl AccessControl {
    pub(crate) fn new(services: Arc<Services>) -> Self {
        Self { services, codes: LinkCodes::default() }
    }

    /// Returns what `persona` may show in `place` now.
    pub(crate) async fn read_scope(
        &self,
        platform: &dyn Platform,
        place: &Place,
        persona: &PersonaId,
    ) -> Result<ReadScope, Error> {
        Ok(ReadScope::in_place(persona.clone(), place, &self.readable_scopes(platform, place).await?))
    }

    /// Returns a chat as everybody who reads it sees it. If the platform only answers for single people, it is asked
    /// for those who spoke there lately.
    pub(crate) async fn place_unasked(&self, platform: &dyn Platform, chat: &ChatId) -> Result<Option<Place>, Error> {
        if let Some(place) = platform.place_for_all(chat).await? {
            return Ok(Some(place));
        }
        let of = chat.clone();
        for person in self.services.blocking(move |memory| memory.messages().recent_speakers(&of)).await? {
            if let Some(place) = platform.place(chat, &person).await? {
                return Ok(Some(place));
            }
        }
        Ok(None)
    }
}
