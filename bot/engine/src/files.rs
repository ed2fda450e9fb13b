//! Files of messages: they are fetched after the turn, and only those that are kept.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use azera_types::{InboundPart, MessageId, Timestamp};
use tokio::sync::{Notify, Semaphore};
use tokio_util::task::TaskTracker;

use crate::error::Error;
use crate::services::Services;

/// Files fetched at the same time.
const FETCHES: usize = 4;

/// Time limit for one file.
pub(crate) const FETCH_TIME: Duration = Duration::from_secs(60);

/// How long something waits for a file that is on its way.
const ARRIVAL_TIME: Duration = Duration::from_secs(15);

/// Fetches files in the background.
pub(crate) struct FileFetcher {
    services: Arc<Services>,
    slots: Semaphore,
    tasks: TaskTracker,
    /// Files of messages whose turn is not over. Only the turn tells whether a message is meant for the bot.
    held: Mutex<HashMap<MessageId, HeldFiles>>,
    /// Number of fetches under way for each message.
    fetching: Mutex<HashMap<MessageId, usize>>,
    /// Told when a fetch has ended.
    ended: Notify,
}

/// A fetch that is under way, until it is dropped.
struct Fetch<'a> {
    fetcher: &'a FileFetcher,
    message: &'a MessageId,
}

impl Drop for Fetch<'_> {
    fn drop(&mut self) {
        let mut fetching = self.fetcher.fetching.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = fetching.get_mut(self.message) {
            *count -= 1;
        }
        fetching.retain(|_, count| *count > 0);
        drop(fetching);
        self.fetcher.ended.notify_waiters();
    }
}

/// The files of a message, and the time of the edit that they came with.
struct HeldFiles {
    version: Option<Timestamp>,
    parts: Vec<InboundPart>,
}

impl FileFetcher {
    pub(crate) fn new(services: Arc<Services>) -> Self {
        Self {
            services,
            slots: Semaphore::new(FETCHES),
            tasks: TaskTracker::new(),
            held: Mutex::default(),
            fetching: Mutex::default(),
            ended: Notify::new(),
        }
    }

    /// Waits until all files asked for so far are kept or given up.
    pub(crate) async fn idle(&self) {
        self.tasks.close();
        self.tasks.wait().await;
        self.tasks.reopen();
    }

    /// Keeps the files of a message, if the message is kept. `version` is the time of the edit that they came with. A
    /// file that cannot be fetched is described in its message, and that is all.
    pub(crate) fn keep(self: &Arc<Self>, id: MessageId, version: Option<Timestamp>, parts: Vec<InboundPart>) {
        if parts.is_empty() {
            return;
        }
        let fetcher = Arc::clone(self);
        *self.fetching.lock().unwrap_or_else(PoisonError::into_inner).entry(id.clone()).or_default() += 1;
        self.tasks.spawn(async move {
            let _fetch = Fetch { fetcher: &fetcher, message: &id };
            if let Err(error) = fetcher.fetch(&id, version, parts).await {
                tracing::warn!(message = %id, %error, "cannot keep the files of a message");
            }
        });
    }

    /// Holds the files of a message until its turn is over. Files of a later edit take their place.
    pub(crate) fn hold(&self, id: &MessageId, version: Option<Timestamp>, parts: Vec<InboundPart>) {
        if !parts.is_empty() {
            self.held.lock().unwrap_or_else(PoisonError::into_inner).insert(id.clone(), HeldFiles { version, parts });
        }
    }

    /// Waits until no file of a message is on its way, at most 15 seconds.
    pub(crate) async fn arrived(&self, id: &MessageId) {
        let arrival = async {
            loop {
                let ended = self.ended.notified();
                if !self.is_awaited(id) {
                    return;
                }
                ended.await;
            }
        };
        tokio::time::timeout(ARRIVAL_TIME, arrival).await.ok();
    }

    fn is_awaited(&self, id: &MessageId) -> bool {
        // A fetch begins before its files are no longer held, so this order misses none.
        let is_held = self.held.lock().unwrap_or_else(PoisonError::into_inner).contains_key(id);
        is_held || self.fetching.lock().unwrap_or_else(PoisonError::into_inner).contains_key(id)
    }

    /// Returns a file that is held for a message in this version, and that has this index.
    pub(crate) fn held(&self, id: &MessageId, version: Option<Timestamp>, index: usize) -> Option<InboundPart> {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let files = held.get(id).filter(|held| held.version == version)?;
        files.parts.get(index).cloned()
    }

    /// Remembers the bytes of a held file, so that nobody fetches them again.
    pub(crate) fn supply(&self, id: &MessageId, version: Option<Timestamp>, index: usize, bytes: Vec<u8>) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let files = held.get_mut(id).filter(|held| held.version == version);
        if let Some(part) = files.and_then(|files| files.parts.get_mut(index)) {
            part.source = Arc::new(bytes);
        }
    }

    /// Drops what is held for messages that were forgotten. No turn of theirs may come that releases it.
    pub(crate) fn forget<'a>(&self, messages: impl Iterator<Item = &'a MessageId>) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        messages.for_each(|id| drop(held.remove(id)));
    }

    /// Keeps the files that were held for a message, now that its turn is over.
    pub(crate) fn release(self: &Arc<Self>, id: &MessageId) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(HeldFiles { version, parts }) = held.remove(id) {
            self.keep(id.clone(), version, parts);
        }
    }

    async fn fetch(&self, id: &MessageId, version: Option<Timestamp>, parts: Vec<InboundPart>) -> Result<(), Error> {
        let wanted = {
            let id = id.clone();
            self.services.blocking(move |memory| memory.files().wanted(&id, version)).await?
        };
        let limit = self.services.memory.files().largest();
        for index in wanted {
            let Some(part) = parts.get(index) else { continue };
            let Ok(_slot) = self.slots.acquire().await else { return Ok(()) };
            let fetched = tokio::select! {
                // Bytes that are there already are kept also while the engine stops.
                biased;
                fetched = tokio::time::timeout(FETCH_TIME, part.source.fetch(limit)) => fetched,
                () = self.services.stopping.cancelled() => return Ok(()),
            };
            match fetched {
                Ok(Ok(bytes)) => {
                    let id = id.clone();
                    self.services.blocking(move |memory| memory.files().keep(&id, version, index, bytes)).await?;
                }
                Ok(Err(error)) => tracing::info!(message = %id, %error, "a file is not kept"),
                Err(_) => tracing::info!(message = %id, "a file is not kept: fetching it took too long"),
            }
        }
        Ok(())
    }
}
