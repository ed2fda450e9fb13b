//! A circuit breaker for one remote service. After several failures in a row it rejects requests for a while, then lets
//! one request through to see if the service works again. Callers learn at once that a service is down, and do not wait
//! for it each time.
//!
//! The crate is pure: it reads no clock and starts no task. Callers pass the time in. Start with [`Breaker::admit`].
//!
//! Invariants:
//! - While the breaker is open, it admits nothing before the pause is over. After that it admits one request at a time.
//! - A failed trial request doubles the pause, up to the longest. One success closes the breaker and resets its counts.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// When a breaker opens, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The failures in a row that open the breaker; 0 counts as 1.
    pub failures: u32,
    /// The first pause after the breaker opens.
    pub first_pause: Duration,
    /// The longest pause, however often the service failed.
    pub longest_pause: Duration,
}

impl Default for Limits {
    /// Opens after five failures, for 5 seconds at first and 2 minutes at most. That is long enough not to add to the
    /// server's load, and short enough that people hardly notice when the service is back.
    fn default() -> Self {
        Self { failures: 5, first_pause: Duration::from_secs(5), longest_pause: Duration::from_secs(120) }
    }
}

/// The state of a breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// The breaker admits every request.
    Closed,
    /// The breaker rejects every request.
    Open,
    /// The breaker has admitted one trial request and waits for its result.
    HalfOpen,
}

/// The error for a request that the breaker rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refused {
    /// The time until another attempt is worthwhile; zero while a trial request is running.
    pub retry_in: Duration,
}

/// A circuit breaker for one service. A clone is cheap and shares the same state.
#[derive(Debug, Clone)]
pub struct Breaker {
    limits: Limits,
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug, Clone, Copy)]
enum Inner {
    Closed { failures: u32 },
    Open { until: Instant, pause: Duration },
    Trying { pause: Duration, since: Instant },
}

impl Breaker {
    /// Creates a closed breaker.
    pub fn new(limits: Limits) -> Self {
        Self { limits, inner: Arc::new(Mutex::new(Inner::Closed { failures: 0 })) }
    }

    /// Asks for permission to send a request. Report the result on the [`Permit`]. A permit that is dropped without a
    /// report, for instance because nobody waits for the request any more, counts neither as a success nor as a
    /// failure.
    ///
    /// # Errors
    /// [`Refused`] while the breaker is open or a trial request is running.
    pub fn admit(&self, now: Instant) -> Result<Permit, Refused> {
        let mut inner = self.lock();
        let probe = match *inner {
            Inner::Closed { .. } => false,
            Inner::Open { until, .. } if now < until => return Err(Refused { retry_in: until - now }),
            Inner::Open { pause, .. } => {
                *inner = Inner::Trying { pause, since: now };
                true
            }
            Inner::Trying { .. } => return Err(Refused { retry_in: Duration::ZERO }),
        };
        drop(inner);
        Ok(Permit { breaker: self.clone(), probe, reported: false })
    }

    /// Returns how long the breaker still rejects requests, if it is open. This takes no permit.
    pub fn waits(&self, now: Instant) -> Option<Duration> {
        match *self.lock() {
            Inner::Open { until, .. } if now < until => Some(until - now),
            Inner::Trying { .. } => Some(Duration::ZERO),
            Inner::Closed { .. } | Inner::Open { .. } => None,
        }
    }

    /// Returns the current state. An open breaker whose pause is over stays [`State::Open`] until the next
    /// [`Breaker::admit`].
    pub fn state(&self) -> State {
        match *self.lock() {
            Inner::Closed { .. } => State::Closed,
            Inner::Open { .. } => State::Open,
            Inner::Trying { .. } => State::HalfOpen,
        }
    }

    fn note_failure(&self, now: Instant, probe: bool) {
        let Limits { failures: most, first_pause, longest_pause } = self.limits;
        let mut inner = self.lock();
        match *inner {
            Inner::Closed { failures } if failures + 1 < most => *inner = Inner::Closed { failures: failures + 1 },
            Inner::Closed { .. } => *inner = Inner::Open { until: now + first_pause, pause: first_pause },
            Inner::Trying { pause, .. } if probe => {
                let pause = pause.saturating_mul(2).min(longest_pause);
                *inner = Inner::Open { until: now + pause, pause };
            }
            // The request began before the breaker opened, so its result is no news.
            Inner::Open { .. } | Inner::Trying { .. } => {}
        }
    }

    fn note_success(&self, probe: bool) {
        let mut inner = self.lock();
        match *inner {
            Inner::Closed { .. } => *inner = Inner::Closed { failures: 0 },
            Inner::Trying { .. } if probe => *inner = Inner::Closed { failures: 0 },
            Inner::Open { .. } | Inner::Trying { .. } => {}
        }
    }

