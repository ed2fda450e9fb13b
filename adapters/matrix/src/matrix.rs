use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use azera_adapter::Avatars;
use azera_types::PlatformId;
use matrix_sdk::Client;
use matrix_sdk::ruma::{OwnedEventId, OwnedUserId, UserId};

use crate::audience::Audience;
use crate::avatars::AvatarUploads;
use crate::health::HealthTracker;
use crate::rate_limit::RateLimiter;
use crate::replies::Replies;
use crate::room_upgrades::RoomUpgrades;
use crate::sync_state::SyncState;
use crate::{Error, Settings, login};

/// The platform's name.
pub const PLATFORM: &str = "matrix";

/// Most messages whose authors are cached; others are looked up.
const MAX_AUTHORS: usize = 4_096;

/// The bot's account on a homeserver, as a platform.
pub struct Matrix {
    pub(crate) id: PlatformId,
    pub(crate) client: Client,
    pub(crate) own: OwnedUserId,
    pub(crate) settings: Settings,
    pub(crate) sync_state: SyncState,
    pub(crate) audience: Audience,
    pub(crate) replies: Replies,
    pub(crate) rate_limiter: RateLimiter,
    pub(crate) authors: Arc<Authors>,
    pub(crate) gallery: AvatarUploads,
    pub(crate) succession: RoomUpgrades,
    pub(crate) vitals: HealthTracker,
    /// True if the store was lost and its rooms must be restored.
    pub(crate) lost: AtomicBool,
}

impl Matrix {
    pub(crate) async fn connect_now(settings: Settings) -> Result<Arc<Self>, Error> {
        let client = login::client(&settings).await?;
        let own = client.user_id().map(UserId::to_owned).ok_or(Error::LoggedOut)?;
        let sync_state = SyncState::new(client.clone());
        let succession = RoomUpgrades::load(client.clone(), sync_state.clone()).await?;
        let audience = Audience::new(client.clone(), sync_state.clone(), succession.clone(), own.clone());
        let authors = Arc::new(Authors::default());
        let gallery = AvatarUploads::new(client.clone(), sync_state.clone());
        Ok(Arc::new(Self {
            id: PlatformId::new(PLATFORM)?,
            replies: Replies::new(
                client.clone(),
                sync_state.clone(),
                audience.clone(),
                succession.clone(),
                authors.clone(),
                gallery.clone(),
            ),
            rate_limiter: RateLimiter::new(settings.limits),
            authors,
            gallery,
            succession,
            vitals: HealthTracker::default(),
            lost: AtomicBool::new(false),
            client,
            own,
            settings,
            sync_state,
            audience,
        }))
    }

    /// Sets the source of persona names and pictures. Call it before [`Matrix::begin`].
    pub fn set_avatars(&self, avatars: Arc<dyn Avatars>) {
        self.gallery.set_avatar_source(avatars);
    }
}

/// A cache of the authors of recent messages.
#[derive(Debug, Default)]
pub(crate) struct Authors(Mutex<HashMap<OwnedEventId, OwnedUserId>>);

impl Authors {
    pub(crate) fn note(&self, event: &OwnedEventId, by: &OwnedUserId) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MAX_AUTHORS {
            known.clear();
        }
        known.insert(event.clone(), by.clone());
    }

    pub(crate) fn of(&self, event: &OwnedEventId) -> Option<OwnedUserId> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(event).cloned()
    }
}
