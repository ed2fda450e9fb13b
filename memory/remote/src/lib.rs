//! Calls to storage servers. The traits of `azera-memory` block, and the clients of servers are asynchronous.
//! [`Server::call`] waits for an answer with a deadline, a few retries with jitter, and a circuit breaker for a server
//! that keeps failing. The clients themselves are in the crates for Qdrant and Redis.
//!
//! Invariants:
//! - No call takes longer than its deadline. While the breaker is open, calls fail at once.
//! - Errors contain what the client says about the connection, or the server about the request, but never what was
//!   sent.

use std::sync::mpsc::sync_channel;
use std::sync::{PoisonError, RwLock};
use std::time::{Duration, Instant};

use azera_breaker::{Breaker, Limits, State};
use azera_memory::Error;
use backon::{ExponentialBuilder, Retryable};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::time::timeout;

/// Most characters of a server's message in an error.
const MAX_MESSAGE_CHARS: usize = 300;

/// Deadlines and retries of calls to a server.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RetryPolicy {
    /// Deadline of a call that a turn waits for, including its retries.
    pub foreground: Duration,
    /// Deadline of a call that reads or changes much of the server's data.
    pub bulk: Duration,
    /// Retries after a transient failure, within the deadline.
    pub retries: usize,
    /// Wait before the first retry. It doubles each time, plus a random time up to the same length.
    pub retry_delay: Duration,
    /// Limits of the circuit breaker.
    pub breaker: Limits,
}

impl Default for RetryPolicy {
    /// Returns one second for calls that a turn waits for. A server on the same network answers in a thousandth of
    /// that, and a turn that waits longer is slower than one without the server. The breaker opens at the third
    /// failure.
    fn default() -> Self {
        Self {
            foreground: Duration::from_secs(1),
            bulk: Duration::from_secs(60),
            retries: 1,
            retry_delay: Duration::from_millis(50),
            breaker: Limits { failures: 3, ..Limits::default() },
        }
    }
}

/// The deadline of a call, out of the [`RetryPolicy`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deadline {
    /// [`RetryPolicy::foreground`].
    Foreground,
    /// [`RetryPolicy::bulk`].
    Bulk,
}

/// The reason why a call failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// The server or the network has a problem. The same call may succeed later. This counts for the breaker.
    Unavailable(String),
    /// The server works and refuses the call.
    Refused(String),
    /// The request is invalid, or does not fit the server's data.
    Invalid(String),
}

/// Calls to one server. They run on a thread of their own, so that callers may block anywhere.
pub struct Server {
    name: String,
    patience: RetryPolicy,
    breaker: Breaker,
    /// Taken by [`Server::stop`].
    runtime: RwLock<Option<Runtime>>,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server")
            .field("name", &self.name)
            .field("breaker", &self.breaker.state())
            .finish_non_exhaustive()
    }
}

impl Server {
    /// Returns the caller for a server. `name` appears in errors: its kind and address, without secrets. Sends nothing
    /// yet.
    ///
    /// # Errors
    ///
    /// Fails if no thread can be started.
    pub fn new(name: impl Into<String>, patience: RetryPolicy) -> Result<Self, Error> {
        let runtime = Builder::new_multi_thread().worker_threads(1).thread_name("azera-store").enable_all().build();
        let runtime = runtime.map_err(Error::io("starting the thread of a store's server"))?;
        let breaker = Breaker::new(patience.breaker);
        Ok(Self { name: name.into(), patience, breaker, runtime: RwLock::new(Some(runtime)) })
    }

    /// Returns the server's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns how long the breaker stays open, if it is.
    pub fn breaker_pause(&self) -> Option<Duration> {
        self.breaker.waits(Instant::now())
    }

    /// Runs `make` on the thread of the calls, for clients that start tasks there.
    ///
    /// # Errors
    ///
    /// Fails if this was stopped.
    pub fn make<T>(&self, make: impl FnOnce() -> T) -> Result<T, Error> {
        let handle = self.handle().ok_or_else(|| self.stopped("making a client"))?;
        let _here = handle.enter();
        Ok(make())
    }

    /// Ends all calls in progress and refuses further ones.
    pub fn stop(&self) {
        let runtime = self.runtime.write().unwrap_or_else(PoisonError::into_inner).take();
        // This does not wait, so it can be called anywhere.
        runtime.into_iter().for_each(Runtime::shutdown_background);
    }

    fn handle(&self) -> Option<Handle> {
        self.runtime.read().unwrap_or_else(PoisonError::into_inner).as_ref().map(|runtime| runtime.handle().clone())
    }

    fn stopped(&self, what: &'static str) -> Error {
        self.error(what, Failure::Unavailable("this process is stopping".into()))
    }

