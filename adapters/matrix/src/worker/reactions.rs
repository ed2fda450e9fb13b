//! Reactions below the bot's events: commands, and thumbs that tell what somebody thinks of a reply until they are redacted.
//! Redactions of messages come here, too.

use azera_adapter::{InboundEvent, Removed, thumb, thumb_command};
use matrix_sdk::ruma::{OwnedEventId, OwnedUserId};

use super::Worker;
use crate::Error;
use crate::events::{Said, thread_of};
use crate::ids::{message_id, person_id};
use crate::sync_state::Thumb;

impl Worker {
    /// Forgets a redacted message of a person, or a redacted reply.
    pub(super) async fn redacted(&self, target: &OwnedEventId) {
        let forget = async {
            if let Some(thumb) = self.matrix.sync_state.thumb(target).await? {
                self.take_back(target, &thumb).await?;
                return self.matrix.sync_state.forget_thumb(target).await;
            }
            let message = match self.matrix.sync_state.reply_in(target).await? {
                Some(reply) => reply,
                // A removed reaction is nothing to forget.
                None if self.is_reaction(target).await => return Ok(()),
                None => message_id(target)?,
            };
            self.host.submit(&self.matrix.id, InboundEvent::Deletion { message }).await?;
            Ok(())
        };
        self.log(forget.await);
    }

    async fn is_reaction(&self, event: &OwnedEventId) -> bool {
        let kind = match self.room.event(event, None).await {
            Ok(event) => event.raw().get_field::<String>("type").ok().flatten(),
            Err(_) => None,
        };
        kind.as_deref() == Some("m.reaction")
    }

    /// Runs the command of a reaction to a reply.
    pub(super) async fn reacted(
        &self,
        event: &OwnedEventId,
        target: &OwnedEventId,
        key: &str,
        by: OwnedUserId,
    ) -> Result<(), Error> {
        if let Some(is_up) = thumb(key) {
            if self.matrix.sync_state.reply_in(target).await?.is_none() {
                return Ok(());
            }
            let thumb = Thumb { target: target.clone(), by, is_up };
            // Before it counts, so that a redaction always finds it.
            self.matrix.sync_state.set_thumb(event, &thumb).await?;
            return self.rate(event, &thumb).await;
        }
        let Some((line, about)) = self.matrix.sync_state.meant_by(key, target).await? else { return Ok(()) };
        let button = self.room.event(target, None).await?;
        let thread = thread_of(&button);
        let pressed = Said::pressed(self.room.room_id(), event.clone(), by, thread);
        self.matrix.run_command(self.host.as_ref(), &pressed, line.to_owned(), Some(about)).await
    }

    /// Tells what somebody thinks of a reply by a thumb. Nobody is answered.
    async fn rate(&self, event: &OwnedEventId, thumb: &Thumb) -> Result<(), Error> {
        let Some(about) = self.matrix.sync_state.reply_in(&thumb.target).await? else { return Ok(()) };
        let below = self.room.event(&thumb.target, None).await?;
        let thread = thread_of(&below);
        let pressed = Said::pressed(self.room.room_id(), event.clone(), thumb.by.clone(), thread);
        let line = thumb_command(thumb.is_up, event.as_str());
        self.matrix.rate(self.host.as_ref(), &pressed, &line, about).await
    }

    /// Takes a thumb back, whoever redacted it. Its person may have left the room.
    async fn take_back(&self, event: &OwnedEventId, thumb: &Thumb) -> Result<(), Error> {
        let Some(reply) = self.matrix.sync_state.reply_in(&thumb.target).await? else { return Ok(()) };
        let reactions = Removed::One { name: event.to_string(), is_up: thumb.is_up };
        let event = InboundEvent::ReactionsRemoved { reply, person: Some(person_id(&thumb.by)?), reactions };
        self.host.submit(&self.matrix.id, event).await?;
        Ok(())
    }
}
