//! How personas are and what they feel: the one owner of all minds, and what a turn does to them.
//!
//! A mind belongs to a persona and the public places of a realm, or to a private chat or a DM alone; feelings towards a person belong
//! to the place likewise, so that nothing told in private shows elsewhere.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use azera_adapter::State;
use azera_memory::{BondRow, MessageRow, MindRow};
use azera_mind::{Bond, Event, Felt, Layer, Matched, Mind, MindId, Mood, Nature, Rules, Tag, blend};
use azera_personas::{Persona, fill_placeholders};
use azera_types::{PersonId, Place, RealmId, Scope};

use crate::azera::Azera;
use crate::error::Error;

/// All minds, and what they go by.
pub(crate) struct Minds {
    awake: Mutex<azera_mind::Minds>,
    nature: Arc<Nature>,
    rules: Rules,
}

impl Minds {
    pub(crate) fn new(nature: Arc<Nature>) -> Self {
        Self { awake: Mutex::default(), nature, rules: Rules::builtin() }
    }

    fn awake(&self) -> MutexGuard<'_, azera_mind::Minds> {
        self.awake.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// In what manner a message is to be answered.
pub(crate) struct Manner {
    /// For the prompt, the most important first.
    pub(crate) lines: Vec<String>,
    /// No role is played, whatever the persona is.
    pub(crate) plainly: bool,
    /// What stands below the reply, word for word.
    pub(crate) help: Vec<String>,
    /// Towards whom something is felt, and what from now on.
    towards: PersonId,
    bond: Bond,
}

fn mind_id(message: &MessageRow, place: &Scope) -> Option<MindId> {
    // A scope is no longer than a realm's id may be, but for ids at the very limit.
    Some(MindId { persona: message.persona.clone(), realm: RealmId::new(place.to_string()).ok()? })
}

impl Azera {
    /// Brings back the minds as the record has them, and no others.
    pub(crate) async fn wake(&self) -> Result<(), Error> {
        *self.0.minds.awake() = azera_mind::Minds::new();
        for row in self.blocking(azera_memory::Memory::minds).await? {
            let (Ok(realm), Ok(mind)) = (RealmId::new(row.scope.to_string()), serde_json::from_value::<Mind>(row.mind))
            else {
                tracing::warn!(persona = %row.persona, scope = %row.scope, "a mind cannot be read and begins anew");
                continue;
            };
            let nature = self.0.minds.nature.clone();
            self.0.minds.awake().insert(MindId { persona: row.persona, realm }, mind, nature);
        }
        Ok(())
    }

    /// How a message is to be answered, by its tags and by what is felt towards the person. With `again` the feelings are those that
    /// it left when it was answered first.
    pub(crate) async fn manner(
        &self,
        message: &MessageRow,
        towards: &PersonId,
        place: &Place,
        persona: &Persona,
        vector: Option<&[f32]>,
        again: bool,
    ) -> Result<Manner, Error> {
        let minds = &self.0.minds;
        let constants = &minds.nature.constants;
        let (of, person, scope) = (message.persona.clone(), towards.clone(), place.scope());
        let row = self.blocking(move |memory| memory.bond(&of, &person, &scope)).await?;
        let mut bond: Bond = row
            .map(|row| serde_json::from_value(row.bond))
            .transpose()
            .unwrap_or_else(|error| {
                tracing::warn!(%error, "what is felt towards somebody cannot be read and begins anew");
                None
            })
            .unwrap_or_default();
        let tags: Vec<Tag> = vector.map_or_else(Vec::new, |vector| self.tags(&message.text, vector));
        if !again {
            bond.learn(&tags);
        }
        let Matched { endings, deltas, drop_act, help, .. } = minds.rules.matching(&tags, &bond);
        if !again {
            bond.decay_turn(constants.emotion_decay_rate);
            bond.apply(&deltas, constants.emotion_max_delta);
        }
        let mut lines = endings;
        if !drop_act {
            lines.extend(Some(bond.words()).filter(|words| !words.is_empty()));
            let sentiments = persona.style_blend.sentiment.as_ref().map(|layer| {
                let [primary, secondary] =
                    [&layer.primary, &layer.secondary].map(|name| persona.sentiment(name).unwrap_or_default());
                (layer, primary, secondary)
            });
            let layers: Vec<Layer<'_>> = sentiments
                .iter()
                .map(|(layer, primary, secondary)| Layer {
                    axis: layer.axis,
                    threshold: layer.threshold,
                    primary,
                    secondary,
                })
                .collect();
            lines.extend(blend(&layers, &bond).into_iter().map(str::to_owned));
            lines.extend(self.mood_words(message, place));
        }
        let name = message.author.name();
        let lines = lines.iter().map(|line| fill_placeholders(line, name, &persona.name).into_owned()).collect();
        let help = help.iter().map(|help| help.text(self.0.config.locale.as_deref())).collect();
        Ok(Manner { lines, plainly: drop_act, help, towards: towards.clone(), bond })
    }

    /// The mood in words, unless it is an even one.
    fn mood_words(&self, message: &MessageRow, place: &Place) -> Option<String> {
        let id = mind_id(message, &place.scope())?;
        let state = self.0.minds.awake().state(&id, self.0.clock.now())?;
        (state.mood != Mood::Calm).then(|| format!("You feel {}.", state.mood))
    }

    /// How the persona is after a reply in which this was felt.
    pub(crate) fn exchanged(&self, message: &MessageRow, place: &Place, felt: Option<Felt>, again: bool) -> State {
        let Some(id) = mind_id(message, &place.scope()) else { return State::default() };
        let (now, nature) = (self.0.clock.now(), &self.0.minds.nature);
        let mut awake = self.0.minds.awake();
        if awake.get(&id).is_none() {
            awake.insert(id.clone(), Mind::new(now, nature), nature.clone());
        }
        // Making a reply anew is the same exchange.
        if !again {
            awake.apply(&id, now, Event::Exchange { felt });
        }
        let Some(state) = awake.state(&id, now) else { return State::default() };
        let mood = felt.map_or(state.mood, |felt| felt.mood);
        State {
            mood: Some(mood.name().to_owned()),
            mood_value: Some(state.value as f32),
            energy: Some(state.energy as f32),
        }
    }

    /// Keeps mind and feelings as they are after a message's turn.
    pub(crate) async fn keep_state(&self, message: &MessageRow, place: &Place, manner: &Manner) {
        let scope = place.scope();
        let mind = mind_id(message, &scope).and_then(|id| {
            let mind = self.0.minds.awake().get(&id).map(serde_json::to_value)?.ok()?;
            Some(MindRow { persona: id.persona, scope, seq: message.seq, mind })
        });
        let bond = serde_json::to_value(&manner.bond).ok().map(|bond| BondRow {
            persona: message.persona.clone(),
            person: manner.towards.clone(),
            scope: place.scope(),
            seq: message.seq,
            bond,
        });
        let message = message.clone();
        if let Err(error) = self.blocking(move |memory| memory.put_state(&message, mind, bond)).await {
            tracing::warn!(%error, "a persona's state is not kept");
        }
    }
}
