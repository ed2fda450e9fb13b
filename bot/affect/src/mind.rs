//! The state of a mind, and how events change it.

use azera_types::Timestamp;
use jiff::SignedDuration;

use crate::drift::{Decay, Energy, Pressure, seconds, seconds_later};
use crate::mood::{DetectedMood, Mood};
use crate::params::MindParams;

/// The mood of a mind that feels nothing in particular.
pub(crate) const EVEN_MOOD: Mood = Mood::Calm;

/// The energy of a new mind.
const FIRST_ENERGY: f64 = 0.7;

/// How far a clock may go back while the mind simply waits for it. This covers clock adjustments and times that were
/// noted in parallel. Beyond it, the clock was wrong before, and the mind continues from the new time.
pub(crate) const CLOCK_SLACK: SignedDuration = SignedDuration::from_mins(10);

/// Something that a mind does by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Activity {
    /// A dream at night.
    Dream,
    /// A short dream at any hour.
    Nap,
    /// An entry in the journal.
    Reflection,
}

impl Activity {
    /// All activities, the most important first.
    pub const ALL: [Self; 3] = [Self::Dream, Self::Nap, Self::Reflection];

    /// Returns the name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Dream => "dream",
            Self::Nap => "nap",
            Self::Reflection => "reflection",
        }
    }

    /// Returns the activity with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|activity| activity.name() == name)
    }
}

/// Something that happens to a mind.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Event {
    /// The persona answered a message. `felt` is the mood of the reply, if it was detected.
    Exchange {
        /// The mood of the reply.
        felt: Option<DetectedMood>,
    },
    /// The persona drew a picture.
    Drew,
    /// An activity ended, whether the mind or a person asked for it.
    Done(Activity),
    /// Somebody gave the mind a mood. It fades like every other one.
    Given {
        /// The label.
        mood: Mood,
        /// How pleasant it is, -1 to 1.
        valence: f64,
    },
    /// An activity that the mind asked for did not happen, because live chat went first or something failed. It is due
    /// again after `retry_minutes`, if its conditions still hold.
    PutOff(Activity),
}

/// Something for the host to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// An activity is due. The host answers with [`Event::Done`] or [`Event::PutOff`]. Without an answer (after a
    /// crash) it is due again after `retry_minutes`.
    Due(Activity),
    /// The mood has a new label.
    Mood(Mood),
}

/// An activity that the mind asked for and that is not over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PendingActivity {
    pub(crate) activity: Activity,
    pub(crate) at: Timestamp,
    /// The exchanges that it is about. Later exchanges are left for the next activity.
    pub(crate) exchanges: u32,
}

/// The mind of one persona in one realm.
///
/// Every value changes in closed form from the time of the last change, so looking at a mind costs no more after a year
/// than after a second. A mind contains no text.
#[derive(Debug, Clone, PartialEq)]
pub struct Mind {
    /// The time for which all values hold.
    pub(crate) at: Timestamp,
    /// How pleasant the mood is, -1 to 1.
    pub(crate) valence: f64,
    /// How strong the mood is, 0 to 1.
    pub(crate) arousal: f64,
    pub(crate) energy: f64,
    pub(crate) focus: f64,
    pub(crate) pressure: f64,
    pub(crate) label: Mood,
    /// When the label was felt; `None` once the mood is over.
    pub(crate) felt_at: Option<Timestamp>,
    /// The last exchange, or the creation of the mind.
    pub(crate) quiet_since: Timestamp,
    pub(crate) last_exchange: Option<Timestamp>,
    pub(crate) last_dream: Option<Timestamp>,
    pub(crate) last_reflection: Option<Timestamp>,
    /// Exchanges since the last dream or nap.
    pub(crate) undreamt: u32,
    /// Exchanges since the last reflection, and the time of the first of them.
    pub(crate) unreflected: u32,
    pub(crate) unreflected_since: Option<Timestamp>,
    pub(crate) pending: Option<PendingActivity>,
}