    /// Calls the server through `work`, which may run several times, and waits for the answer. `what` names the
    /// operation.
    ///
    /// # Errors
    ///
    /// [`Error::Backend`], which is transient if the server is unavailable or the breaker is open; [`Error::Invalid`]
    /// if the request is wrong.
    pub fn call<T, F>(
        &self,
        what: &'static str,
        deadline: Deadline,
        work: impl FnMut() -> F + Send + 'static,
    ) -> Result<T, Error>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Failure>> + Send + 'static,
    {
        let runtime = self.handle().ok_or_else(|| self.stopped(what))?;
        let pass = self.breaker.admit(Instant::now()).map_err(|refused| {
            let why = format!("it failed several times and is asked again in {} s", refused.retry_in.as_secs());
            self.error(what, Failure::Unavailable(why))
        })?;
        let after = match deadline {
            Deadline::Foreground => self.patience.foreground,
            Deadline::Bulk => self.patience.bulk,
        };
        let RetryPolicy { retries, retry_delay, .. } = self.patience;
        let backoff = ExponentialBuilder::default().with_jitter().with_min_delay(retry_delay).with_max_times(retries);
        let (sender, receiver) = sync_channel(1);
        runtime.spawn(async move {
            let calls = work.retry(backoff).when(|failure| matches!(failure, Failure::Unavailable(_)));
            let silent = |_| Err(Failure::Unavailable(format!("it said nothing for {:.1} s", after.as_secs_f32())));
            // The receiver still exists: the caller waits below.
            sender.send(timeout(after, calls).await.unwrap_or_else(silent)).ok();
        });
        let answer = receiver.recv().map_err(|_| self.stopped(what))?;
        let before = self.breaker.state();
        match &answer {
            Err(Failure::Unavailable(_)) => pass.failed(Instant::now()),
            _ => pass.succeeded(),
        }
        match (before, self.breaker.state(), &answer) {
            (State::Closed, State::Open, Err(Failure::Unavailable(why))) => {
                let why = shortened(why);
                tracing::warn!(server = self.name, why, "the server keeps failing; pausing calls to it");
            }
            (State::HalfOpen, State::Closed, _) => tracing::info!(server = self.name, "the server works again"),
            _ => {}
        }
        answer.map_err(|failure| self.error(what, failure))
    }

    fn error(&self, what: &'static str, failure: Failure) -> Error {
        let (why, transient) = match failure {
            Failure::Invalid(why) => return Error::Invalid(format!("{}: {}", self.name, shortened(&why))),
            Failure::Unavailable(why) => (why, true),
            Failure::Refused(why) => (why, false),
        };
        Error::Backend { what, why: format!("{}: {}", self.name, shortened(&why)), transient }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

fn shortened(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().take(MAX_MESSAGE_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    const LIMITS: Limits =
        Limits { failures: 2, first_pause: Duration::from_secs(3_600), longest_pause: Duration::from_secs(3_600) };

    fn server() -> Server {
        patient(Duration::from_secs(60))
    }

    fn patient(foreground: Duration) -> Server {
        let patience = RetryPolicy {
            foreground,
            bulk: Duration::from_secs(60),
            retries: 2,
            retry_delay: Duration::from_millis(1),
            breaker: LIMITS,
        };
        Server::new("the store at test", patience).unwrap()
    }

    /// Answers with each of these in turn, then with the last one; returns the number of calls.
    fn ask(server: &Server, answers: &[Result<u32, Failure>]) -> (Result<u32, Error>, usize) {
        let (answers, calls) = (answers.to_vec(), Arc::new(AtomicUsize::new(0)));
        let count = calls.clone();
        let got = server.call("asking", Deadline::Foreground, move || {
            let number = count.fetch_add(1, Ordering::SeqCst).min(answers.len() - 1);
            let answer = answers[number].clone();
            async move { answer }
        });
        (got, calls.load(Ordering::SeqCst))
    }

    #[test]
    fn transient_failures_are_retried_and_refusals_are_not() {
        let (unavailable, refused) = (Err(Failure::Unavailable("gone".into())), Err(Failure::Refused("no".into())));
        let server = server();
        let (got, calls) = ask(&server, &[unavailable.clone(), unavailable.clone(), Ok(7)]);
        assert_eq!((got.unwrap(), calls), (7, 3));
        let (got, calls) = ask(&server, &[refused]);
        let error = got.unwrap_err();
        assert_eq!((error.to_string().as_str(), calls), ("asking: the store at test: no", 1));
        assert!(!error.is_transient());
        let (got, _) = ask(&server, &[Err(Failure::Invalid("a bad vector".into()))]);
        assert!(matches!(got, Err(Error::Invalid(_))));
        let (got, calls) = ask(&server, &[unavailable]);
        assert!(got.unwrap_err().is_transient());
        assert_eq!(calls, 3);
    }

    #[test]
    fn the_breaker_pauses_calls_to_a_server_that_keeps_failing() {
        let server = server();
        for _ in 0..2 {
            assert_eq!(server.breaker_pause(), None);
            ask(&server, &[Err(Failure::Unavailable("gone".into()))]).0.unwrap_err();
        }
        let (got, calls) = ask(&server, &[Ok(1)]);
        let error = got.unwrap_err();
        assert_eq!(calls, 0);
        assert!(error.is_transient() && error.to_string().contains("asked again in"), "{error}");
        assert!(server.breaker_pause().is_some());
    }

    #[test]
    fn a_silent_server_runs_into_the_deadline() {
        let server = patient(Duration::from_millis(200));
        let silent = || server.call("asking", Deadline::Foreground, std::future::pending::<Result<(), Failure>>);
        assert!(silent().unwrap_err().to_string().contains("said nothing for 0.2 s"));
        // This also works inside a runtime, and when dropped there.
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async move {
            assert_eq!(server.call("asking", Deadline::Bulk, || async { Ok(3) }).unwrap(), 3);
            drop(server);
        });
    }

    #[test]
    fn stopping_ends_calls_in_progress() {
        let server = server();
        std::thread::scope(|scope| {
            let (calls, begun) = std::sync::mpsc::channel();
            let waiting = scope.spawn(|| {
                server.call("asking", Deadline::Bulk, move || {
                    calls.send(()).ok();
                    std::future::pending::<Result<(), Failure>>()
                })
            });
            begun.recv().unwrap();
            server.stop();
            assert!(waiting.join().unwrap().unwrap_err().to_string().contains("stopping"));
        });
        assert!(ask(&server, &[Ok(1)]).0.is_err());
    }
}
