//! What a persona feels and notices. Pure: texts, vectors and times go in, states and labels come out.
//!
//! # What there is
//!
//! - [`Mind`]: how a persona is in one realm. Mood, energy, focus and sleep pressure go by themselves, in closed form, and it says
//!   when it wants to dream, nap or reflect. [`Minds`] keeps many and looks at those alone that have something due.
//! - [`Bond`]: what a persona feels towards one person.
//! - [`Rules`]: what the tags of a message call for: texts for that turn, feelings, and help that is shown word for word.
//! - [`blend`]: how a second style is mixed into the first as a feeling climbs.
//! - [`DangerLexicon`]: the safety net that needs no model: phrases of people in danger, in thirty languages.
//! - [`MoodClassifier`], [`TagClassifier`]: the mood in what the persona says, and the tags of what people say. Both are linear classifiers
//!   over a sentence's embedding, its words and its letters, learned from the sentences in `examples/` with the embedding
//!   model that is in use ([`Classifiers`]), so that they cost no call of a chat model.
//! - [`SalienceClassifier`]: likewise, which sentences are worth keeping as memories of their own, and of what [`Kind`]. A whole
//!   conversation gives what is [`ExtractedMemory`] of it: people's own words, with the messages they stand in.
//!
//! # A turn
//!
//! What is read before it: the mind of the persona in the realm, its bond with the person, the realm's rules.
//!
//! ```
//! use std::sync::Arc;
//!
//! use azera_affect::{Activity, Bond, Effect, Event, Layer, Listener, Mind, MindId, Minds, MindParams, RealmRules, Rules, Tag, blend};
//! use azera_types::{Dimension, PersonaId, RealmId, Timestamp};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let params = Arc::new(MindParams::default()); // the constants, and the realm's time zone
//! let id = MindId { persona: PersonaId::new("azera")?, realm: RealmId::new("guild")? };
//! let now: Timestamp = "2026-06-01T12:00:00Z".parse()?;
//! let mut minds = Minds::new();
//! minds.insert(id.clone(), Mind::new(now, &params), Arc::clone(&params)); // or as it was saved
//! let mut bond = Bond::new(); // likewise
//! let rules = Rules::with(&RealmRules::default())?;
//!
//! // The message is tagged (`TagSense`), what its tags call for is found, and the feelings change: before the reply, which shows them.
//! let tags = [Tag::Hostility];
//! bond.learn(&tags);
//! let matched = rules.matching(&tags, &bond);
//! bond.decay_turn(params.constants.emotion_decay_rate); // or the persona's own
//! bond.apply(&matched.deltas, params.constants.emotion_max_delta);
//!
//! // Composing: how the mind is, `emotional_state`, style and endings, from what changes least to what changes most. Dropping the act
//! // leaves the endings alone. `{{user}}` in any of it is the person's name.
//! let mut parts: Vec<String> = Vec::new();
//! if !matched.drop_act {
//!     let terse = ["Use short sentences.".to_owned(), "Answer in one sentence.".to_owned()];
//!     let layer = Layer { axis: Dimension::Irritation, threshold: 0.4, primary: &[], secondary: &terse };
//!     parts.extend(blend(&[layer], &bond).into_iter().map(str::to_owned));
//!     parts.extend(minds.state(&id, now).map(|state| format!("You feel {}.", state.mood)));
//!     parts.push(bond.words());
//! }
//! parts.extend(matched.endings);
//!
//! // The reply is written; below it stands help, word for word. Its mood is told (`MoodSense`), rides in the `done` event with value and
//! // energy, and goes into the mind. Mind and bond are saved.
//! let help: Vec<String> = matched.help.iter().map(|help| help.text(Listener { locale: Some("en-GB"), language: None })).collect();
//! minds.apply(&id, now, Event::Exchange { felt: None });
//! let (mind, bond) = (serde_json::to_vec(&minds.get(&id))?, serde_json::to_vec(&bond)?);
//!
//! // Between turns, each second or at `Minds::next_due`: what is it time for? Whoever is named has changed and is saved.
//! let evening: Timestamp = "2026-06-01T21:00:00Z".parse()?;
//! for (id, effects) in minds.tick(evening) {
//!     if effects.contains(&Effect::Due(Activity::Reflection)) {
//!         // ... and when the entry is written (`PutOff`, had live chat gone first):
//!         minds.apply(&id, evening, Event::Done(Activity::Reflection));
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Invariants:
//! - No I/O, no clock, no model: whoever calls brings the vectors.
//! - Into how many steps a time is cut makes no difference to a mind, every value stays within its bounds, and a clock that goes
//!   back changes none.
//! - A mind that is left alone until [`Mind::next_due`] misses nothing.
//! - Every feeling stays within its bounds, and no message changes one by more than the configured limit.
//! - What is kept of a conversation is text of its people, byte for byte; none of it is the persona's.
//! - No rule of a realm takes away what a safety rule says, shows or silences.
//! - The same examples and vectors give the same sense.
//! - `Debug` shows no text.

mod bond;
mod classifiers;
mod classify;
mod danger;
mod drift;
mod due;
mod examples;
mod extract;
mod features;
mod help;
mod mind;
mod minds;
mod mood;
mod params;
mod rule;
mod rules;
mod salience;
mod saved;
mod sentences;
mod style;
mod tags;
mod tick;

pub use azera_config::Mind as Constants;
pub use bond::{Bond, Deltas};
pub use classifiers::Classifiers;
pub use classify::Error;
pub use danger::{Danger, DangerLexicon, names_a_measure};
pub use examples::{LabelledSentence, labelled};
pub use extract::{ConversationMessage, ExtractedMemory, MessagePart};
pub use help::{Help, Listener, MAX_HELP_CHARS, check_in_opening, helped_countries, helps_in};
pub use mind::{Activity, Effect, Event, Mind, State};
pub use minds::{MindId, Minds};
pub use mood::{DetectedMood, Mood, MoodClassifier};
pub use params::MindParams;
pub use rule::{MAX_ENDING_CHARS, MAX_RULE_DELTA, MAX_RULE_NAME_CHARS, MAX_RULE_TAGS, MAX_RULES, Rule, RuleError};
pub use rules::{MAX_ENDINGS, MAX_ENDINGS_CHARS, MatchedRules, Origin, RealmRules, Rules};
pub use salience::{Kind, SalienceClassifier, SalienceScore};
pub use style::{Layer, blend};
pub use tags::{Tag, TagClassifier};
