//! A circuit breaker: after some failures in a row it lets nothing through to a service for a while, then one request to
//! see whether it works again. Who asks a service that is down is told so at once instead of waiting for it each time.
//!
//! Pure: it reads no clock and starts nothing. Whoever asks says what time it is.
//!
//! Invariants:
//! - While it is open, nothing is let through before the pause is over; then one request at a time.
//! - One failed try makes the pause twice as long, up to the longest; one success closes the breaker and forgets all.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// When a breaker opens, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Failures in a row that open it; 0 counts as 1.
    pub failures: u32,
    /// How long it stays open the first time.
    pub first_pause: Duration,
    /// How long it stays open at most, however often the service failed.
    pub longest_pause: Duration,
}

impl Default for Limits {
    /// Opens at the fifth failure, for 5 seconds at first and 2 minutes at most: long enough not to add to a server's
    /// troubles, short enough that people hardly notice when it is back.
    fn default() -> Self {
        Self { failures: 5, first_pause: Duration::from_secs(5), longest_pause: Duration::from_secs(120) }
    }
}

/// What a breaker does with requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It lets them through.
    Closed,
    /// It lets none through.
    Open,
    /// It lets one through to see how that goes.
    HalfOpen,
}

/// A request was not let through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refused {
    /// How long until it is worth asking again; zero while a try is under way.
    pub retry_in: Duration,
}

/// A circuit breaker for one service. Cheap to clone; every clone is the same breaker.
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
    /// A closed breaker.
    pub fn new(limits: Limits) -> Self {
        Self { limits, inner: Arc::new(Mutex::new(Inner::Closed { failures: 0 })) }
    }

    /// Asks whether a request may go to the service. Say on the [`Permit`] how it went; a pass that is dropped without a
    /// word, as of a request nobody waits for any more, counts neither way.
    ///
    /// # Errors
    /// [`Refused`] while the breaker is open or a try is under way.
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

    /// How long nothing will be let through, if it is open; it takes no pass.
    pub fn waits(&self, now: Instant) -> Option<Duration> {
        match *self.lock() {
            Inner::Open { until, .. } if now < until => Some(until - now),
            Inner::Trying { .. } => Some(Duration::ZERO),
            Inner::Closed { .. } | Inner::Open { .. } => None,
        }
    }

    /// What it does now. An open breaker whose pause is over is still open until somebody asks.
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
            // A request from before it opened: it says nothing new.
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

    fn abandon_try(&self) {
        let mut inner = self.lock();
        if let Inner::Trying { pause, since } = *inner {
            *inner = Inner::Open { until: since, pause };
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Leave to send one request.
#[derive(Debug)]
#[must_use = "say how the request went"]
pub struct Permit {
    breaker: Breaker,
    probe: bool,
    reported: bool,
}

impl Permit {
    /// The service did its work, or refused for a reason that is not its own trouble.
    pub fn succeeded(mut self) {
        self.reported = true;
        self.breaker.note_success(self.probe);
    }

    /// The service failed.
    pub fn failed(mut self, now: Instant) {
        self.reported = true;
        self.breaker.note_failure(now, self.probe);
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if self.probe && !self.reported {
            self.breaker.abandon_try();
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LIMITS: Limits =
        Limits { failures: 3, first_pause: Duration::from_secs(5), longest_pause: Duration::from_secs(15) };

    /// Plays a script: `a` asks and keeps the pass, `s` and `f` end the oldest kept pass well or badly, `d` drops it, a
    /// number lets so many seconds go by. Gives for each `a` what came of it: `+`, or the seconds to wait.
    fn play(script: &str) -> (String, State) {
        let breaker = Breaker::new(LIMITS);
        let (mut now, mut passes, mut seen) = (Instant::now(), std::collections::VecDeque::new(), String::new());
        for step in script.split_whitespace() {
            let waits = breaker.waits(now);
            let mut oldest = || passes.pop_front().expect("a pass is held");
            match step {
                "a" => match breaker.admit(now) {
                    Ok(pass) => {
                        assert_eq!(waits, None);
                        passes.push_back(pass);
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
    fn it_opens_tries_and_closes() {
        use State::{Closed, HalfOpen, Open};
        check("a f a f a s a f a f a", "++++++", Closed);
        check("a f a f a f a 2 a", "+++53", Open);
        check("a f a f a f 5 a a", "++++0", HalfOpen);
        check("a f a f a f 5 a s a a a", "+++++++", Closed);
        // Each failed try doubles the pause, up to the longest.
        check("a f a f a f 5 a f a 10 a f a 15 a f a", "++++10+15+15", Open);
        // Closed again it starts from the beginning.
        check("a f a f a f 5 a f 10 a s a f a f a f a", "++++++++5", Open);
        // A try that nobody waited for leaves room for the next.
        check("a f a f a f 5 a d a", "+++++", HalfOpen);
        // What was under way when it opened says nothing new.
        check("a a a a a f f f s f a", "+++++5", Open);
        check("a a a a a f f f 5 a s f a", "++++++0", HalfOpen);
    }

    proptest! {
        #[test]
        fn it_never_lets_more_through_than_it_says(steps in prop::collection::vec((0_u8..5, 0_u64..12), 0..200)) {
            let breaker = Breaker::new(LIMITS);
            let mut now = Instant::now();
            let mut passes: Vec<Permit> = Vec::new();
            let mut open_until: Option<Instant> = None;
            for (step, seconds) in steps {
                now += Duration::from_secs(seconds);
                match step {
                    0 | 1 => match breaker.admit(now) {
                        Ok(pass) => {
                            prop_assert!(open_until.is_none_or(|until| now >= until));
                            prop_assert!(!pass.probe || passes.iter().all(|other| !other.probe));
                            open_until = None;
                            passes.push(pass);
                        }
                        Err(refused) => {
                            prop_assert!(refused.retry_in <= LIMITS.longest_pause);
                            open_until = Some(now + refused.retry_in);
                        }
                    },
                    2 => {
                        if let Some(pass) = passes.pop() {
                            // A try that goes well opens the way at once, whatever was said before.
                            open_until = open_until.filter(|_| !pass.probe);
                            pass.succeeded();
                        }
                    }
                    3 => {
                        if let Some(pass) = passes.pop() {
                            pass.failed(now);
                        }
                    }
                    _ => drop(passes.pop()),
                }
            }
        }
    }
}
