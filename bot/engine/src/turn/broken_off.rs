//! Replies that break off. What was streamed of them must end, or a call stays silent and a chat keeps half a message.

use azera_adapter::StreamEvent;

use super::context::TurnRequest;
use super::generation::StreamTarget;
use crate::turn::Turns;

impl Turns {
    /// Ends the stream of a reply that failed, and tells people why. If the message needs no reply any more, nobody is told
    /// anything, and the result is true.
    pub(super) async fn break_off(&self, request: &TurnRequest, target: &StreamTarget<'_>, why: String) -> bool {
        let is_unwanted = self.is_unwanted(request).await;
        let event = if is_unwanted { StreamEvent::Withdrawn } else { StreamEvent::Error { message: why } };
        target.event(event).await;
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
