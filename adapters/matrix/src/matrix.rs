use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use azera_adapter::Portraits;
use azera_types::PlatformId;
use matrix_sdk::Client;
use matrix_sdk::ruma::{OwnedEventId, OwnedUserId, UserId};

use crate::audience::Audience;
use crate::health::Vitals;
use crate::ledger::Ledger;
use crate::manners::Manners;
use crate::portraits::Gallery;
use crate::replies::Replies;
use crate::succession::Succession;
use crate::{Error, Settings, login};

/// The platform's name.
pub const PLATFORM: &str = "matrix";

/// Messages whose authors are kept in mind; more are looked up.
const MAX_AUTHORS: usize = 4_096;

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
    pub(crate) gallery: Gallery,
    pub(crate) succession: Succession,
    pub(crate) vitals: Vitals,
    /// The store was lost, and its rooms are to be taken up again.
    pub(crate) lost: AtomicBool,
}

impl Matrix {
    pub(crate) async fn connect_now(settings: Settings) -> Result<Arc<Self>, Error> {
        let client = login::client(&settings).await?;
        let own = client.user_id().map(UserId::to_owned).ok_or(Error::LoggedOut)?;
        let ledger = Ledger::new(client.clone());
        let succession = Succession::load(client.clone(), ledger.clone()).await?;
        let audience = Audience::new(client.clone(), ledger.clone(), succession.clone(), own.clone());
        let authors = Arc::new(Authors::default());
        let gallery = Gallery::new(client.clone(), ledger.clone());
        Ok(Arc::new(Self {
            id: PlatformId::new(PLATFORM)?,
            replies: Replies::new(
                client.clone(),
                ledger.clone(),
                audience.clone(),
                succession.clone(),
                authors.clone(),
                gallery.clone(),
            ),
            manners: Manners::new(settings.limits),
            authors,
            gallery,
            succession,
            vitals: Vitals::default(),
            lost: AtomicBool::new(false),
            client,
            own,
            settings,
            ledger,
            audience,
        }))
    }

    /// Says where pictures and names of personas come from. To be done before [`Matrix::begin`].
    pub fn show_portraits(&self, portraits: Arc<dyn Portraits>) {
        self.gallery.set_portraits(portraits);
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
