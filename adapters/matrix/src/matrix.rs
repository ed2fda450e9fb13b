use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use azera_types::PlatformId;
use matrix_sdk::Client;
use matrix_sdk::ruma::{OwnedEventId, OwnedUserId, UserId};

use crate::audience::Audience;
use crate::ledger::Ledger;
use crate::manners::Manners;
use crate::replies::Replies;
use crate::{Error, Settings, login};

/// The platform's name.
pub const PLATFORM: &str = "matrix";

/// Messages whose authors are kept in mind; more are looked up.
const MAX_AUTHORS: usize = 4_096;

/// What an operator should know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Health {
    /// The account.
    pub user: String,
    /// The device.
    pub device: String,
    /// Whether other devices can tell that this one is the account's own.
    pub cross_signed: bool,
    /// Rooms the bot is in.
    pub rooms: usize,
    /// Messages that cannot be read because their keys have not come.
    pub undecryptable: usize,
}

/// The bot's account on a homeserver: a platform.
pub struct Matrix {
    pub(crate) id: PlatformId,
    pub(crate) client: Client,
    pub(crate) own: OwnedUserId,
    pub(crate) settings: Settings,
    pub(crate) ledger: Ledger,
    pub(crate) audience: Audience,
    pub(crate) replies: Replies,
    pub(crate) manners: Manners,
    pub(crate) authors: Arc<Authors>,
    /// Messages given up because their keys never came, since the start.
    pub(crate) given_up: AtomicU64,
}

impl Matrix {
    /// Connects: logs in or takes up the session, and learns the present state of the rooms.
    pub async fn connect(settings: Settings) -> Result<Arc<Self>, Error> {
        let client = login::client(&settings).await?;
        let own = client.user_id().map(UserId::to_owned).ok_or(Error::LoggedOut)?;
        let ledger = Ledger::new(client.clone());
        let audience = Audience::new(client.clone(), ledger.clone(), own.clone());
        let authors = Arc::new(Authors::default());
        Ok(Arc::new(Self {
            id: PlatformId::new(PLATFORM)?,
            replies: Replies::new(client.clone(), ledger.clone(), audience.clone(), authors.clone()),
            manners: Manners::new(settings.limits),
            authors,
            given_up: AtomicU64::new(0),
            client,
            own,
            settings,
            ledger,
            audience,
        }))
    }

    /// What an operator should know.
    pub async fn health(&self) -> Result<Health, Error> {
        let mut undecryptable = usize::try_from(self.given_up.load(Ordering::Relaxed)).unwrap_or(usize::MAX);
        let rooms = self.client.joined_rooms();
        for room in &rooms {
            undecryptable += self.ledger.late(room.room_id()).await?.len();
        }
        let device = self.client.device_id().map(ToString::to_string).unwrap_or_default();
        let cross_signed = match self.client.encryption().get_own_device().await {
            Ok(Some(device)) => device.is_cross_signed_by_owner(),
            _ => false,
        };
        Ok(Health { user: self.own.to_string(), device, cross_signed, rooms: rooms.len(), undecryptable })
    }
}

/// Who wrote the latest messages.
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
