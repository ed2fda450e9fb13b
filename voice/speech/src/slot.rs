//! One piece of work at a time, on a thread for blocking work.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Semaphore;

/// The most messages that wait or are worked on.
const MAX_PLACES: usize = 16;

/// Why work was not done.
pub(crate) enum NotDone {
    /// Too much waits already.
    Busy,
    /// It panicked, or the runtime stops.
    Failed,
}

/// Runs one piece of work at a time.
pub(crate) struct Slot {
    places: Arc<Semaphore>,
    turn: Arc<Semaphore>,
}

/// Tells the work that nobody waits for its result any more.
struct CancelOnDrop(Arc<AtomicBool>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

impl Slot {
    pub(crate) fn new() -> Self {
        Self { places: Arc::new(Semaphore::new(MAX_PLACES)), turn: Arc::new(Semaphore::new(1)) }
    }

    /// Runs work when it is its turn. The function that it gets returns false once the caller dropped the future.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&(dyn Fn() -> bool + Sync)) -> T + Send + 'static,
    ) -> Result<T, NotDone> {
        let place = Arc::clone(&self.places).try_acquire_owned().map_err(|_| NotDone::Busy)?;
        let turn = Arc::clone(&self.turn).acquire_owned().await.map_err(|_| NotDone::Failed)?;
        let cancelled = Arc::new(AtomicBool::new(false));
        let _cancel = CancelOnDrop(Arc::clone(&cancelled));
        let running = tokio::task::spawn_blocking(move || {
            // Work that nobody waits for any more keeps its turn until it has ended.
            let _held = (place, turn);
            work(&|| !cancelled.load(Ordering::Acquire))
        });
        running.await.map_err(|_| NotDone::Failed)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn a_full_slot_refuses_and_a_dropped_caller_cancels() {
        let slot = Arc::new(Slot::new());
        let (tell_start, started) = mpsc::channel();
        let (tell_end, ended) = mpsc::channel();
        let first = {
            let slot = Arc::clone(&slot);
            tokio::spawn(async move {
                let work = move |is_wanted: &(dyn Fn() -> bool + Sync)| {
                    tell_start.send(()).unwrap();
                    while is_wanted() {
                        std::thread::yield_now();
                    }
                    tell_end.send(()).unwrap();
                };
                slot.run(work).await.is_ok()
            })
        };
        tokio::task::spawn_blocking(move || started.recv().unwrap()).await.unwrap();
        let mut waiting: Vec<_> = (1..MAX_PLACES).map(|_| Box::pin(slot.run(|_| ()))).collect();
        for waits in &mut waiting {
            let poll = std::future::poll_fn(|context| std::task::Poll::Ready(waits.as_mut().poll(context)));
            assert!(poll.await.is_pending());
        }
        assert!(matches!(slot.run(|_| ()).await, Err(NotDone::Busy)));
        first.abort();
        tokio::task::spawn_blocking(move || ended.recv().unwrap()).await.unwrap();
        for waits in waiting {
            assert!(waits.await.is_ok());
        }
        assert!(slot.run(|_| 1).await.is_ok_and(|done| done == 1));
    }

    #[tokio::test]
    async fn a_panic_frees_the_slot() {
        let slot = Slot::new();
        assert!(matches!(slot.run(|_| panic!("on purpose")).await, Err::<(), _>(NotDone::Failed)));
        assert!(slot.run(|_| ()).await.is_ok());
    }
}
