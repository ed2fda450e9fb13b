use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;

/// Where time comes from.
pub trait Clock: Send + Sync {
    /// The time now.
    fn now(&self) -> Timestamp;
}

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the one place that asks the system")]
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// A clock that stands until it is moved: for replay and tests.
#[derive(Debug, Clone)]
pub struct ManualClock(Arc<Mutex<Timestamp>>);

impl ManualClock {
    /// A clock that stands at `start`.
    pub fn new(start: Timestamp) -> Self {
        Self(Arc::new(Mutex::new(start)))
    }

    /// Moves the clock to `to`; a time before the present one leaves it where it is, for time never runs backwards.
    pub fn advance_to(&self, to: Timestamp) {
        let mut now = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *now = to.max(*now);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
