//! How values change over time, in closed form: their value after a time, and the time at which they reach a value.

use azera_config::Mind as Constants;
use azera_types::Timestamp;
use jiff::SignedDuration;

/// Seconds in an hour.
const HOUR_S: f64 = 3600.0;

/// The rounding error, in seconds, of the time at which a value is reached; far below the clock's resolution.
const ROUNDING_S: f64 = 1e-5;

/// The time during which a condition holds, in seconds from now; `to_s` may be infinite.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct TimeWindow {
    pub(crate) from_s: f64,
    pub(crate) to_s: f64,
}

impl TimeWindow {
    /// From now on, without end.
    pub(crate) const ALWAYS: Self = Self { from_s: 0.0, to_s: f64::INFINITY };

    /// Returns the time during which both hold, if there is any.
    pub(crate) fn and(self, other: Self) -> Option<Self> {
        let both = Self { from_s: self.from_s.max(other.from_s), to_s: self.to_s.min(other.to_s) };
        (both.from_s <= both.to_s).then_some(both)
    }
}

/// A value that returns to rest by exponential decay: each second it loses the same share of the remaining distance.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Decay {
    pub(crate) value: f64,
    pub(crate) rest: f64,
    pub(crate) rate_per_s: f64,
}

impl Decay {
    /// Returns the value after `s` seconds.
    pub(crate) fn after(self, s: f64) -> f64 {
        self.rest + (self.value - self.rest) * (-self.rate_per_s * s).exp()
    }

    /// Returns when the value is `level` or more.
    pub(crate) fn at_least(self, level: f64) -> Option<TimeWindow> {
        let crossing_s = || ((self.value - self.rest) / (level - self.rest)).ln() / self.rate_per_s;
        match (self.value >= level, self.rest >= level) {
            (true, true) => Some(TimeWindow::ALWAYS),
            (true, false) if self.rate_per_s > 0.0 => Some(TimeWindow { to_s: crossing_s(), ..TimeWindow::ALWAYS }),
            (true, false) => Some(TimeWindow::ALWAYS),
            // A value that tends to `level` comes arbitrarily close and never reaches it.
            (false, true) if self.rate_per_s > 0.0 && self.rest > level => {
                Some(TimeWindow { from_s: crossing_s(), ..TimeWindow::ALWAYS })
            }
            (false, _) => None,
        }
    }
}

/// Sleep pressure, which rises each waking hour and stops at 1.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pressure {
    pub(crate) value: f64,
    pub(crate) rate_per_s: f64,
}

impl Pressure {
    pub(crate) fn new(value: f64, constants: &Constants) -> Self {
        Self { value, rate_per_s: constants.pressure_per_hour / HOUR_S }
    }

    /// Returns the value after `s` seconds.
    pub(crate) fn after(self, s: f64) -> f64 {
        (self.value + self.rate_per_s * s).min(1.0)
    }

    /// Returns the seconds until the value is `level`, or infinity if it never is.
    pub(crate) fn reaches_s(self, level: f64) -> f64 {
        if self.value >= level {
            0.0
        } else if self.rate_per_s > 0.0 && level <= 1.0 {
            (level - self.value) / self.rate_per_s
        } else {
            f64::INFINITY
        }
    }

    /// Returns when the value is `level` or less.
    pub(crate) fn at_most(self, level: f64) -> Option<TimeWindow> {
        if self.value > level {
            return None;
        }
        let to_s =
            if self.rate_per_s > 0.0 && level < 1.0 { (level - self.value) / self.rate_per_s } else { f64::INFINITY };
        Some(TimeWindow { to_s, ..TimeWindow::ALWAYS })
    }
}

/// Energy, which returns at rest: up to 1, or up to `tired` once sleep pressure is high.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Energy {
    pub(crate) value: f64,
    pub(crate) rate_per_s: f64,
    /// Seconds until rest begins.
    pub(crate) rest_in_s: f64,
    /// Seconds until sleep pressure is high; may be infinite.
    pub(crate) high_in_s: f64,
    /// The level at which recovery stops once sleep pressure is high.
    pub(crate) tired: f64,
}

