//! The steps of a recognition, between which other work may go first.

use azera_voice_api::Error;
use rayon::ThreadPool;

/// Runs steps on the threads of a model. Between them it holds no thread but the caller's, so a caller can pause there for as
/// long as it wants, and other calls have all threads.
pub(crate) struct Steps<'a> {
    pub(crate) threads: &'a ThreadPool,
    pub(crate) is_wanted: &'a (dyn Fn() -> bool + Sync),
}

impl Steps<'_> {
    /// Runs a step, unless the result is no longer wanted.
    pub(crate) fn run<T: Send>(&self, step: impl FnOnce() -> Result<T, Error> + Send) -> Result<T, Error> {
        if !(self.is_wanted)() {
            return Err(Error::Cancelled);
        }
        self.threads.install(step)
    }
}
