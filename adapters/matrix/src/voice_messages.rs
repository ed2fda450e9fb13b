//! Voice messages: their files.

use async_trait::async_trait;
use azera_adapter::{Outbound, PlatformError, VoiceMessages};
use azera_types::{ChatId, InboundPart, MessageId, VoiceNote};

use crate::events::{RoomEvent, heard};
use crate::ids::event_of;
use crate::media::part;
use crate::{Error, Matrix};

impl Matrix {
    /// Returns the file of a person's message.
    async fn file_of(&self, chat: &ChatId, message: &MessageId) -> Result<Option<InboundPart>, Error> {
        let Some(id) = event_of(message) else { return Ok(None) };
        let room = self.succession.room(chat).map(|(room, _)| room).ok_or_else(|| Error::NoRoom(chat.to_string()))?;
        let event = room.event(&id, None).await?;
        let said = match heard(&event, room.room_id()) {
            Some(RoomEvent::Said(said)) => said,
            Some(RoomEvent::Changed { now, .. }) => now,
            _ => return Ok(None),
        };
        Ok(said.file.map(|file| part(&self.client, &file)))
    }
}

#[async_trait]
impl VoiceMessages for Matrix {
    async fn parts(&self, chat: &ChatId, message: &MessageId) -> Result<Vec<InboundPart>, PlatformError> {
        match self.file_of(chat, message).await.map_err(PlatformError::from) {
            Ok(file) => Ok(file.into_iter().collect()),
            Err(error) if error.is_transient() => Err(error),
            // The message was redacted, or the bot left the room.
            Err(_) => Ok(Vec::new()),
        }
    }

    async fn speak(&self, outbound: &Outbound, note: &VoiceNote) -> Result<(), PlatformError> {
        Ok(self.replies.add_sound(outbound, note).await?)
    }
}
