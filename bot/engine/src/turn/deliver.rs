//! Stage *deliver*: shows the committed reply, if everybody who would read it still may. Otherwise it is withdrawn.

use azera_adapter::StreamEvent;

use super::commit::Committed;
use super::compose::Composition;
use super::context::{TurnContext, TurnRequest};
use super::generate::{Draft, deliverable};
use crate::error::Error;
use crate::outbox::DELIVERY_ATTEMPTS;
use crate::turn::Turns;

impl Turns {
    /// Delivers a committed reply; false if it had to be withdrawn. A reply that cannot be delivered now waits in the outbox.
    pub(super) async fn deliver_reply(
        &self,
        request: &TurnRequest,
        context: &TurnContext,
        composition: &Composition,
        draft: &Draft,
        committed: &Committed,
    ) -> Result<bool, Error> {
        let (platform, target) =
            (request.platform.as_ref(), self.stream_target(&draft.id, request, context, composition));
        let Committed { reply, outbox, state } = committed;
        match self.outbox.may_be_shown(platform, &deliverable(request, composition)).await {
            Ok(true) => {
                target.event(StreamEvent::Done { state: state.clone() }).await;
                if let Err(error) = self.outbox.deliver(platform, reply, outbox, DELIVERY_ATTEMPTS).await {
                    tracing::warn!(reply = %reply.id, %error, "a reply waits in the outbox");
                }
            }
            Ok(false) => {
                target.event(StreamEvent::Error { message: Error::NotAllowed.to_string() }).await;
                self.outbox.withdraw(reply, outbox).await?;
                return Ok(false);
            }
            Err(error) => tracing::warn!(reply = %reply.id, %error, "a reply waits in the outbox"),
        }
        Ok(true)
    }
}
