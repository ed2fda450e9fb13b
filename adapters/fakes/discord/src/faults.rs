//! Trouble, as it is ordered.

use std::time::Duration;

/// Whose limit a request ran into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The bot's own, on this route.
    User,
    /// Everybody's together, on this route.
    Shared,
    /// The bot's own, over all routes.
    Global,
}

/// What happens to the next request of a kind.
#[derive(Debug, Clone)]
pub struct Fault {
    /// The request's method.
    pub method: &'static str,
    /// What its path contains.
    pub path: String,
    /// What becomes of it.
    pub what: What,
    /// To how many requests it happens.
    pub times: usize,
}

/// What becomes of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// It is too much for now.
    Limited(Scope, Duration),
    /// It is not done, and a server's fault is answered.
    Fails(u16),
    /// It is done, and a server's fault is answered all the same.
    DoneButFails(u16),
}

impl Fault {
    /// The next request is answered with 429.
    pub fn limited(method: &'static str, path: &str, scope: Scope, wait: Duration) -> Self {
        Self { method, path: path.to_owned(), what: What::Limited(scope, wait), times: 1 }
    }

    /// The next request fails with a status.
    pub fn fails(method: &'static str, path: &str, status: u16) -> Self {
        Self { method, path: path.to_owned(), what: What::Fails(status), times: 1 }
    }

    /// The next request is done, and fails with a status all the same.
    pub fn done_but_fails(method: &'static str, path: &str, status: u16) -> Self {
        Self { method, path: path.to_owned(), what: What::DoneButFails(status), times: 1 }
    }

    /// To so many requests.
    pub fn times(self, times: usize) -> Self {
        Self { times, ..self }
    }
}
