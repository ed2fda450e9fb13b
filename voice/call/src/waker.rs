//! Loads engines when somebody speaks who may be heard.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::bridge;
use crate::contract::{Engines, Told};

/// How often the engines count as used while somebody speaks.
const AGAIN: Duration = Duration::from_secs(1);

/// How long after a failure they are not loaded ahead. What somebody says meanwhile tries it all the same.
const AFTER_FAILURE: Duration = Duration::from_secs(60);

/// Loads the engines of a conversation, and lets its persona make the small sound for when an answer takes long.
pub(crate) struct Waker {
    is_bridge_asked: Arc<AtomicBool>,
    has_failed: Arc<AtomicBool>,
    woken: Option<Duration>,
    loading: Option<JoinHandle<()>>,
}

impl Waker {
    /// Begins with a persona. Engines that are in memory make its small sound at once, and others when somebody speaks.
    pub(crate) fn begin(engines: &Engines, tell: &mpsc::UnboundedSender<Told>) -> Self {
        let is_in_memory = engines.on_demand.is_none();
        if is_in_memory {
            bridge::prepare(engines, tell);
        }
        Self {
            is_bridge_asked: Arc::new(AtomicBool::new(is_in_memory)),
            has_failed: Arc::default(),
            woken: None,
            loading: None,
        }
    }

    /// Loads the engines that are not loaded, in the background, because somebody speaks for longer than a cough.
    pub(crate) fn wake(&mut self, at: Duration, engines: &Engines, tell: &mpsc::UnboundedSender<Told>) {
        let pause = if self.has_failed.load(Ordering::Relaxed) { AFTER_FAILURE } else { AGAIN };
        let is_due = self.woken.is_none_or(|woken| at.saturating_sub(woken) >= pause);
        let is_loading = self.loading.as_ref().is_some_and(|loading| !loading.is_finished());
        if engines.on_demand.is_none() || is_loading || !is_due {
            return;
        }
        self.woken = Some(at);
        let (is_bridge_asked, has_failed) = (self.is_bridge_asked.clone(), self.has_failed.clone());
        let (engines, tell) = (engines.clone(), tell.clone());
        self.loading = Some(tokio::task::spawn_blocking(move || {
            let loaded = engines.load();
            has_failed.store(loaded.is_err(), Ordering::Relaxed);
            if loaded.is_ok() && !is_bridge_asked.swap(true, Ordering::Relaxed) {
                bridge::make(&engines, &tell);
            }
        }));
    }
}
