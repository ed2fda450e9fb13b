//! Replies that break off. What was streamed of them must end, or a call stays silent and a chat keeps half a message.
//!
//! A turn that failed for a passing reason is tried again, about once a minute as long as the disk is full or the model
//! is away. Each try may break off like the first: people would see the same beginning come and go, with a notification
//! each time. So only the first try is streamed and its failure told. A later try shows its reply once it is stored.

use std::collections::HashSet;
use std::sync::{MutexGuard, PoisonError};

use azera_adapter::StreamEvent;
use azera_types::MessageId;

use super::context::TurnRequest;
use super::generation::StreamTarget;
use crate::turn::{MAX_TOLD, TurnProgress, Turns};

impl TurnProgress {
    /// Returns true if people were told that the reply to a message failed, and its turn has not ended since.
    pub(super) fn was_told_failed(&self, message: &MessageId) -> bool {
        self.told_failed().contains(message)
    }

    fn tell_failed(&self, message: &MessageId) {
        let mut told = self.told_failed();
        if told.len() >= MAX_TOLD {
            told.clear();
        }
        told.insert(message.clone());
    }

    /// Notes that the turn of a message is over: it is not tried again.
    pub(super) fn forget_failed(&self, message: &MessageId) {
        self.told_failed().remove(message);
    }

    fn told_failed(&self) -> MutexGuard<'_, HashSet<MessageId>> {
        self.told_failed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Turns {
    /// Ends the stream of a reply that failed, and tells people why, once for each message. If the message needs no reply
    /// any more, nobody is told anything, and the result is true.
    pub(super) async fn break_off(&self, request: &TurnRequest, target: &StreamTarget<'_>, why: String) -> bool {
        let is_unwanted = self.is_unwanted(request).await;
        let event = if is_unwanted { StreamEvent::Withdrawn } else { StreamEvent::Error { message: why } };
        target.event(event).await;
        // Nobody tries a regeneration again.
        if !is_unwanted && !request.again {
            self.progress.tell_failed(&request.message.id);
        }
        is_unwanted
    }

    /// Returns true if a message needs no reply any more: it was forgotten, or answered.
    async fn is_unwanted(&self, request: &TurnRequest) -> bool {
        let (id, again) = (request.message.id.clone(), request.again);
        let is_wanted = self.services.blocking(move |memory| {
            // A turn that regenerates a reply is not open.
            if again {
                Ok(memory.messages().stands(&id)? == Some(true))
            } else {
                Ok(memory.turns().open(&id)?.is_some())
            }
        });
        // If the record cannot be read, people are told of the failure.
        is_wanted.await.is_ok_and(|is_wanted| !is_wanted)
    }
}
