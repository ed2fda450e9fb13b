//! What stores on servers have in common. The contracts of memory block, the clients of servers are asynchronous: here a
//! call waits for its answer, with a deadline, a few retries with jitter, and a breaker that leaves a server alone which
//! keeps failing.
//!
//! Invariants:
//! - No call takes longer than its deadline, and while the server is left alone none takes any time.
//! - Errors hold what the client says of the connection or the server of the request, never what was sent.

use std::sync::mpsc::sync_channel;
use std::sync::{PoisonError, RwLock};
use std::time::{Duration, Instant};

use azera_breaker::{Breaker, Limits, State};
use azera_memory::Error;
use backon::{ExponentialBuilder, Retryable};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::time::timeout;

/// Characters of a server's message that an error shows.
const MAX_MESSAGE_CHARS: usize = 300;

/// How long a server is waited for, and how often it is asked again.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RetryPolicy {
    /// For a call that somebody waits for, its retries included.
    pub foreground: Duration,
    /// For a call that goes through much of what the server holds.
    pub bulk: Duration,
    /// Times a call is made again after a passing failure, within its deadline.
    pub retries: usize,
    /// Wait before the first of those; it doubles, and up to as much again is added by chance.
    pub retry_delay: Duration,
    /// When a server that keeps failing is left alone, and how long.
    pub breaker: Limits,
}

impl Default for RetryPolicy {
    /// A second for what a turn waits for: a server on the same network answers in a thousandth of it, and a turn that
    /// waited longer would be slower than one without the server. The breaker opens at the third failure.
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

/// Which deadline of the [`RetryPolicy`] a call has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deadline {
    /// [`RetryPolicy::live`].
    Foreground,
    /// [`RetryPolicy::bulk`].
    Bulk,
}

/// Why a call failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// The server, or the way to it, is in trouble. The same call may succeed later; it counts for the breaker.
    Unavailable(String),
    /// The server is well and refuses the call.
    Refused(String),
    /// The request itself is wrong, or what the server holds does not fit to it.
    Invalid(String),
}

/// The calls to one server. They run on a thread of its own, so that callers may block wherever they are.
pub struct Server {
    name: String,
    patience: RetryPolicy,
    breaker: Breaker,
    /// Taken when it is stopped.
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
    /// Calls to the server of this name, which stands in errors: its kind and address, without secrets. Nothing is sent
    /// yet.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn new(name: impl Into<String>, patience: RetryPolicy) -> Result<Self, Error> {
        let runtime = Builder::new_multi_thread().worker_threads(1).thread_name("azera-store").enable_all().build();
        let runtime = runtime.map_err(Error::io("starting the thread of a store's server"))?;
        let breaker = Breaker::new(patience.breaker);
        Ok(Self { name: name.into(), patience, breaker, runtime: RwLock::new(Some(runtime)) })
    }

    /// The server in words.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How long the server will be left alone, if it is.
    pub fn breaker_pause(&self) -> Option<Duration> {
        self.breaker.waits(Instant::now())
    }

    /// Makes a client on the calls' thread, for those that start something there.
    ///
    /// # Errors
    /// If this was stopped.
    pub fn make<T>(&self, make: impl FnOnce() -> T) -> Result<T, Error> {
        let handle = self.handle().ok_or_else(|| self.stopped("making a client"))?;
        let _here = handle.enter();
        Ok(make())
    }

    /// Ends all calls under way, and refuses further ones.
    pub fn stop(&self) {
        let runtime = self.runtime.write().unwrap_or_else(PoisonError::into_inner).take();
        // Waits for nothing, so that it can be called anywhere.
        runtime.into_iter().for_each(Runtime::shutdown_background);
    }

    fn handle(&self) -> Option<Handle> {
        self.runtime.read().unwrap_or_else(PoisonError::into_inner).as_ref().map(|runtime| runtime.handle().clone())
    }

    fn stopped(&self, what: &'static str) -> Error {
        self.error(what, Failure::Unavailable("this process is stopping".into()))
    }

    /// Does `work`, which asks the server and may be done twice, and waits for the answer. `what` says what is being
    /// done.
    ///
    /// # Errors
    /// [`Error::Backend`], transient if the server is away or being left alone; [`Error::Invalid`] if the request is wrong.
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
            // Whoever asked is still there: it waits for this.
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
                tracing::warn!(server = self.name, why, "the server keeps failing and is left alone");
            }
            (State::HalfOpen, State::Closed, _) => tracing::info!(server = self.name, "the server is back"),
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

    /// Answers with each of these in turn, then with the last one; gives how often it was asked.
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
    fn passing_failures_are_asked_again_and_refusals_are_not() {
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
    fn a_server_that_keeps_failing_is_left_alone() {
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
    fn silence_has_a_limit_wherever_it_is_waited_for() {
        let server = patient(Duration::from_millis(200));
        let silent = || server.call("asking", Deadline::Foreground, std::future::pending::<Result<(), Failure>>);
        assert!(silent().unwrap_err().to_string().contains("said nothing for 0.2 s"));
        // Inside a runtime, too, and dropped there.
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async move {
            assert_eq!(server.call("asking", Deadline::Bulk, || async { Ok(3) }).unwrap(), 3);
            drop(server);
        });
    }

    #[test]
    fn stopping_ends_what_is_under_way() {
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
