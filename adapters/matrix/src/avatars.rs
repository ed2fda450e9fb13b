//! What the bot and its personas look like: pictures are uploaded once, and named after that.

use std::sync::{Arc, OnceLock};

use azera_adapter::Avatars;
use azera_types::PersonaId;
use matrix_sdk::Client;
use matrix_sdk::ruma::{OwnedMxcUri, UserId};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::Error;
use crate::media::upload;
use crate::sync_state::SyncState;

/// A picture as the homeserver has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Uploaded {
    /// Of the file.
    digest: String,
    url: OwnedMxcUri,
}

/// Pictures of personas on the homeserver.
#[derive(Clone)]
pub(crate) struct AvatarUploads {
    client: Client,
    sync_state: SyncState,
    avatars: Arc<OnceLock<Arc<dyn Avatars>>>,
}

impl AvatarUploads {
    pub(crate) fn new(client: Client, sync_state: SyncState) -> Self {
        Self { client, sync_state, avatars: Arc::default() }
    }

    /// Says where pictures come from; the first word counts.
    pub(crate) fn set_avatar_source(&self, avatars: Arc<dyn Avatars>) {
        self.avatars.get_or_init(|| avatars);
    }

    /// The address of a persona's picture. Without one, or if the homeserver does not take it, its messages have none.
    pub(crate) async fn picture(&self, persona: &PersonaId) -> Option<OwnedMxcUri> {
        match self.uploaded(persona).await {
            Ok(url) => url,
            Err(error) => {
                tracing::warn!(%persona, %error, "a persona's picture could not be uploaded");
                None
            }
        }
    }

    async fn uploaded(&self, persona: &PersonaId) -> Result<Option<OwnedMxcUri>, Error> {
        let Some(avatars) = self.avatars.get() else { return Ok(None) };
        let Some(picture) = avatars.picture(persona).await else { return Ok(None) };
        let digest: String = Sha256::digest(&picture.bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        if let Some(known) = self.sync_state.picture(persona).await?.filter(|known| known.digest == digest) {
            return Ok(Some(known.url));
        }
        let url = upload(&self.client, picture.bytes, picture.media_type).await?;
        self.sync_state.set_picture(persona, &Uploaded { digest, url: url.clone() }).await?;
        Ok(Some(url))
    }

    /// Gives the account the usual persona's name and picture, where it has none of its own; gives the account's name.
    pub(crate) async fn dress(&self, own: &UserId) -> Result<String, Error> {
        let account = self.client.account();
        let name = account.get_display_name().await?;
        let usual = match self.avatars.get() {
            Some(avatars) => avatars.usual().await,
            None => None,
        };
        let Some((persona, persona_name)) = usual else {
            return Ok(name.unwrap_or_else(|| own.localpart().to_owned()));
        };
        // Homeservers name an account after its id as long as nobody names it.
        let name = match name.filter(|name| name != own.localpart()) {
            Some(name) => name,
            None => {
                account.set_display_name(Some(&persona_name)).await?;
                persona_name
            }
        };
        if account.get_avatar_url().await?.is_none()
            && let Some(picture) = self.picture(&persona).await
        {
            account.set_avatar_url(Some(&picture)).await?;
        }
        Ok(name)
    }
}
