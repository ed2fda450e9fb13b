//! The classifiers of moods, tags and salience. They are trained or loaded in the background after a start.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use azera_affect::Classifiers;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// Wait before the first retry of training, and the longest wait.
const RETRY_WAITS: [Duration; 2] = [Duration::from_secs(10), Duration::from_secs(600)];

#[derive(Clone)]
enum State {
    /// There are none and none are expected: training was never started, or it failed.
    Absent,
    /// They are being trained or loaded.
    UnderWay,
    Ready(Arc<Classifiers>),
}

/// Classifiers that become available some time after the start. Until then nothing can be concluded from their absence;
/// see [`LazyClassifiers::wait`].
pub(crate) struct LazyClassifiers(watch::Sender<State>);

impl Default for LazyClassifiers {
    fn default() -> Self {
        Self(watch::Sender::new(State::Absent))
    }
}

impl LazyClassifiers {
    /// Returns the classifiers if they are ready.
    pub(crate) fn now(&self) -> Option<Arc<Classifiers>> {
        match &*self.0.borrow() {
            State::Ready(classifiers) => Some(Arc::clone(classifiers)),
            State::Absent | State::UnderWay => None,
        }
    }

    /// Waits while the classifiers are being trained, at most for `limit`. Returns `None` if they are not ready then.
    pub(crate) async fn wait(&self, limit: Duration) -> Option<Arc<Classifiers>> {
        tokio::time::timeout(limit, self.settled()).await.ok();
        self.now()
    }

    /// Waits until no training is in progress.
    pub(crate) async fn settled(&self) {
        let mut state = self.0.subscribe();
        // The sender lives as long as `self`.
        state.wait_for(|state| !matches!(state, State::UnderWay)).await.ok();
    }

    /// Marks training as started, so that turns wait for it from now on. Returns false if it was already.
    pub(crate) fn begin(&self) -> bool {
        self.0.send_if_modified(|state| {
            let absent = matches!(state, State::Absent);
            if absent {
                *state = State::UnderWay;
            }
            absent
        })
    }

    /// Trains once. Returns true if that succeeded.
    async fn train_once<E: Display>(
        &self,
        learning: impl Future<Output = Result<Arc<Classifiers>, E>>,
        stopping: &CancellationToken,
    ) -> bool {
        let learned = tokio::select! {
            () = stopping.cancelled() => return false,
            learned = learning => learned,
        };
        match learned {
            Ok(classifiers) => {
                self.0.send_replace(State::Ready(classifiers));
                true
            }
            Err(error) => {
                tracing::warn!(%error, "cannot train the classifiers of moods and tags; retrying");
                false
            }
        }
    }

    /// Retries training until it succeeds. Turns wait only for the first try; after a failure they are judged without
    /// classifiers.
    pub(crate) async fn learn<E: Display, F: Future<Output = Result<Arc<Classifiers>, E>>>(
        &self,
        learn: impl Fn() -> F,
        stopping: &CancellationToken,
    ) {
        let [mut wait, longest] = RETRY_WAITS;
        loop {
            if self.train_once(learn(), stopping).await {
                return;
            }
            self.0.send_replace(State::Absent);
            tokio::select! {
                () = stopping.cancelled() => return,
                () = tokio::time::sleep(wait) => wait = (wait * 2).min(longest),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_wait_ends_when_training_fails_and_training_is_retried() {
        let classifiers = Arc::new(LazyClassifiers::default());
        assert!(classifiers.wait(Duration::from_secs(60)).await.is_none(), "nothing is on its way");
        assert!(classifiers.begin() && !classifiers.begin());
        let tries = Arc::new(tokio::sync::Semaphore::new(0));
        let stopping = CancellationToken::new();
        let (of, counted, stop) = (Arc::clone(&classifiers), Arc::clone(&tries), stopping.clone());
        let learning = tokio::spawn(async move {
            let learn = || async {
                counted.add_permits(1);
                Err::<Arc<Classifiers>, _>("the embedding model is away")
            };
            of.learn(learn, &stop).await;
        });
        assert!(classifiers.wait(Duration::from_secs(60)).await.is_none());
        // Time is paused, so the waits between three tries pass at once.
        tries.acquire_many(3).await.unwrap().forget();
        stopping.cancel();
        learning.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_has_a_limit() {
        let classifiers = LazyClassifiers::default();
        classifiers.begin();
        let before = tokio::time::Instant::now();
        assert!(classifiers.wait(Duration::from_secs(60)).await.is_none());
        assert_eq!(before.elapsed(), Duration::from_secs(60));
    }
}