/// The state of a mind at one time. Values go from 0 to 1 unless they say otherwise.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct State {
    /// The label of the mood.
    pub mood: Mood,
    /// How pleasant the mood is, on a scale from 0 to 1; 0.5 is neutral.
    pub value: f64,
    /// How pleasant the mood is, from -1 to 1.
    pub valence: f64,
    /// How strong the mood is.
    pub arousal: f64,
    /// How much energy is left.
    pub energy: f64,
    /// How focused the mind is.
    pub focus: f64,
    /// The sleep pressure: how much the mind needs to dream.
    pub pressure: f64,
    /// How clear the mind is, see [`Mind::clarity`].
    pub clarity: f64,
    /// The time of the last exchange.
    pub last_exchange: Option<Timestamp>,
    /// The time of the last dream or nap.
    pub last_dream: Option<Timestamp>,
    /// The time of the last reflection.
    pub last_reflection: Option<Timestamp>,
}

impl Mind {
    /// Creates a mind at `now`, with a neutral mood, some energy and no past.
    pub fn new(now: Timestamp, params: &MindParams) -> Self {
        Self {
            at: now,
            valence: 0.0,
            arousal: params.constants.arousal_rest,
            energy: FIRST_ENERGY,
            focus: params.constants.focus_rest,
            pressure: 0.0,
            label: EVEN_MOOD,
            felt_at: None,
            quiet_since: now,
            last_exchange: None,
            last_dream: None,
            last_reflection: None,
            undreamt: 0,
            unreflected: 0,
            unreflected_since: None,
            pending: None,
        }
    }

    /// Returns the state at `now` without changing the mind.
    pub fn state(&self, now: Timestamp, params: &MindParams) -> State {
        let mut at_now = self.clone();
        at_now.perceive(now, params);
        at_now.feel(params);
        State {
            mood: at_now.label,
            value: (at_now.valence + 1.0) / 2.0,
            valence: at_now.valence,
            arousal: at_now.arousal,
            energy: at_now.energy,
            focus: at_now.focus,
            pressure: at_now.pressure,
            clarity: at_now.clarity(params),
            last_exchange: at_now.last_exchange,
            last_dream: at_now.last_dream,
            last_reflection: at_now.last_reflection,
        }
    }

    /// Lets time pass until `now`, then applies an event. Only [`Mind::advance`] asks for activities.
    pub fn apply(&mut self, now: Timestamp, event: Event, params: &MindParams) -> Vec<Effect> {
        self.perceive(now, params);
        let before = self.label;
        self.feel(params);
        match event {
            Event::Exchange { felt } => self.exchange(felt, params),
            Event::Drew => self.energy = share(self.energy - params.constants.energy_per_picture),
            Event::Done(activity) => self.done(activity, params),
            Event::Given { mood, valence } => {
                self.valence = if valence.is_finite() { valence.clamp(-1.0, 1.0) } else { 0.0 };
                self.arousal = f64::from(mood.arousal());
                self.label = mood;
                self.felt_at = Some(self.at);
            }
            // The retry interval starts again.
            Event::PutOff(activity) => {
                if let Some(pending) = self.pending.as_mut().filter(|pending| pending.activity == activity) {
                    pending.at = self.at;
                }
            }
        }
        if self.label == before { Vec::new() } else { vec![Effect::Mood(self.label)] }
    }

    fn exchange(&mut self, felt: Option<DetectedMood>, params: &MindParams) {
        let constants = &params.constants;
        self.energy = share(self.energy - constants.energy_per_exchange);
        self.focus = share(self.focus + constants.focus_per_exchange * (1.0 - self.focus));
        self.pressure = share(self.pressure + constants.pressure_per_exchange);
        self.quiet_since = self.at;
        self.last_exchange = Some(self.at);
        self.undreamt = self.undreamt.saturating_add(1);
        self.unreflected = self.unreflected.saturating_add(1);
        self.unreflected_since.get_or_insert(self.at);
        if let Some(felt) = felt {
            let moved = |from: f64, to: f32| {
                let to = f64::from(to);
                if to.is_finite() { from + constants.mood_weight * (to - from) } else { from }
            };
            self.valence = moved(self.valence, felt.valence).clamp(-1.0, 1.0);
            self.arousal = share(moved(self.arousal, felt.arousal));
            self.label = felt.mood;
            self.felt_at = Some(self.at);
        }
    }

