//! The classifiers of moods, tags and salience, which are learned or loaded in the background after a start.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use azera_affect::Classifiers;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// The first wait before learning is tried again, and the longest.
const RETRY_WAITS: [Duration; 2] = [Duration::from_secs(10), Duration::from_secs(600)];

/// Where the classifiers stand.
#[derive(Clone)]
enum State {
    /// There are none, and none are on their way: nobody asked for them, or learning them failed.
    Absent,
    /// They are being learned or loaded.
    UnderWay,
    /// They are here.
    Ready(Arc<Classifiers>),
}

/// The classifiers, once they are there. While they are not, nothing may be read from that: see [`LazyClassifiers::wait`].
pub(crate) struct LazyClassifiers(watch::Sender<State>);

impl Default for LazyClassifiers {
    fn default() -> Self {
        Self(watch::Sender::new(State::Absent))
    }
}

impl LazyClassifiers {
    /// The classifiers, if they are there now.
    pub(crate) fn now(&self) -> Option<Arc<Classifiers>> {
        match &*self.0.borrow() {
            State::Ready(classifiers) => Some(Arc::clone(classifiers)),
            State::Absent | State::UnderWay => None,
        }
    }

    /// Waits while the classifiers are being learned, at most for `limit`; `None` if they are not there then.
    pub(crate) async fn wait(&self, limit: Duration) -> Option<Arc<Classifiers>> {
        tokio::time::timeout(limit, self.settled()).await.ok();
        self.now()
    }

    /// Waits until nothing is being learned.
    pub(crate) async fn settled(&self) {
        let mut state = self.0.subscribe();
        // The sender lives as long as `self`.
        state.wait_for(|state| !matches!(state, State::UnderWay)).await.ok();
    }

    /// Notes that learning has begun, so that turns wait for it from now on; false if it has already.
    pub(crate) fn begin(&self) -> bool {
        self.0.send_if_modified(|state| {
            let absent = matches!(state, State::Absent);
            if absent {
                *state = State::UnderWay;
            }
            absent
        })
    }

    /// Returns true if this try succeeded.
    async fn learned_once<E: Display>(
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
                tracing::warn!(%error, "the classifiers of moods and tags could not be learned; it is tried again");
                false
            }
        }
    }

    /// Learns until it succeeds. Turns wait for the first try alone: after a failure they are judged without classifiers.
    pub(crate) async fn learn<E: Display, F: Future<Output = Result<Arc<Classifiers>, E>>>(
        &self,
        learn: impl Fn() -> F,
        stopping: &CancellationToken,
    ) {
        let [mut wait, longest] = RETRY_WAITS;
        loop {
            if self.learned_once(learn(), stopping).await {
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
    async fn a_wait_ends_when_learning_fails_and_learning_is_tried_again() {
        let classifiers = Arc::new(LazyClassifiers::default());
        assert!(classifiers.wait(Duration::from_secs(60)).await.is_none(), "nothing is on its way");
        assert!(classifiers.begin() && !classifiers.begin());
        let tries = Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let stopping = CancellationToken::new();
        let (of, counted, stop) = (Arc::clone(&classifiers), Arc::clone(&tries), stopping.clone());
        let learning = tokio::spawn(async move {
            let learn = || async {
                counted.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                Err::<Arc<Classifiers>, _>("the embedding model is away")
            };
            of.learn(learn, &stop).await;
        });
        assert!(classifiers.wait(Duration::from_secs(60)).await.is_none());
        tokio::time::sleep(Duration::from_secs(100)).await;
        assert!(tries.load(std::sync::atomic::Ordering::SeqCst) >= 3);
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
