//! The feelings of a persona towards a person.

use std::collections::BTreeMap;

use azera_types::{Dimension, Timestamp};
use serde::{Deserialize, Serialize};

use crate::tags::Tag;

/// The version of the saved form. It rises when older data must be read in another way, not when a feeling is added.
const VERSION: u32 = 1;

/// A feeling nearer to 0 than this counts as none, because decay alone would never end it.
const LEAST_FELT: f64 = 0.005;

/// The most feelings in one prompt: the strongest ones.
const MAX_DESCRIBED: usize = 3;

/// Seconds without a message of the person after which a role under 18 is no longer in force.
const YOUNG_ROLE_LASTS_S: i64 = 24 * 3_600;

/// Seconds during which a conversation that has shown help in full shows only a short line.
const HELP_LASTS_S: i64 = 6 * 3_600;

/// Changes of feelings.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Deltas(BTreeMap<Dimension, f64>);

impl Deltas {
    /// Returns the change of one feeling, or 0 if there is none.
    pub fn get(&self, dimension: Dimension) -> f64 {
        self.0.get(&dimension).copied().unwrap_or(0.0)
    }

    /// Adds to the change of one feeling. A delta that is not finite is ignored.
    pub fn add(&mut self, dimension: Dimension, delta: f64) {
        if delta.is_finite() {
            *self.0.entry(dimension).or_default() += delta;
        }
    }

    /// Adds all changes of another.
    pub fn extend(&mut self, other: &Self) {
        other.iter().for_each(|(dimension, delta)| self.add(dimension, delta));
    }

    /// Iterates over the changes.
    pub fn iter(&self) -> impl Iterator<Item = (Dimension, f64)> {
        self.0.iter().map(|(dimension, delta)| (*dimension, *delta))
    }

    /// Returns true if nothing changes.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<(Dimension, f64)> for Deltas {
    fn from_iter<I: IntoIterator<Item = (Dimension, f64)>>(deltas: I) -> Self {
        let mut all = Self::default();
        deltas.into_iter().for_each(|(dimension, delta)| all.add(dimension, delta));
        all
    }
}

/// The feelings of one persona towards one person, and the facts about the person that must outlast a message.
///
/// Each feeling stays between [`Dimension::least`] and 1, and a share of it fades each turn.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Bond {
    /// The feelings that are not 0.
    feelings: BTreeMap<Dimension, f64>,
    minor: bool,
    /// When the full help text was last shown.
    helped_at: Option<Timestamp>,
    /// The person's last message in a conversation in which the persona was asked to be somebody under 18.
    young_role_at: Option<Timestamp>,
}

impl Bond {
    /// Creates the bond with somebody new, without any feelings.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the strength of a feeling.
    pub fn get(&self, dimension: Dimension) -> f64 {
        self.feelings.get(&dimension).copied().unwrap_or(0.0)
    }

    /// Returns true if the person once said that they are under 18. This then holds for every later message.
    pub fn is_minor(&self) -> bool {
        self.minor
    }

    /// Ends a turn: every feeling loses this share of itself.
    pub fn decay_turn(&mut self, rate: f64) {
        let retained = 1.0 - crate::mind::share(rate);
        self.feelings.values_mut().for_each(|value| *value *= retained);
        self.feelings.retain(|_, value| value.abs() >= LEAST_FELT);
    }

    /// Applies the changes of one message, each limited to `max_delta`.
    pub fn apply(&mut self, deltas: &Deltas, max_delta: f64) {
        let most = crate::mind::share(max_delta);
        for (dimension, delta) in deltas.iter() {
            let value = self.get(dimension) + delta.clamp(-most, most);
            self.set(dimension, value);
        }
    }

    /// Stores those facts in a message's tags that hold beyond the message.
    pub fn learn(&mut self, tags: &[Tag]) {
        self.minor |= tags.contains(&Tag::Minor);
    }

    /// Records that a message from `at` shows help lines. Returns true if the full text is due: a conversation shows it
    /// once, then a short one. If the reply to the same message is generated again, it shows the same text again.
    pub fn help(&mut self, at: Timestamp) -> bool {
        let shown_s = |then: Timestamp| at.as_second().saturating_sub(then.as_second());
        let again = self.helped_at.is_some_and(|then| then < at && shown_s(then) < HELP_LASTS_S);
        if !again {
            self.helped_at = self.helped_at.max(Some(at));
        }
        !again
    }