impl Energy {
    /// Returns the value after `s` seconds.
    pub(crate) fn after(self, s: f64) -> f64 {
        let rested_s = (s.min(self.high_in_s) - self.rest_in_s).max(0.0);
        let fresh = (self.value + self.rate_per_s * rested_s).min(1.0);
        let tired_s = (s - self.rest_in_s.max(self.high_in_s)).max(0.0);
        if fresh < self.tired && tired_s > 0.0 { (fresh + self.rate_per_s * tired_s).min(self.tired) } else { fresh }
    }

    /// Returns when the value is `level` or more.
    pub(crate) fn at_least(self, level: f64) -> Option<TimeWindow> {
        if self.value >= level {
            return Some(TimeWindow::ALWAYS);
        }
        if self.rate_per_s <= 0.0 || level > 1.0 {
            return None;
        }
        // Recovery continues without a break when sleep pressure becomes high.
        let from_s = self.rest_in_s + (level - self.value) / self.rate_per_s;
        (from_s <= self.high_in_s || level <= self.tired).then_some(TimeWindow { from_s, ..TimeWindow::ALWAYS })
    }
}

/// Returns the seconds from one time to another, or 0 if the second is earlier.
pub(crate) fn seconds(from: Timestamp, to: Timestamp) -> f64 {
    to.duration_since(from).as_secs_f64().max(0.0)
}

/// Returns the time `s` seconds after another, rounded up to a millisecond; `None` for a time that never comes.
pub(crate) fn later(from: Timestamp, s: f64) -> Option<Timestamp> {
    let millis = ((s - ROUNDING_S) * 1000.0).ceil().max(0.0);
    // Times end in the year 9999, and the cast saturates far beyond that.
    let millis = if millis.is_finite() { millis as i64 } else { return None };
    from.checked_add(SignedDuration::from_millis(millis)).ok()
}

/// Returns the time some hours after another, or the last representable time.
pub(crate) fn hours_later(from: Timestamp, hours: u32) -> Timestamp {
    from.checked_add(SignedDuration::from_hours(i64::from(hours))).unwrap_or(Timestamp::MAX)
}

/// Returns the time some seconds after another, or the last representable time.
pub(crate) fn seconds_later(from: Timestamp, s: u32) -> Timestamp {
    from.checked_add(SignedDuration::from_secs(i64::from(s))).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Checks that a window contains `s` exactly if the value meets the level, except where they differ only by
    /// rounding.
    fn agrees(window: Option<TimeWindow>, s: f64, value: f64, level: f64, holds: bool) -> Result<(), TestCaseError> {
        let said = window.is_some_and(|window| (window.from_s..=window.to_s).contains(&s));
        prop_assert!(said == holds || (value - level).abs() < 1e-9, "{window:?} at {s} s: {value}, level {level}");
        Ok(())
    }

    fn share() -> impl Strategy<Value = f64> {
        prop_oneof![Just(0.0), Just(1.0), 0.0..=1.0]
    }

    fn rate() -> impl Strategy<Value = f64> {
        prop_oneof![Just(0.0), Just(0.001), 0.0..0.01]
    }

    fn times() -> impl Strategy<Value = Vec<f64>> {
        prop::collection::vec(prop_oneof![Just(0.0), 0.0..100.0, 0.0..5000.0, 0.0..1e6], 1..60)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 4096, ..ProptestConfig::default() })]

        #[test]
        fn a_computed_window_agrees_with_the_values(
            value in share(), rest in share(), rate_per_s in rate(), level in share(), times in times(),
            rest_in_s in prop_oneof![Just(0.0), 0.0..3000.0], high_in_s in prop_oneof![Just(0.0), Just(f64::INFINITY), 0.0..3000.0],
        ) {
            let settling = Decay { value, rest, rate_per_s };
            let pressure = Pressure { value, rate_per_s };
            let energy = Energy { value, rate_per_s, rest_in_s, high_in_s, tired: rest };
            for s in times {
                let settled = settling.after(s);
                agrees(settling.at_least(level), s, settled, level, settled >= level)?;
                let pressed = pressure.after(s);
                agrees(pressure.at_most(level), s, pressed, level, pressed <= level)?;
                let reached = Some(TimeWindow { from_s: pressure.reaches_s(level), ..TimeWindow::ALWAYS });
                agrees(reached, s, pressed, level, pressed >= level)?;
                let strength = energy.after(s);
                agrees(energy.at_least(level), s, strength, level, strength >= level)?;
            }
        }
    }
}
