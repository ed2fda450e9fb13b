//! What an exchange and a picture do to a persona's mind.

use std::sync::Arc;

use azera_adapter::State;
use azera_affect::{DetectedMood, Event, Mind, MindId, MindParams};
use azera_memory::MessageRow;
use azera_types::{PersonaId, Place, PlatformId, Scope, Timestamp};

use super::{MindService, mind_id};
use crate::error::Error;

impl MindService {
    /// Returns the state that the persona has once a reply with this mood is stored. Nothing changes yet: a reply that
    /// cannot be stored is written again, and counts once.
    pub(crate) fn after_exchange(
        &self,
        message: &MessageRow,
        place: &Place,
        params: &Arc<MindParams>,
        felt: Option<DetectedMood>,
        again: bool,
    ) -> State {
        let (id, now) = (mind_id(&message.persona, &place.scope()), self.services.clock.now());
        let mut copy = azera_affect::Minds::new();
        if let Some(mind) = self.states.awake().get(&id) {
            copy.insert(id.clone(), mind.clone(), params.clone());
        }
        exchange(&mut copy, &id, now, params, felt, again)
    }

    /// Updates the mind after a reply with the mood detected in it was stored.
    pub(crate) fn exchanged(
        &self,
        message: &MessageRow,
        place: &Place,
        params: &Arc<MindParams>,
        felt: Option<DetectedMood>,
        again: bool,
    ) {
        let (id, now) = (mind_id(&message.persona, &place.scope()), self.services.clock.now());
        exchange(&mut self.states.awake(), &id, now, params, felt, again);
    }

    /// Lets a persona's mind pay for a picture that it drew in a place.
    pub(crate) async fn drew(&self, platform: &PlatformId, persona: &PersonaId, scope: &Scope) -> Result<(), Error> {
        let params = self.overrides(platform, scope).await?.params.clone();
        let (id, now) = (mind_id(persona, scope), self.services.clock.now());
        let mut awake = self.states.awake();
        if awake.get(&id).is_none() {
            awake.insert(id.clone(), Mind::new(now, &params), params);
        }
        awake.apply(&id, now, Event::Drew);
        Ok(())
    }
}

/// Updates a mind after a reply, and returns the persona's new state.
fn exchange(
    minds: &mut azera_affect::Minds,
    id: &MindId,
    now: Timestamp,
    params: &Arc<MindParams>,
    felt: Option<DetectedMood>,
    again: bool,
) -> State {
    if minds.get(id).is_none() {
        minds.insert(id.clone(), Mind::new(now, params), params.clone());
    }
    minds.set_params(id, now, params);
    // A regenerated reply belongs to the same exchange.
    if !again {
        minds.apply(id, now, Event::Exchange { felt });
    }
    let Some(state) = minds.state(id, now) else { return State::default() };
    let mood = felt.map_or(state.mood, |felt| felt.mood);
    State {
        mood: Some(mood.name().to_owned()),
        mood_value: Some(state.value as f32),
        energy: Some(state.energy as f32),
    }
}
