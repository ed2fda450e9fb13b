//! Many minds with one owner.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use azera_types::{PersonaId, RealmId, Timestamp};

use crate::mind::{CLOCK_SLACK, Effect, Event, Mind, State};
use crate::params::MindParams;

/// Whose mind it is: a persona has one in each realm.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MindId {
    /// The persona.
    pub persona: PersonaId,
    /// The realm.
    pub realm: RealmId,
}

struct MindEntry {
    mind: Mind,
    params: Arc<MindParams>,
    /// Where it stands in the queue.
    due: Option<Timestamp>,
}

/// The minds that are awake in this process, and when each is next due. A tick looks at those alone whose time has come.
///
/// There is no limit here to how many there are: one for each persona and realm that the host puts in, some hundred bytes each.
/// One that has nothing due ([`Mind::next_due`] is `None`) can be taken out and put back at its next message.
#[derive(Default)]
pub struct Minds {
    entries: HashMap<MindId, MindEntry>,
    queue: BTreeSet<(Timestamp, MindId)>,
    last_tick: Option<Timestamp>,
}

impl Minds {
    /// No minds.
    pub fn new() -> Self {
        Self::default()
    }

    /// Puts a mind in, in the place of the one it was before.
    pub fn insert(&mut self, id: MindId, mind: Mind, params: Arc<MindParams>) {
        self.remove(&id);
        self.entries.insert(id.clone(), MindEntry { mind, params, due: None });
        self.queue_up(&id);
    }

    /// Takes a mind out.
    pub fn remove(&mut self, id: &MindId) -> Option<Mind> {
        let entries = self.entries.remove(id)?;
        if let Some(due) = entries.due {
            self.queue.remove(&(due, id.clone()));
        }
        Some(entries.mind)
    }

    /// A mind as it was last touched, to be saved.
    pub fn get(&self, id: &MindId) -> Option<&Mind> {
        self.entries.get(id).map(|entries| &entries.mind)
    }

    /// How a mind is at `now`.
    pub fn state(&self, id: &MindId, now: Timestamp) -> Option<State> {
        self.entries.get(id).map(|entries| entries.mind.state(now, &entries.params))
    }

    /// Whose they are.
    pub fn ids(&self) -> impl Iterator<Item = &MindId> {
        self.entries.keys()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// When the first of them is due: no tick before that does anything.
    pub fn next_due(&self) -> Option<Timestamp> {
        self.queue.first().map(|(due, _)| *due)
    }

    /// Lets the minds that are due go on, those due earlier first, and tells what follows. Only minds that are named were changed.
    pub fn tick(&mut self, now: Timestamp) -> Vec<(MindId, Vec<Effect>)> {
        if self.last_tick.is_some_and(|last| last.duration_since(now) > CLOCK_SLACK) {
            self.start_over(now);
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

    /// Takes what happened to one of them and tells what follows; `None` if it is not here.
    pub fn apply(&mut self, id: &MindId, now: Timestamp, event: Event) -> Option<Vec<Effect>> {
        let entries = self.entries.get_mut(id)?;
        let effects = entries.mind.apply(now, event, &entries.params);
        self.queue_up(id);
        Some(effects)
    }

    /// Gives a mind another nature from `now` on. What passed until then passed under the one before.
    pub fn set_params(&mut self, id: &MindId, now: Timestamp, params: &Arc<MindParams>) {
        let Some(entries) = self.entries.get_mut(id).filter(|entries| !Arc::ptr_eq(&entries.params, params)) else {
            return;
        };
        entries.mind.perceive(now, &entries.params);
        entries.params = Arc::clone(params);
        self.queue_up(id);
    }

    /// After the clock went back: all of them go on from the time it is now.
    fn start_over(&mut self, now: Timestamp) {
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
