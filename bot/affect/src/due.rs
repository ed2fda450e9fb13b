//! Computes when a mind next has something due if nothing happens until then. The time has a closed form, so that a
//! mind can be left alone until it comes.

use azera_types::Timestamp;

use crate::drift::{Pressure, TimeWindow, hours_later, later, seconds, seconds_later};
use crate::mind::{Activity, Mind};
use crate::params::MindParams;

impl Mind {
    /// Returns when this mind next has something due if nothing happens until then: an activity, or the end of a mood.
    /// `None` means not before something happens.
    pub fn next_due(&self, params: &MindParams) -> Option<Timestamp> {
        let activities = Activity::ALL.into_iter().filter_map(|activity| self.due_at(activity, params));
        activities.chain(self.fades_at(params)).min().map(|due| due.max(self.at))
    }

    /// Returns when an activity is due if nothing happens until then, or the mind's own time if it is due already.
    pub(crate) fn due_at(&self, activity: Activity, params: &MindParams) -> Option<Timestamp> {
        match activity {
            Activity::Dream => self.dream_at(params),
            Activity::Nap => self.nap_at(params),
            Activity::Reflection => self.reflection_at(self.clear(params), params),
        }
    }

    /// Returns when half of the mood has faded.
    pub(crate) fn fades_at(&self, params: &MindParams) -> Option<Timestamp> {
        later(self.felt_at?, std::f64::consts::LN_2 / params.constants.mood_drift_per_s)
    }

    /// Returns when the mind is tired and undisturbed, it is night, and the last dream is long enough ago.
    fn dream_at(&self, params: &MindParams) -> Option<Timestamp> {
        let constants = &params.constants;
        let tired = self.pressure_at(constants.dream_pressure, params)?;
        params.next_night(tired.max(self.dream_gap_over(constants.dream_gap_hours)))
    }

    /// Returns when the mind is too tired to wait for the night.
    fn nap_at(&self, params: &MindParams) -> Option<Timestamp> {
        let constants = &params.constants;
        let tired = self.pressure_at(constants.nap_pressure, params)?;
        Some(tired.max(self.dream_gap_over(constants.nap_gap_hours)))
    }

    /// Returns when it is quiet and the sleep pressure has reached `level`, if there is something to dream of.
    fn pressure_at(&self, level: f64, params: &MindParams) -> Option<Timestamp> {
        let constants = &params.constants;
        if self.undreamt < constants.dream_min_exchanges {
            return None;
        }
        let there = later(self.at, Pressure::new(self.pressure, constants).reaches_s(level))?;
        Some(there.max(self.free_at(constants.dream_idle_s, params)))
    }

    fn dream_gap_over(&self, hours: u32) -> Timestamp {
        self.last_dream.map_or(Timestamp::MIN, |last| hours_later(last, hours))
    }

    /// Returns the earlier of the daily hour and the time at which the mind is clear; `clear` is that time window.
    pub(crate) fn reflection_at(&self, clear: Option<TimeWindow>, params: &MindParams) -> Option<Timestamp> {
        let clear = clear.and_then(|clear| self.clear_reflection_at(clear, params));
        self.daily_reflection_at(params).into_iter().chain(clear).min()
    }

    /// Returns the daily hour after something new happened. It stays due until the reflection.
    fn daily_reflection_at(&self, params: &MindParams) -> Option<Timestamp> {
        let hour = params.next_daily_hour(self.unreflected_since?)?;
        Some(hour.max(self.free_at(params.constants.reflection_idle_s, params)))
    }

    /// Returns when the mind is clear and has enough to think about.
    fn clear_reflection_at(&self, clear: TimeWindow, params: &MindParams) -> Option<Timestamp> {
        let constants = &params.constants;
        if self.unreflected < constants.reflection_min_exchanges {
            return None;
        }
        let gap = self.last_reflection.map_or(Timestamp::MIN, |last| hours_later(last, constants.reflection_gap_hours));
        let free = self.free_at(constants.reflection_idle_s, params).max(gap);
        let at = later(self.at, clear.from_s)?.max(free);
        (seconds(self.at, at) <= clear.to_s).then_some(at)
    }

    /// Returns when [`Mind::clarity`] is at its threshold or above, if nothing happens until then.
    pub(crate) fn clear(&self, params: &MindParams) -> Option<TimeWindow> {
        let constants = &params.constants;
        // x to the power of w is at least c exactly if x is at least the w-th root of c.
        let level = |weight: f64| {
            let threshold = constants.clarity_threshold;
            if weight <= 0.0 {
                return f64::NEG_INFINITY;
            }
            let root = threshold.powf(1.0 / weight);
            // A root too small for a float is still more than 0, and with 0 there is no clarity.
            if threshold > 0.0 { root.max(f64::MIN_POSITIVE) } else { root }
        };
        let focus = self.focus(params).at_least(level(constants.clarity_focus_weight))?;
        let energy = self.energy(params).at_least(level(constants.clarity_energy_weight))?;
        let least = level(constants.clarity_freshness_weight);
        // If rounding loses the least freshness, a freshness of 0 is still too little.
        let tired = if least > 0.0 { (1.0 - least).min(1.0_f64.next_down()) } else { 1.0 - least };
        let fresh = Pressure::new(self.pressure, constants).at_most(tired)?;
        focus.and(energy)?.and(fresh)
    }

    /// Returns when it has been quiet for `idle_s` seconds and no activity is pending.
    fn free_at(&self, idle_s: u32, params: &MindParams) -> Timestamp {
        let retry_s = params.constants.retry_minutes.saturating_mul(60);
        let pending_until = self.pending.map_or(Timestamp::MIN, |pending| seconds_later(pending.at, retry_s));
        seconds_later(self.quiet_since, idle_s).max(pending_until).max(self.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Constants;

    #[test]
    fn zero_focus_is_never_clear_however_small_its_weight() {
        let constants = Constants { clarity_threshold: 0.5, focus_rest: 0.0, ..Constants::default() };
        let clear = |weight, threshold| {
            let constants =
                Constants { clarity_focus_weight: weight, clarity_threshold: threshold, ..constants.clone() };
            let params = MindParams { constants, ..MindParams::default() };
            let mind = Mind { focus: 0.0, energy: 1.0, pressure: 0.0, ..Mind::new(Timestamp::UNIX_EPOCH, &params) };
            let now = mind.clarity(&params) >= threshold;
            let window = mind.clear(&params);
            assert_eq!(window.is_some_and(|window| window.from_s <= 0.0), now, "a look and the reckoning agree");
            now
        };
        // The 5e-4th root of a half is less than the smallest positive float.
        assert!(!clear(5e-4, 0.5) && !clear(1.0, 0.5));
        assert!(clear(0.0, 0.5) && clear(5e-4, 0.0));
    }
}
