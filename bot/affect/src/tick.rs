//! The tick: six systems in their order. Into how many ticks a time is cut makes no difference to what a mind becomes.

use azera_types::Timestamp;

use crate::drift::TimeWindow;
use crate::mind::{Activity, Effect, Mind, PendingActivity};
use crate::params::MindParams;

impl Mind {
    /// Lets time pass until `now` and tells what follows. Calling it before [`Mind::next_due`] is never needed and does no harm;
    /// a time before the mind's own changes no value.
    ///
    /// What was due in a time that nobody let pass (a night in which the machine was off) is not made up for: what counts is whether it
    /// is due now. One activity is called for at a time.
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

    /// Emotion: what the mood is called now, if that is something else.
    fn mood_after(&mut self, params: &MindParams) -> Option<Effect> {
        let before = self.label;
        self.feel(params);
        (self.label != before).then_some(Effect::Mood(self.label))
    }

    /// Dream: a dream if it is time for one, else a nap.
    fn dream(&self, params: &MindParams) -> Option<Activity> {
        let due = |activity: &Activity| self.due_at(*activity, params).is_some_and(|at| at <= self.at);
        [Activity::Dream, Activity::Nap].into_iter().find(due)
    }

    /// Reflection: if it is clear with enough to think about, or the hour has come.
    fn reflection(&self, clear: Option<TimeWindow>, params: &MindParams) -> Option<Activity> {
        let due = self.reflection_at(clear, params).is_some_and(|at| at <= self.at);
        due.then_some(Activity::Reflection)
    }

    /// Output: what the host is told, and that it was.
    fn output(&mut self, mood: Option<Effect>, activity: Option<Activity>) -> Vec<Effect> {
        if let Some(activity) = activity {
            let exchanges = if activity == Activity::Reflection { self.unreflected } else { self.undreamt };
            self.pending = Some(PendingActivity { activity, at: self.at, exchanges });
        }
        mood.into_iter().chain(activity.map(Effect::Due)).collect()
    }
}
