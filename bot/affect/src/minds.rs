//! A collection of minds with one owner.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use azera_types::{PersonaId, Scope, Timestamp};

use crate::mind::{CLOCK_SLACK, Effect, Event, Mind, State};
use crate::params::MindParams;

/// The identity of a mind: a persona has one in each place.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MindId {
    /// The persona.
    pub persona: PersonaId,
    /// The place that the mind belongs to: the public channels of a realm together, one private chat, or one direct
    /// message.
    pub place: Scope,
}

struct MindEntry {
    mind: Mind,
    params: Arc<MindParams>,
    /// The mind's due time in the queue.
    due: Option<Timestamp>,
}

/// The active minds of this process, with the time when each is next due. A tick looks only at those that are due.
///
/// There is no limit: the host decides which minds to insert, and each takes some hundred bytes. A mind with nothing
/// due ([`Mind::next_due`] is `None`) can be removed and inserted again at its next message.
#[derive(Default)]
pub struct Minds {
    entries: HashMap<MindId, MindEntry>,
    queue: BTreeSet<(Timestamp, MindId)>,
    last_tick: Option<Timestamp>,
}

impl Minds {
    /// Creates an empty collection.
    pub fn new() -> Self {
        Self::default()
    }

    /// Inserts a mind, and replaces an earlier one with the same id.
    pub fn insert(&mut self, id: MindId, mind: Mind, params: Arc<MindParams>) {
        self.remove(&id);
        self.entries.insert(id.clone(), MindEntry { mind, params, due: None });
        self.queue_up(&id);
    }

    /// Removes a mind.
    pub fn remove(&mut self, id: &MindId) -> Option<Mind> {
        let entries = self.entries.remove(id)?;
        if let Some(due) = entries.due {
            self.queue.remove(&(due, id.clone()));
        }
        Some(entries.mind)
    }

    /// Returns a mind in its last changed state, to be saved.
    pub fn get(&self, id: &MindId) -> Option<&Mind> {
        self.entries.get(id).map(|entries| &entries.mind)
    }

    /// Returns the state of a mind at `now`.
    pub fn state(&self, id: &MindId, now: Timestamp) -> Option<State> {
        self.entries.get(id).map(|entries| entries.mind.state(now, &entries.params))
    }

    /// Iterates over the ids.
    pub fn ids(&self) -> impl Iterator<Item = &MindId> {
        self.entries.keys()
    }

    /// Returns the number of minds.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns true if there are no minds.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns when the first mind is due. A tick before that does nothing.
    pub fn next_due(&self) -> Option<Timestamp> {
        self.queue.first().map(|(due, _)| *due)
    }

    /// Advances the minds that are due, the earliest first, and returns their effects. Only the returned minds have
    /// changed.
    pub fn tick(&mut self, now: Timestamp) -> Vec<(MindId, Vec<Effect>)> {
        if self.last_tick.is_some_and(|last| last.duration_since(now) > CLOCK_SLACK) {
            self.restart_clock(now);
        }
        self.last_tick = Some(now);
        let due = self.queue.iter().take_while(|(due, _)| *due <= now);
        let due: Vec<MindId> = due.map(|(_, id)| id.clone()).collect();
        let mut all_effects = Vec::with_capacity(due.len());
        for id in due {
            let Some(entries) = self.entries.get_mut(&id) else { continue };
            let effects = entries.mind.advance(now, &entries.params);
            self.queue_up(&id);
            all_effects.push((id, effects));
        }
        all_effects
    }

    /// Applies an event to a mind and returns its effects; `None` if the mind is not here.
    pub fn apply(&mut self, id: &MindId, now: Timestamp, event: Event) -> Option<Vec<Effect>> {
        let entries = self.entries.get_mut(id)?;
        let effects = entries.mind.apply(now, event, &entries.params);
        self.queue_up(id);
        Some(effects)
    }

    /// Gives a mind other parameters from `now` on. The time until then passes under the earlier ones.
    pub fn set_params(&mut self, id: &MindId, now: Timestamp, params: &Arc<MindParams>) {
        let Some(entries) = self.entries.get_mut(id).filter(|entries| !Arc::ptr_eq(&entries.params, params)) else {
            return;
        };
        entries.mind.perceive(now, &entries.params);
        entries.params = Arc::clone(params);
        self.queue_up(id);
    }

    /// Moves all minds to the new time after the clock went back.
    fn restart_clock(&mut self, now: Timestamp) {
        let ids: Vec<MindId> = self.entries.keys().cloned().collect();
        for id in ids {
            if let Some(entries) = self.entries.get_mut(&id) {
                entries.mind.perceive(now, &entries.params);
            }
            self.queue_up(&id);
        }
    }

    fn queue_up(&mut self, id: &MindId) {
        let Some(entries) = self.entries.get_mut(id) else { return };
        let due = entries.mind.next_due(&entries.params);
        let before = std::mem::replace(&mut entries.due, due);
        if before == due {
            return;
        }
        if let Some(before) = before {
            self.queue.remove(&(before, id.clone()));
        }
        if let Some(due) = due {
            self.queue.insert((due, id.clone()));
        }
    }
}
