use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use azera_adapter::{Access, Outbound, Platform, PlatformError, Post, RealmPreferences};
use azera_types::{ChatId, Clock, IdError, MessageId, PersonId, Place, PlatformId, ReadableScopes, RealmId, Timestamp};

use crate::World;

/// The platform's name.
pub const PLATFORM: &str = "sim";

/// A [`World`] as a platform.
pub struct SimPlatform {
    id: PlatformId,
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    world: World,
    /// Every reply ever shown, including retracted ones; none may be shown again.
    shown: HashSet<MessageId>,
    /// Shown replies that are not in the output yet, in order.
    fresh: Vec<Delivered>,
}

/// A delivered reply.
pub(crate) struct Delivered {
    /// The time.
    pub(crate) at: Timestamp,
    /// True if it was shown before and chosen again.
    pub(crate) again: bool,
    pub(crate) outbound: Outbound,
    /// Kind and sources of a post.
    pub(crate) post: Option<(String, Vec<MessageId>)>,
}

impl SimPlatform {
    /// Creates an empty world on a clock that the session moves.
    pub fn new(clock: Arc<dyn Clock>) -> Result<Self, IdError> {
        Ok(Self { id: PlatformId::new(PLATFORM)?, clock, state: Mutex::default() })
    }

    /// Returns the virtual time.
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Reads or changes the world. Do not hold the guard across an await.
    pub fn with_world<T>(&self, act: impl FnOnce(&mut World) -> T) -> T {
        act(&mut self.lock().world)
    }

    /// Returns the replies delivered since the last call, in order.
    pub(crate) fn take_delivered(&self) -> Vec<Delivered> {
        std::mem::take(&mut self.lock().fresh)
    }

    /// Returns true if a reply was ever shown.
    pub(crate) fn was_shown(&self, reply: &MessageId) -> bool {
        self.lock().shown.contains(reply)
    }

    /// Shows a reply or post once.
    fn show(&self, outbound: &Outbound, post: Option<(String, Vec<MessageId>)>) {
        let at = self.clock.now();
        let mut state = self.lock();
        if state.shown.insert(outbound.id.clone()) {
            state.fresh.push(Delivered { at, again: false, outbound: outbound.clone(), post });
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Platform for SimPlatform {
    fn id(&self) -> &PlatformId {
        &self.id
    }

    /// A chat may be created by a later line; an earlier replay may have left a reply for it.
    async fn place(&self, chat: &ChatId, asker: &PersonId) -> Result<Option<Place>, PlatformError> {
        let state = self.lock();
        if !state.world.has_chat(chat) {
            return Err(PlatformError::Transient(format!("{chat} is not known yet")));
        }
        Ok(state.world.place(chat, asker))
    }

    async fn readable_scopes(&self, person: &PersonId) -> Result<ReadableScopes, PlatformError> {
        Ok(self.lock().world.readable_scopes(person))
    }

    async fn access(&self, chat: &ChatId, person: &PersonId) -> Result<Access, PlatformError> {
        Ok(self.lock().world.access(chat, person))
    }

    async fn deliver(&self, outbound: &Outbound) -> Result<(), PlatformError> {
        self.show(outbound, None);
        Ok(())
    }

    async fn post(&self, post: &Post) -> Result<(), PlatformError> {
        self.show(&post.outbound, Some((post.kind.clone(), post.sources.clone())));
        Ok(())
    }

    async fn place_for_all(&self, chat: &ChatId) -> Result<Option<Place>, PlatformError> {
        let state = self.lock();
        if !state.world.has_chat(chat) {
            return Err(PlatformError::Transient(format!("{chat} is not known yet")));
        }
        Ok(state.world.place_for_all(chat))
    }

    async fn realm(&self, realm: &RealmId) -> Result<RealmPreferences, PlatformError> {
        let state = self.lock();
        let wishes = |realm: &crate::Realm| RealmPreferences {
            time_zone: realm.time_zone.clone(),
            journal: realm.journal.clone(),
        };
        Ok(state.world.realm(realm).map(wishes).unwrap_or_default())
    }

    async fn show_again(&self, outbound: &Outbound) -> Result<(), PlatformError> {
        let at = self.clock.now();
        let mut state = self.lock();
        state.shown.insert(outbound.id.clone());
        state.fresh.push(Delivered { at, again: true, outbound: outbound.clone(), post: None });
        Ok(())
    }

    /// The output cannot be changed, so this only prevents the reply from being shown again.
    async fn retract(&self, _chat: &ChatId, reply: &MessageId, _at: Timestamp) -> Result<(), PlatformError> {
        self.lock().shown.insert(reply.clone());
        Ok(())
    }
}
