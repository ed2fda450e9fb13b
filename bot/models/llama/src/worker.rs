use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};

use azera_model_api::Error;
use tokio::sync::mpsc;

/// The stack of an engine's thread, in bytes. llama.cpp builds its graphs and matches grammars on it.
const STACK_BYTES: usize = 8 << 20;

/// The engine's end of a [`Worker`].
pub(crate) struct Inbox<C> {
    pub(crate) commands: mpsc::Receiver<C>,
    stop: Arc<AtomicBool>,
}

impl<C> Inbox<C> {
    /// Returns true if the engine must stop now.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }
}

/// An engine on a thread of its own, behind a bounded channel. Dropping it stops the engine within one step and waits
/// for the thread.
pub(crate) struct Worker<C> {
    commands: Option<mpsc::Sender<C>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl<C> fmt::Debug for Worker<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").field("thread", &self.thread).finish_non_exhaustive()
    }
}

impl<C: Send + 'static> Worker<C> {
    /// Starts `engine`, and waits until it calls its callback or fails.
    pub(crate) fn start<T: Send + 'static>(
        name: &str,
        capacity: usize,
        engine: impl FnOnce(Inbox<C>, &mut dyn FnMut(T)) -> Result<(), Error> + Send + 'static,
    ) -> Result<(Self, T), Error> {
        let (commands, receiver) = mpsc::channel(capacity);
        let stop = Arc::new(AtomicBool::new(false));
        let inbox = Inbox { commands: receiver, stop: Arc::clone(&stop) };
        let (ready, started) = std::sync::mpsc::sync_channel(1);
        let thread = thread::Builder::new()
            .name(name.to_owned())
            .stack_size(STACK_BYTES)
            .spawn(move || {
                let mut tell = |value: T| {
                    // The receiver waits for exactly this, so it still exists.
                    ready.send(Ok(value)).ok();
                };
                if let Err(error) = engine(inbox, &mut tell) {
                    tracing::error!(%error, "a model engine ended");
                    ready.try_send(Err(error)).ok();
                }
            })
            .map_err(|error| Error::Load(format!("the engine's thread could not start: {error}")))?;
        let worker = Self { commands: Some(commands), stop, thread: Some(thread) };
        let value = started.recv().map_err(|_| Error::Load("the engine ended while it started".into()))??;
        Ok((worker, value))
    }

    /// Returns the channel to the engine.
    pub(crate) fn commands(&self) -> Result<&mpsc::Sender<C>, Error> {
        self.commands.as_ref().ok_or(Error::Stopped)
    }
}

impl<C> Drop for Worker<C> {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        self.commands = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("a model engine panicked");
        }
    }
}

/// A place in the queue, which is freed on drop.
#[derive(Debug)]
pub(crate) struct Ticket {
    waiting: Arc<AtomicUsize>,
    places: usize,
}

impl Ticket {
    /// Takes `places` if no more than `limit` are then taken.
    pub(crate) fn take(waiting: &Arc<AtomicUsize>, places: usize, limit: usize) -> Result<Self, Error> {
        waiting
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |now| {
                now.checked_add(places).filter(|then| *then <= limit)
            })
            .map_err(|waiting| Error::Busy { waiting })?;
        Ok(Self { waiting: Arc::clone(waiting), places })
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.waiting.fetch_sub(self.places, Ordering::AcqRel);
    }
}
