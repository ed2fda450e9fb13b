//! Affect: the feelings of a persona, and classifiers for messages. The crate is pure: texts, vectors and times go in,
//! states and labels come out.
//!
//! # Contents
//!
//! - [`Mind`]: the mental state of a persona in one realm. Mood, energy, focus and sleep pressure change over time in
//!   closed form. A mind says when a dream, nap or reflection is due. [`Minds`] holds many and looks only at those with
//!   something due.
//! - [`Bond`]: the feelings of a persona towards one person.
//! - [`Rules`]: what the tags of a message call for: texts for that turn's prompt, changes of feelings, and help that
//!   is shown word for word.
//! - [`blend`]: mixes a second style into the first as a feeling rises.
//! - [`DangerLexicon`]: a safety net that needs no model: phrases of people in danger, in thirty languages.
//! - [`MoodClassifier`], [`TagClassifier`]: detect the mood of a persona's text and the tags of a person's message.
//!   Both are linear classifiers over a sentence's embedding, words and letters. They are trained on the sentences in
//!   `examples/` with the current embedding model ([`Classifiers`]), so they need no call of a chat model.
//! - [`SalienceClassifier`]: rates in the same way which sentences are worth keeping as memories, and of which
//!   [`Kind`]. Applied to a conversation it returns [`ExtractedMemory`]s: people's own words, with the messages that
//!   contain them.
//!
//! # A turn
//!
//! The caller loads three things before a turn: the mind of the persona in the realm, its bond with the person, and the
//! realm's rules.
//!
//! ```
//! use std::sync::Arc;
//!
//! use azera_affect::{Activity, Bond, Effect, Event, Layer, Listener, Mind, MindId, Minds, MindParams, RealmRules, Rules, Tag, blend};
//! use azera_types::{Dimension, PersonaId, Timestamp};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let params = Arc::new(MindParams::default()); // the constants, and the realm's time zone
//! let id = MindId { persona: PersonaId::new("azera")?, place: "realm:guild".parse()? };
//! let now: Timestamp = "2026-06-01T12:00:00Z".parse()?;
//! let mut minds = Minds::new();
//! minds.insert(id.clone(), Mind::new(now, &params), Arc::clone(&params)); // or a saved mind
//! let mut bond = Bond::new(); // or a saved bond
//! let rules = Rules::with(&RealmRules::default())?;
//!
//! // `TagClassifier` tags the message, and the rules match the tags. The feelings change before the reply, so that the reply shows them.
//! let tags = [Tag::Hostility];
//! bond.learn(&tags);
//! let matched = rules.matching(&tags, &bond);
//! bond.decay_turn(params.constants.emotion_decay_rate); // or the persona's own rate
//! bond.apply(&matched.deltas, params.constants.emotion_max_delta);
//!
//! // The prompt gets the style, the mood, the feelings and the endings, from what changes least to what changes most. If the rules
//! // drop the act, only the endings remain. `{{user}}` stands for the person's name everywhere.
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
//! // The model writes the reply, and help stands below it, word for word. `MoodClassifier` detects the reply's mood, which goes into the
//! // mind and, with value and energy, into the `done` event. Then mind and bond are saved.
//! let help: Vec<String> = matched.help.iter().map(|help| help.text(Listener { locale: Some("en-GB"), language: None })).collect();
//! minds.apply(&id, now, Event::Exchange { felt: None });
//! let (mind, bond) = (serde_json::to_vec(&minds.get(&id))?, serde_json::to_vec(&bond)?);
//!
//! // Between turns, each second or at `Minds::next_due`, a tick returns what is due. The minds that it names have changed and are saved.
//! let evening: Timestamp = "2026-06-01T21:00:00Z".parse()?;
//! for (id, effects) in minds.tick(evening) {
//!     if effects.contains(&Effect::Due(Activity::Reflection)) {
//!         // ... after the entry is written (or `PutOff`, if live chat went first):
//!         minds.apply(&id, evening, Event::Done(Activity::Reflection));
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Invariants:
//! - No I/O, no clock, no model: the caller provides the vectors.
//! - A mind's state does not depend on how many steps a time is divided into. Every value stays within its bounds, and
//!   a clock that goes back changes none.
//! - A mind that is left alone until [`Mind::next_due`] misses nothing.
//! - Every feeling stays within its bounds, and no message changes one by more than the configured limit.
//! - An extracted memory is text of the conversation's people, byte for byte. It contains nothing that the persona
//!   wrote.
//! - No rule of a realm removes what a safety rule says, shows or silences.
//! - The same examples and vectors give the same classifier.
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
pub use danger::{Danger, DangerLexicon, Harm, Reading, names_a_measure};
pub use examples::{LabelledSentence, labelled};
pub use extract::{ConversationMessage, ExtractedMemory, MessagePart};
pub use help::{Help, Listener, MAX_HELP_CHARS, check_in_opening, helped_countries, helps_in, refuses};
pub use mind::{Activity, Effect, Event, Mind, State};
pub use minds::{MindId, Minds};
pub use mood::{DetectedMood, Mood, MoodClassifier};
pub use params::MindParams;
pub use rule::{MAX_ENDING_CHARS, MAX_RULE_DELTA, MAX_RULE_NAME_CHARS, MAX_RULE_TAGS, MAX_RULES, Rule, RuleError};
pub use rules::{MAX_ENDINGS, MAX_ENDINGS_CHARS, MatchedRules, Origin, RealmRules, Rules};
pub use salience::{Kind, SalienceClassifier, SalienceScore};
pub use sentences::sentences_around;
pub use style::{Layer, blend};
pub use tags::{Tag, TagClassifier};