    fn abandon_trial(&self) {
        let mut inner = self.lock();
        if let Inner::Trying { pause, since } = *inner {
            *inner = Inner::Open { until: since, pause };
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Permission to send one request.
#[derive(Debug)]
#[must_use = "say how the request went"]
pub struct Permit {
    breaker: Breaker,
    probe: bool,
    reported: bool,
}

impl Permit {
    /// Reports a success. A service that rejects a request for a reason other than its own trouble counts as working.
    pub fn succeeded(mut self) {
        self.reported = true;
        self.breaker.note_success(self.probe);
    }

    /// Reports that the service failed.
    pub fn failed(mut self, now: Instant) {
        self.reported = true;
        self.breaker.note_failure(now, self.probe);
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if self.probe && !self.reported {
            self.breaker.abandon_trial();
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LIMITS: Limits =
        Limits { failures: 3, first_pause: Duration::from_secs(5), longest_pause: Duration::from_secs(15) };

    /// Runs a script: `a` asks and keeps the permit, `s` and `f` report success or failure on the oldest permit, `d`
    /// drops it, and a number advances the clock by that many seconds. Returns the result of each `a` (`+`, or the
    /// seconds to wait) and the last state.
    fn play(script: &str) -> (String, State) {
        let breaker = Breaker::new(LIMITS);
        let (mut now, mut permits, mut seen) = (Instant::now(), std::collections::VecDeque::new(), String::new());
        for step in script.split_whitespace() {
            let waits = breaker.waits(now);
            let mut oldest = || permits.pop_front().expect("a permit is held");
            match step {
                "a" => match breaker.admit(now) {
                    Ok(permit) => {
                        assert_eq!(waits, None);
                        permits.push_back(permit);
                        seen.push('+');
                    }
                    Err(refused) => {
                        assert_eq!(waits, Some(refused.retry_in));
                        seen.push_str(&refused.retry_in.as_secs().to_string());
                    }
                },
                "s" => oldest().succeeded(),
                "f" => oldest().failed(now),
                "d" => drop(oldest()),
                seconds => now += Duration::from_secs(seconds.parse().expect("seconds")),
            }
        }
        (seen, breaker.state())
    }

    #[track_caller]
    fn check(script: &str, seen: &str, state: State) {
        assert_eq!(play(script), (seen.to_owned(), state), "{script}");
    }

    #[test]
    fn it_opens_after_failures_and_closes_after_a_good_trial() {
        use State::{Closed, HalfOpen, Open};
        check("a f a f a s a f a f a", "++++++", Closed);
        check("a f a f a f a 2 a", "+++53", Open);
        check("a f a f a f 5 a a", "++++0", HalfOpen);
        check("a f a f a f 5 a s a a a", "+++++++", Closed);
        // Each failed trial doubles the pause, up to the longest.
        check("a f a f a f 5 a f a 10 a f a 15 a f a", "++++10+15+15", Open);
        // A closed breaker starts again with the first pause.
        check("a f a f a f 5 a f 10 a s a f a f a f a", "++++++++5", Open);
        // An abandoned trial leaves room for the next one.
        check("a f a f a f 5 a d a", "+++++", HalfOpen);
        // The results of requests that began before the breaker opened are ignored.
        check("a a a a a f f f s f a", "+++++5", Open);
        check("a a a a a f f f 5 a s f a", "++++++0", HalfOpen);
    }

    proptest! {
        #[test]
        fn it_admits_nothing_before_the_time_it_announced(steps in prop::collection::vec((0_u8..5, 0_u64..12), 0..200)) {
            let breaker = Breaker::new(LIMITS);
            let mut now = Instant::now();
            let mut permits: Vec<Permit> = Vec::new();
            let mut open_until: Option<Instant> = None;
            for (step, seconds) in steps {
                now += Duration::from_secs(seconds);
                match step {
                    0 | 1 => match breaker.admit(now) {
                        Ok(permit) => {
                            prop_assert!(open_until.is_none_or(|until| now >= until));
                            prop_assert!(!permit.probe || permits.iter().all(|other| !other.probe));
                            open_until = None;
                            permits.push(permit);
                        }
                        Err(refused) => {
                            prop_assert!(refused.retry_in <= LIMITS.longest_pause);
                            open_until = Some(now + refused.retry_in);
                        }
                    },
                    2 => {
                        if let Some(permit) = permits.pop() {
                            // A successful trial closes the breaker at once, whatever was announced before.
                            open_until = open_until.filter(|_| !permit.probe);
                            permit.succeeded();
                        }
                    }
                    3 => {
                        if let Some(permit) = permits.pop() {
                            permit.failed(now);
                        }
                    }
                    _ => drop(permits.pop()),
                }
            }
        }
    }
}
