//! Maps DM channels to their people.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serenity::all::{ChannelId, UserId};

/// Most DM channels in the cache; Discord is asked about others.
const MAX_KNOWN: usize = 10_000;

/// The person of each DM channel. It never changes, so it may be cached.
#[derive(Default)]
pub(crate) struct DmChannels(Mutex<HashMap<ChannelId, UserId>>);

impl DmChannels {
    pub(crate) fn note(&self, channel: ChannelId, user: UserId) {
        let mut known = self.lock();
        if known.len() >= MAX_KNOWN {
            known.clear();
        }
        known.insert(channel, user);
    }

    /// Returns the person of a DM channel, if known.
    pub(crate) fn known(&self, channel: ChannelId) -> Option<UserId> {
        self.lock().get(&channel).copied()
    }

    /// Returns the DM channel of a person, if known.
    pub(crate) fn of(&self, user: UserId) -> Option<ChannelId> {
        self.lock().iter().find(|(_, whose)| **whose == user).map(|(channel, _)| *channel)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ChannelId, UserId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
