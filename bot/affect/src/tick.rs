//! The tick of a mind. The result does not depend on how many ticks a time is divided into.

use azera_types::Timestamp;

use crate::drift::TimeWindow;
use crate::mind::{Activity, Effect, Mind, PendingActivity};
use crate::params::MindParams;

impl Mind {
    /// Lets time pass until `now` and returns what follows. Calling it before [`Mind::next_due`] is harmless and never
    /// needed. A time before the mind's own changes no value.
    ///
    /// Activities that were due while nothing advanced the mind (a night in which the machine was off) are not made up
    /// for: only what is due now counts. The mind asks for one activity at a time.
    pub fn advance(&mut self, now: Timestamp, params: &MindParams) -> Vec<Effect> {
        self.perceive(now, params);
        if now < self.at {
            return Vec::new();
        }
        let clear = self.clear(params);
        let mood = self.mood_after(params);
        let dream = self.dream(params);
        let reflection = self.reflection(clear, params);
        self.output(mood, dream.or(reflection))
    }

    /// Returns the new label of the mood, if it has changed.
    fn mood_after(&mut self, params: &MindParams) -> Option<Effect> {
        let before = self.label;
        self.feel(params);
        (self.label != before).then_some(Effect::Mood(self.label))
    }

    /// Returns a dream if one is due, else a nap if one is due.
    fn dream(&self, params: &MindParams) -> Option<Activity> {
        let due = |activity: &Activity| self.due_at(*activity, params).is_some_and(|at| at <= self.at);
        [Activity::Dream, Activity::Nap].into_iter().find(due)
    }

    /// Returns a reflection if the mind is clear and has enough to think about, or if the daily hour has come.
    fn reflection(&self, clear: Option<TimeWindow>, params: &MindParams) -> Option<Activity> {
        let due = self.reflection_at(clear, params).is_some_and(|at| at <= self.at);
        due.then_some(Activity::Reflection)
    }

    /// Returns the effects for the host, and records the pending activity.
    fn output(&mut self, mood: Option<Effect>, activity: Option<Activity>) -> Vec<Effect> {
        if let Some(activity) = activity {
            let exchanges = if activity == Activity::Reflection { self.unreflected } else { self.undreamt };
            self.pending = Some(PendingActivity { activity, at: self.at, exchanges });
        }
        mood.into_iter().chain(activity.map(Effect::Due)).collect()
    }
}
