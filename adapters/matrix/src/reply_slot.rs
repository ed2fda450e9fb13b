//! A reply that is being generated or shown.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use azera_types::{ChatId, MessageId};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::content::Speaker;

/// A reply that is being generated or shown.
pub(crate) struct Slot {
    /// The message that it answers.
    pub(crate) to: MessageId,
    pub(crate) chat: ChatId,
    /// The text so far.
    pub(crate) text: Mutex<String>,
    pub(crate) changed: Notify,
    /// Cancelled when the reply is complete or failed; no more of its generation is shown.
    pub(crate) closed: CancellationToken,
    /// Locked while the reply's events change. A slot that follows a closed one shares it, and so waits for its end.
    pub(crate) showing: Arc<tokio::sync::Mutex<Showing>>,
}

/// Speaker and text of each event of a reply, as far as known.
pub(crate) type Showing = Vec<Option<(Option<Speaker>, String)>>;

/// Locks a mutex, whoever panicked with it before.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
