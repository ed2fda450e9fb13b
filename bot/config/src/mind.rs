use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

// The doc comments of these fields are also the comments of azera.example.toml, so they address the operator.

/// How a persona's mind changes: what tires it, how moods pass, when it dreams and reflects. Mood, energy, focus and
/// sleep pressure go from 0 to 1. A persona has one mind for the public chats of a realm, and one for each private chat.
/// A realm is a Discord server, a Matrix space or a Matrix room without a space.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Mind {
    /// The share of the distance to a neutral mood (0.5) that the mood covers per second.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub mood_drift_per_s: f64,
    /// How far the mood of a reply moves the persona's mood: 0 not at all, 1 all the way.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub mood_weight: f64,
    /// The arousal of a mind at rest.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub arousal_rest: f64,
    /// The energy that one exchange (a message and its reply) costs.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub energy_per_exchange: f64,
    /// The energy that one drawn picture costs.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub energy_per_picture: f64,
    /// The energy that returns per second of rest.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub energy_recovery_per_s: f64,
    /// Seconds of quiet after which rest begins.
    #[schemars(range(min = 0, max = 86_400))]
    pub energy_idle_s: u32,
    /// The energy at which recovery stops while sleep pressure is at dream_pressure or above.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub energy_tired: f64,
    /// The focus of a mind at rest.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub focus_rest: f64,
    /// The share of the distance to focus_rest that the focus covers per second.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub focus_decay_per_s: f64,
    /// The share of the distance to full focus that one exchange adds.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub focus_per_exchange: f64,
    /// The sleep pressure that each hour awake adds. A mind is awake until it dreams.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub pressure_per_hour: f64,
    /// The sleep pressure that one exchange adds.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub pressure_per_exchange: f64,
    /// The sleep pressure from which the persona dreams at night.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub dream_pressure: f64,
    /// The sleep pressure from which the persona naps at any hour. A nap is a short dream.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub nap_pressure: f64,
    /// The share of the sleep pressure that a dream removes.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub dream_relief: f64,
    /// The share of the sleep pressure that a nap removes.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub nap_relief: f64,
    /// Seconds of quiet before a dream or nap.
    #[schemars(range(min = 0, max = 86_400))]
    pub dream_idle_s: u32,
    /// The hour at which the night begins, in the time zone gardener.time_zone.
    #[schemars(range(min = 0, max = 23))]
    pub night_from_hour: u8,
    /// The hour at which the night ends.
    #[schemars(range(min = 0, max = 23))]
    pub night_to_hour: u8,
    /// Hours between a dream or nap and the next dream.
    #[schemars(range(min = 1, max = 168))]
    pub dream_gap_hours: u32,
    /// Hours between a dream or nap and the next nap.
    #[schemars(range(min = 1, max = 168))]
    pub nap_gap_hours: u32,
    /// The least number of exchanges since the last dream, so that there is something new to dream about. With 0, a
    /// persona also dreams when nothing is new.
    #[schemars(range(min = 0, max = 10_000))]
    pub dream_min_exchanges: u32,
    /// The hour, in the time zone gardener.time_zone, from which the persona reflects on what is new that day.
    #[schemars(range(min = 0, max = 23))]
    pub reflection_hour: u8,
    /// Seconds of quiet before a reflection.
    #[schemars(range(min = 0, max = 86_400))]
    pub reflection_idle_s: u32,
    /// Hours between two reflections, apart from the daily one.
    #[schemars(range(min = 0, max = 168))]
    pub reflection_gap_hours: u32,
    /// Exchanges since the last reflection after which a clear mind reflects at once.
    #[schemars(range(min = 1, max = 10_000))]
    pub reflection_min_exchanges: u32,
    /// The clarity from which a mind counts as clear. Clarity is the least of focus, energy and freshness (1 minus the
    /// sleep pressure), each raised to the power of its weight.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub clarity_threshold: f64,
    /// The weight of focus in clarity; 0 ignores it.
    #[schemars(range(min = 0.0, max = 10.0))]
    pub clarity_focus_weight: f64,
    /// The weight of energy in clarity; 0 ignores it.
    #[schemars(range(min = 0.0, max = 10.0))]
    pub clarity_energy_weight: f64,
    /// The weight of freshness in clarity; 0 ignores it.
    #[schemars(range(min = 0.0, max = 10.0))]
    pub clarity_freshness_weight: f64,
    /// Minutes before a failed dream or reflection is tried again.
    #[schemars(range(min = 1, max = 10_080))]
    pub retry_minutes: u32,
    /// The share of each feeling towards a person that fades with each turn. A persona may set its own.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub emotion_decay_rate: f64,
    /// The most that one message may change one feeling towards a person.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub emotion_max_delta: f64,
}

impl Default for Mind {
    fn default() -> Self {
        Self {
            mood_drift_per_s: 0.001,
            mood_weight: 0.5,
            arousal_rest: 0.3,
            energy_per_exchange: 0.03,
            energy_per_picture: 0.02,
            energy_recovery_per_s: 0.001,
            energy_idle_s: 60,
            energy_tired: 0.7,
            focus_rest: 0.3,
            focus_decay_per_s: 0.001,
            focus_per_exchange: 0.25,
            pressure_per_hour: 0.03,
            pressure_per_exchange: 0.01,
            dream_pressure: 0.5,
            nap_pressure: 0.95,
            dream_relief: 0.9,
            nap_relief: 0.4,
            dream_idle_s: 900,
            night_from_hour: 1,
            night_to_hour: 7,
            dream_gap_hours: 7,
            nap_gap_hours: 2,
            dream_min_exchanges: 1,
            reflection_hour: 21,
            reflection_idle_s: 120,
            reflection_gap_hours: 3,
            reflection_min_exchanges: 8,
            clarity_threshold: 0.5,
            clarity_focus_weight: 1.0,
            clarity_energy_weight: 1.0,
            clarity_freshness_weight: 1.0,
            retry_minutes: 30,
            emotion_decay_rate: 0.05,
            emotion_max_delta: 0.25,
        }
    }
}

impl Mind {
    /// Returns values that are each allowed, but not together: the two keys, and what is wrong.
    pub(crate) fn contradictions(&self) -> Vec<([&'static str; 2], String)> {
        let mut problems = Vec::new();
        if self.night_from_hour == self.night_to_hour {
            problems.push((
                ["night_from_hour", "night_to_hour"],
                format!(
                    "`mind.night_from_hour` and `mind.night_to_hour` are both {}: the night has no hours",
                    self.night_from_hour
                ),
            ));
        }
        if self.nap_pressure < self.dream_pressure {
            problems.push((
                ["nap_pressure", "dream_pressure"],
                format!(
                    "`mind.nap_pressure` ({}) must not be less than `mind.dream_pressure` ({}), or it would nap before it is \
                     tired enough to dream",
                    self.nap_pressure, self.dream_pressure
                ),
            ));
        }
        problems
    }
}