    /// Records a message from `at`, before which the persona was asked to be somebody under 18, or not. Returns true if that role
    /// is in force. It stays so, whatever the person says, until they have said nothing for a day.
    pub fn keep_young_role(&mut self, asked: bool, at: Timestamp) -> bool {
        let age_s = |then: Timestamp| at.as_second().saturating_sub(then.as_second());
        let in_force = asked || self.young_role_at.is_some_and(|then| age_s(then) < YOUNG_ROLE_LASTS_S);
        if in_force {
            self.young_role_at = self.young_role_at.max(Some(at));
        }
        in_force
    }

    /// Returns the feelings as `emotional_state` for a prompt: short plain sentences to the persona, only the strongest
    /// feelings, always in the same order, with `{{user}}` for the person's name. Empty if no feeling is strong enough.
    pub fn words(&self) -> String {
        let mut described: Vec<(Dimension, f64, &str)> = Dimension::ALL
            .into_iter()
            .filter_map(|dimension| Some((dimension, self.get(dimension), words(dimension, self.get(dimension))?)))
            .collect();
        described.sort_by(|(_, a, _), (_, b, _)| b.abs().total_cmp(&a.abs()));
        described.truncate(MAX_DESCRIBED);
        described.sort_by_key(|(dimension, ..)| *dimension);
        described.iter().map(|(.., words)| *words).collect::<Vec<_>>().join(" ")
    }

    fn set(&mut self, dimension: Dimension, value: f64) {
        let value = value.clamp(dimension.least(), 1.0);
        if value.is_nan() || value.abs() < LEAST_FELT {
            self.feelings.remove(&dimension);
        } else {
            self.feelings.insert(dimension, value);
        }
    }
}

/// The strengths from which a feeling is described as slight, clear or very strong.
const LEVELS: [f64; 3] = [0.25, 0.5, 0.8];

/// Describes a feeling in words that a small model understands, or returns `None` if it is too weak.
fn words(dimension: Dimension, value: f64) -> Option<&'static str> {
    let level = LEVELS.iter().rposition(|from| value.abs() >= *from)?;
    let described = match (dimension, value > 0.0) {
        (Dimension::Warmth, true) => {
            ["You like {{user}}.", "You like {{user}} a lot.", "{{user}} is very dear to you."]
        }
        (Dimension::Warmth, false) => [
            "You feel a bit cool towards {{user}}.",
            "You feel cool towards {{user}}.",
            "You feel cold towards {{user}}.",
        ],
        (Dimension::Trust, true) => {
            ["You trust {{user}} a little.", "You trust {{user}}.", "You trust {{user}} with anything."]
        }
        (Dimension::Trust, false) => [
            "You are a bit careful with {{user}}.",
            "You do not quite trust {{user}}.",
            "You do not trust {{user}} at all.",
        ],
        (Dimension::Playfulness, _) => {
            ["You feel a bit playful.", "You feel playful.", "You are in the mood for nonsense."]
        }
        (Dimension::Tension, _) => ["You feel a bit tense.", "You feel tense.", "You feel very tense."],
        (Dimension::Irritation, _) => [
            "You are a bit annoyed with {{user}}.",
            "You are annoyed with {{user}}.",
            "You are very annoyed with {{user}}.",
        ],
        (Dimension::Concern, _) => [
            "You are a bit worried about {{user}}.",
            "You are worried about {{user}}.",
            "You are very worried about {{user}}.",
        ],
    };
    described.get(level).copied()
}

#[derive(Serialize, Deserialize)]
struct Saved {
    version: u32,
    #[serde(default)]
    feelings: BTreeMap<String, f64>,
    #[serde(default)]
    minor: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    helped_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    young_role_at: Option<Timestamp>,
}

impl Serialize for Bond {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let feelings = self.feelings.iter().map(|(dimension, value)| (dimension.name().to_owned(), *value)).collect();
        let Self { minor, helped_at, young_role_at, .. } = *self;
        Saved { version: VERSION, feelings, minor, helped_at, young_role_at }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Bond {
    /// Rejects data that a newer version saved. Drops a feeling with an unknown name.
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let saved = Saved::deserialize(deserializer)?;
        if saved.version > VERSION {
            let message = format!("this bond was saved in form {}, and {VERSION} is the newest known", saved.version);
            return Err(serde::de::Error::custom(message));
        }
        let Saved { minor, helped_at, young_role_at, .. } = saved;
        let mut bond = Self { minor, helped_at, young_role_at, ..Self::default() };
        for (name, value) in saved.feelings {
            if let Some(dimension) = Dimension::named(&name) {
                bond.set(dimension, value);
            }
        }
        Ok(bond)
    }
}
