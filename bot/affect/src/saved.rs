//! The saved form of a mind. Fields that were added later have defaults, so that older data can still be read.

use azera_types::Timestamp;
use serde::{Deserialize, Serialize};

use crate::mind::{Activity, EVEN_MOOD, Mind, PendingActivity, share};
use crate::mood::Mood;

/// The version of the saved form. It rises when older data must be read in another way, not when a field is added.
const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
struct Saved {
    version: u32,
    at: Timestamp,
    #[serde(default)]
    valence: f64,
    #[serde(default)]
    arousal: f64,
    #[serde(default)]
    energy: f64,
    #[serde(default)]
    focus: f64,
    #[serde(default)]
    pressure: f64,
    #[serde(default)]
    mood: String,
    #[serde(default)]
    felt_at: Option<Timestamp>,
    #[serde(default)]
    quiet_since: Option<Timestamp>,
    #[serde(default)]
    last_exchange: Option<Timestamp>,
    #[serde(default)]
    last_dream: Option<Timestamp>,
    #[serde(default)]
    last_reflection: Option<Timestamp>,
    #[serde(default)]
    undreamt: u32,
    #[serde(default)]
    unreflected: u32,
    #[serde(default)]
    unreflected_since: Option<Timestamp>,
    #[serde(default)]
    #[serde(rename = "offer")]
    pending: Option<SavedPendingActivity>,
}

#[derive(Serialize, Deserialize)]
struct SavedPendingActivity {
    activity: String,
    at: Timestamp,
    #[serde(default)]
    exchanges: u32,
}

impl Serialize for Mind {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let pending = self.pending.map(|pending| SavedPendingActivity {
            activity: pending.activity.name().to_owned(),
            at: pending.at,
            exchanges: pending.exchanges,
        });
        let saved = Saved {
            version: VERSION,
            at: self.at,
            valence: self.valence,
            arousal: self.arousal,
            energy: self.energy,
            focus: self.focus,
            pressure: self.pressure,
            mood: self.label.name().to_owned(),
            felt_at: self.felt_at,
            quiet_since: Some(self.quiet_since),
            last_exchange: self.last_exchange,
            last_dream: self.last_dream,
            last_reflection: self.last_reflection,
            undreamt: self.undreamt,
            unreflected: self.unreflected,
            unreflected_since: self.unreflected_since,
            pending,
        };
        saved.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Mind {
    /// Rejects data that a newer version saved. Numbers out of their bounds are clamped.
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let saved = Saved::deserialize(deserializer)?;
        if saved.version > VERSION {
            let message = format!("this mind was saved in form {}, and {VERSION} is the newest known", saved.version);
            return Err(serde::de::Error::custom(message));
        }
        let pending = |pending: SavedPendingActivity| {
            let activity = Activity::named(&pending.activity)?;
            Some(PendingActivity { activity, at: pending.at, exchanges: pending.exchanges })
        };
        Ok(Self {
            at: saved.at,
            valence: if saved.valence.is_nan() { 0.0 } else { saved.valence.clamp(-1.0, 1.0) },
            arousal: share(saved.arousal),
            energy: share(saved.energy),
            focus: share(saved.focus),
            pressure: share(saved.pressure),
            label: Mood::named(&saved.mood).unwrap_or(EVEN_MOOD),
            felt_at: saved.felt_at,
            quiet_since: saved.quiet_since.unwrap_or(saved.at),
            last_exchange: saved.last_exchange,
            last_dream: saved.last_dream,
            last_reflection: saved.last_reflection,
            undreamt: saved.undreamt,
            unreflected: saved.unreflected,
            unreflected_since: saved.unreflected_since,
            pending: saved.pending.and_then(pending),
        })
    }
}
