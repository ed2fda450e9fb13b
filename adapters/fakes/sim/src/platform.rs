use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use azera_adapter::{Access, Outbound, Platform, PlatformError, Post, RealmPreferences};
use azera_types::{ChatId, Clock, IdError, MessageId, PersonId, Place, PlatformId, ReadableScopes, RealmId, Timestamp};

use crate::World;

/// The platform's name.
pub const PLATFORM: &str = "sim";

/// A [`World`] as the core sees it: a platform.
pub struct SimPlatform {
    id: PlatformId,
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    world: World,
    /// Every reply ever shown, those taken back included: none of them may be shown again.
    shown: HashSet<MessageId>,
    /// Replies shown and not yet told of in the output, in order.
    fresh: Vec<Delivered>,
}

/// A reply as it arrived.
pub(crate) struct Delivered {
    /// When.
    pub(crate) at: Timestamp,
    /// Whether it was shown before and chosen again.
    pub(crate) again: bool,
    pub(crate) outbound: Outbound,
    /// What was written unasked, and what it rests on.
    pub(crate) post: Option<(String, Vec<MessageId>)>,
}

impl SimPlatform {
    /// An empty world on a clock that the replay's session moves.
    pub fn new(clock: Arc<dyn Clock>) -> Result<Self, IdError> {
        Ok(Self { id: PlatformId::new(PLATFORM)?, clock, state: Mutex::default() })
    }

    /// The virtual time.
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The world, to look at or to change. The guard must not be kept over an await.
    pub fn with_world<T>(&self, act: impl FnOnce(&mut World) -> T) -> T {
        act(&mut self.lock().world)
    }

    /// The replies that arrived since the last call, in order.
    pub(crate) fn take_delivered(&self) -> Vec<Delivered> {
        std::mem::take(&mut self.lock().fresh)
    }

    /// Whether a reply was ever shown.
    pub(crate) fn was_shown(&self, reply: &MessageId) -> bool {
        self.lock().shown.contains(reply)
    }

    /// Shows something once.
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

    /// A chat that no line has made yet may still come: an earlier replay may have left something to be shown there.
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

    /// The output tells what happened, so a reply taken back stays told; it is not shown again.
    async fn retract(&self, _chat: &ChatId, reply: &MessageId, _at: Timestamp) -> Result<(), PlatformError> {
        self.lock().shown.insert(reply.clone());
        Ok(())
    }
}
