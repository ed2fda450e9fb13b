//! What a persona feels and notices. Pure: texts, vectors and times go in, states and labels come out.
//!
//! # What there is
//!
//! - [`Mind`]: how a persona is in one realm. Mood, energy, focus and sleep pressure go by themselves, in closed form, and it says
//!   when it wants to dream, nap or reflect. [`Minds`] keeps many and looks at those alone that have something due.
//! - [`MoodSense`], [`TagSense`]: the mood in what the persona says, and the tags of what people say. Both are linear classifiers
//!   over a sentence's embedding, its words and its letters, learned from the sentences in `examples/` with the embedding
//!   model that is in use ([`Senses`]), so that they cost no call of a chat model.
//!
//! # A mind's life
//!
//! ```
//! use std::sync::Arc;
//!
//! use azera_mind::{Activity, Effect, Event, Mind, MindId, Minds, Nature};
//! use azera_types::{PersonaId, RealmId, Timestamp};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let nature = Arc::new(Nature::default()); // the constants, and the realm's time zone
//! let id = MindId { persona: PersonaId::new("azera")?, realm: RealmId::new("guild")? };
//! let now: Timestamp = "2026-06-01T12:00:00Z".parse()?;
//!
//! // Read from the record, or new.
//! let mut minds = Minds::new();
//! minds.insert(id.clone(), Mind::new(now, &nature), nature);
//!
//! // A turn: how it is goes into the prompt; after the reply, what the reply tells of its mood comes back.
//! let state = minds.state(&id, now);
//! minds.apply(&id, now, Event::Exchange { felt: None });
//! let saved = serde_json::to_vec(&minds.get(&id))?;
//!
//! // Each second, or at `next_due`: what is time for? Who was told of has changed and is saved.
//! let evening: Timestamp = "2026-06-01T21:00:00Z".parse()?;
//! for (id, effects) in minds.tick(evening) {
//!     if effects.contains(&Effect::Due(Activity::Reflection)) {
//!         // ... and when the entry is written, or live chat went first:
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
//! - The same examples and vectors give the same sense.
//! - `Debug` shows no text.

mod classify;
mod drift;
mod due;
mod examples;
mod features;
mod mind;
mod minds;
mod mood;
mod nature;
mod saved;
mod senses;
mod tags;
mod tick;

pub use azera_config::Mind as Constants;
pub use classify::Error;
pub use examples::{Labelled, labelled};
pub use mind::{Activity, Effect, Event, Mind, State};
pub use minds::{MindId, Minds};
pub use mood::{Felt, Mood, MoodSense};
pub use nature::Nature;
pub use senses::Senses;
pub use tags::{Tag, TagSense};