    fn done(&mut self, activity: Activity, params: &MindParams) {
        let constants = &params.constants;
        let pending = self.pending.take_if(|pending| pending.activity == activity);
        let left = |exchanges: u32| pending.map_or(0, |pending| exchanges.saturating_sub(pending.exchanges));
        match activity {
            Activity::Dream | Activity::Nap => {
                let relief = if activity == Activity::Dream { constants.dream_relief } else { constants.nap_relief };
                self.pressure = share(self.pressure * (1.0 - relief));
                self.last_dream = Some(self.at);
                self.undreamt = left(self.undreamt);
            }
            Activity::Reflection => {
                self.last_reflection = Some(self.at);
                self.unreflected = left(self.unreflected);
                self.unreflected_since = pending.filter(|_| self.unreflected > 0).map(|pending| pending.at);
            }
        }
    }

    /// Returns how clear the mind is, 0 to 1: the least of focus, energy and freshness (1 minus the sleep pressure),
    /// each raised to the power of its weight. It is the least and not the mean, because none makes up for the lack of
    /// another (Liebig's law of the minimum). This also gives the time at which the mind is clear a closed form.
    pub fn clarity(&self, params: &MindParams) -> f64 {
        let constants = &params.constants;
        let parts = [
            self.focus.powf(constants.clarity_focus_weight),
            self.energy.powf(constants.clarity_energy_weight),
            (1.0 - self.pressure).powf(constants.clarity_freshness_weight),
        ];
        parts.into_iter().fold(1.0, f64::min)
    }

    /// Lets time pass. A clock that went back changes no value.
    pub(crate) fn perceive(&mut self, now: Timestamp, params: &MindParams) {
        if now <= self.at {
            if self.at.duration_since(now) > CLOCK_SLACK {
                self.set_back(now);
            }
            return;
        }
        let (s, constants) = (seconds(self.at, now), &params.constants);
        self.energy = share(self.energy(params).after(s));
        self.pressure = share(Pressure::new(self.pressure, constants).after(s));
        self.focus = share(self.focus(params).after(s));
        let mood = |value, rest| Decay { value, rest, rate_per_s: constants.mood_drift_per_s }.after(s);
        self.valence = mood(self.valence, 0.0).clamp(-1.0, 1.0);
        self.arousal = share(mood(self.arousal, constants.arousal_rest));
        self.at = now;
    }

    /// Ends a mood when half of it has faded. Then the mind counts as neutral.
    pub(crate) fn feel(&mut self, params: &MindParams) {
        if self.fades_at(params).is_some_and(|at| at <= self.at) {
            self.felt_at = None;
            self.label = EVEN_MOOD;
        }
    }

    pub(crate) fn focus(&self, params: &MindParams) -> Decay {
        let MindParams { constants, .. } = params;
        Decay { value: self.focus, rest: constants.focus_rest, rate_per_s: constants.focus_decay_per_s }
    }

    pub(crate) fn energy(&self, params: &MindParams) -> Energy {
        let constants = &params.constants;
        Energy {
            value: self.energy,
            rate_per_s: constants.energy_recovery_per_s,
            rest_in_s: seconds(self.at, seconds_later(self.quiet_since, constants.energy_idle_s)),
            high_in_s: Pressure::new(self.pressure, constants).reaches_s(constants.dream_pressure),
            tired: constants.energy_tired,
        }
    }

    /// Moves every stored time as far back as the clock went.
    fn set_back(&mut self, now: Timestamp) {
        let gap = self.at.duration_since(now);
        let back = |time: Timestamp| time.checked_sub(gap).unwrap_or(Timestamp::MIN);
        self.at = now;
        self.quiet_since = back(self.quiet_since);
        for time in [
            &mut self.felt_at,
            &mut self.last_exchange,
            &mut self.last_dream,
            &mut self.last_reflection,
            &mut self.unreflected_since,
        ] {
            *time = time.map(back);
        }
        if let Some(pending) = &mut self.pending {
            pending.at = back(pending.at);
        }
    }
}

/// Clamps a number to 0 to 1; NaN becomes 0.
pub(crate) fn share(number: f64) -> f64 {
    if number.is_nan() { 0.0 } else { number.clamp(0.0, 1.0) }
}
