//! Faults that a test can inject.

use std::time::Duration;

/// The scope of a rate limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The bot's own limit on this route.
    User,
    /// The limit of all bots on this route.
    Shared,
    /// The bot's own limit over all routes.
    Global,
}

/// A fault for the next requests of a kind.
#[derive(Debug, Clone)]
pub struct Fault {
    /// The request's method.
    pub method: &'static str,
    /// A part of its path.
    pub path: String,
    /// The effect.
    pub what: What,
    /// Number of requests it applies to.
    pub times: usize,
}

/// The effect of a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// A rate limit.
    Limited(Scope, Duration),
    /// The request is not executed, and a server error is returned.
    Fails(u16),
    /// The request is executed, but a server error is returned.
    DoneButFails(u16),
}

impl Fault {
    /// Answers the next request with 429.
    pub fn limited(method: &'static str, path: &str, scope: Scope, wait: Duration) -> Self {
        Self { method, path: path.to_owned(), what: What::Limited(scope, wait), times: 1 }
    }

    /// Fails the next request with a status.
    pub fn fails(method: &'static str, path: &str, status: u16) -> Self {
        Self { method, path: path.to_owned(), what: What::Fails(status), times: 1 }
    }

    /// Executes the next request, but fails it with a status.
    pub fn done_but_fails(method: &'static str, path: &str, status: u16) -> Self {
        Self { method, path: path.to_owned(), what: What::DoneButFails(status), times: 1 }
    }

    /// Sets the number of requests.
    pub fn times(self, times: usize) -> Self {
        Self { times, ..self }
    }
}
