use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

// The comments of these fields are also the comments of azera.example.toml: they speak to the operator.

/// How a persona's mind goes: what tires it, how moods pass, when it dreams and reflects. Mood, energy, focus and sleep pressure
/// go from 0 to 1; a persona has one mind for each realm, and one for each private chat.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Mind {
    /// Share of the way back to an even mood (0.5) that a mood goes each second.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub mood_drift_per_s: f64,
    /// How far the mood of a reply moves the mind's: 0 not at all, 1 all the way.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub mood_weight: f64,
    /// Arousal that a mind comes to rest at.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub arousal_rest: f64,
    /// Energy that an exchange (a message and its reply) costs.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub energy_per_exchange: f64,
    /// Energy that comes back each second of rest.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub energy_recovery_per_s: f64,
    /// Seconds of quiet after which rest begins.
    #[schemars(range(min = 0, max = 86_400))]
    pub energy_idle_s: u32,
    /// Energy at which recovery stops while sleep pressure is at dream_pressure or above.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub energy_tired: f64,
    /// Focus that a mind comes to rest at.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub focus_rest: f64,
    /// Share of the way back to focus_rest that focus goes each second.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub focus_decay_per_s: f64,
    /// Share of what is missing to full focus that an exchange brings.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub focus_per_exchange: f64,
    /// Sleep pressure that each hour awake adds. A mind is awake until it dreams.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub pressure_per_hour: f64,
    /// Sleep pressure that an exchange adds.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub pressure_per_exchange: f64,
    /// Sleep pressure from which on it dreams at night.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub dream_pressure: f64,
    /// Sleep pressure from which on it naps at any hour; a nap is a short dream.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub nap_pressure: f64,
    /// Share of the sleep pressure that a dream takes off.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub dream_relief: f64,
    /// Share of the sleep pressure that a nap takes off.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub nap_relief: f64,
    /// Seconds of quiet before it dreams or naps.
    #[schemars(range(min = 0, max = 86_400))]
    pub dream_idle_s: u32,
    /// Hour of the day, in the realm's time zone, at which the night begins.
    #[schemars(range(min = 0, max = 23))]
    pub night_from_hour: u8,
    /// Hour of the day at which the night ends.
    #[schemars(range(min = 0, max = 23))]
    pub night_to_hour: u8,
    /// Hours between a dream or nap and the next dream.
    #[schemars(range(min = 1, max = 168))]
    pub dream_gap_hours: u32,
    /// Hours between a dream or nap and the next nap.
    #[schemars(range(min = 1, max = 168))]
    pub nap_gap_hours: u32,
    /// Exchanges there must have been since the last dream: dreams are made of what happened. With 0 it dreams of old things too.
    #[schemars(range(min = 0, max = 10_000))]
    pub dream_min_exchanges: u32,
    /// Hour of the day, in the realm's time zone, from which on it reflects on what is new that day.
    #[schemars(range(min = 0, max = 23))]
    pub reflection_hour: u8,
    /// Seconds of quiet before it reflects.
    #[schemars(range(min = 0, max = 86_400))]
    pub reflection_idle_s: u32,
    /// Hours between two reflections, the one of the day aside.
    #[schemars(range(min = 0, max = 168))]
    pub reflection_gap_hours: u32,
    /// Exchanges since the last reflection that are enough to reflect at once when the mind is clear.
    #[schemars(range(min = 1, max = 10_000))]
    pub reflection_min_exchanges: u32,
    /// Clarity from which on a mind is clear. Clarity is the least of focus, energy and freshness (1 less the sleep pressure), each
    /// to the power of its weight.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub clarity_threshold: f64,
    /// Weight of focus in clarity; 0 leaves it out.
    #[schemars(range(min = 0.0, max = 10.0))]
    pub clarity_focus_weight: f64,
    /// Weight of energy in clarity; 0 leaves it out.
    #[schemars(range(min = 0.0, max = 10.0))]
    pub clarity_energy_weight: f64,
    /// Weight of freshness in clarity; 0 leaves it out.
    #[schemars(range(min = 0.0, max = 10.0))]
    pub clarity_freshness_weight: f64,
    /// Minutes after which a dream or reflection that did not come about is due again.
    #[schemars(range(min = 1, max = 10_080))]
    pub retry_minutes: u32,
    /// Share of each feeling towards a person that is lost with each turn. A persona may set its own.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub emotion_decay_rate: f64,
    /// How much one message may change one feeling towards a person.
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
    /// Values that are allowed each, but not together: their keys, and what is wrong.
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
