//! Pictures of the bot and its personas. Each is uploaded once.

use std::sync::{Arc, OnceLock};

use azera_adapter::Avatars;
use azera_types::PersonaId;
use data_encoding::HEXLOWER;
use matrix_sdk::Client;
use matrix_sdk::ruma::{OwnedMxcUri, UserId};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::Error;
use crate::media::upload;
use crate::sync_state::SyncState;

/// An uploaded picture.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Uploaded {
    /// Digest of the file.
    digest: String,
    url: OwnedMxcUri,
}

/// Uploads pictures of personas.
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

    /// Sets the source of pictures; only the first call counts.
    pub(crate) fn set_avatar_source(&self, avatars: Arc<dyn Avatars>) {
        self.avatars.get_or_init(|| avatars);
    }

    /// Returns the address of a persona's picture; `None` if it has none or the upload fails.
    pub(crate) async fn picture(&self, persona: &PersonaId) -> Option<OwnedMxcUri> {
        match self.uploaded(persona).await {
            Ok(url) => url,
            Err(error) => {
                tracing::warn!(%persona, %error, "cannot upload a persona's picture");
                None
            }
        }
    }

    async fn uploaded(&self, persona: &PersonaId) -> Result<Option<OwnedMxcUri>, Error> {
        let Some(avatars) = self.avatars.get() else { return Ok(None) };
        let Some(picture) = avatars.picture(persona).await else { return Ok(None) };
        let digest = HEXLOWER.encode(&Sha256::digest(&picture.bytes));
        if let Some(known) = self.sync_state.picture(persona).await?.filter(|known| known.digest == digest) {
            return Ok(Some(known.url));
        }
        let url = upload(&self.client, picture.bytes, picture.media_type).await?;
        self.sync_state.set_picture(persona, &Uploaded { digest, url: url.clone() }).await?;
        Ok(Some(url))
    }

    /// Sets the account's name and picture to those of the default persona, where it has none; returns the account's
    /// name.
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
        // An account without a display name is shown by its id.
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
