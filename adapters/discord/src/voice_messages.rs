//! Voice messages: their files, and the sound of replies.
//!
//! Discord's own voice messages can have no text. So the sound of a reply is a file of the message that shows the end of
//! its text: both go together, and one edit adds the sound however often it is tried.

use async_trait::async_trait;
use azera_adapter::{Outbound, PlatformError, SentSound, VoiceMessages};
use azera_types::{ChatId, InboundPart, MessageId, PartKind, PersonId, VoiceNote};
use serenity::all::{CreateAttachment, EditAttachments, EditMessage, EditWebhookMessage};

use crate::attachments::parts;
use crate::discord::{Discord, target};
use crate::error::{Failure, failure, refusal};
use crate::id::{Target, channel_of, message_of, user_of, voice_channel_of};
use crate::inbound::at;
use crate::replies::{Replies, nobody};

/// The newest messages of a channel among which somebody's sound is looked for.
const LOOKED_AT: u8 = 50;

#[async_trait]
impl VoiceMessages for Discord {
    async fn parts(&self, chat: &ChatId, message: &MessageId) -> Result<Vec<InboundPart>, PlatformError> {
        let connected = self.connected()?;
        let Some((channel, message)) = channel_of(chat).zip(message_of(message)) else { return Ok(Vec::new()) };
        match connected.http.get_message(channel, message).await {
            Ok(message) => Ok(parts(&connected.files, &message.attachments)),
            Err(error) if matches!(failure(&error), Failure::Gone | Failure::Refused) => Ok(Vec::new()),
            Err(error) => Err(refusal(&error)),
        }
    }

    async fn newest_sound(&self, chat: &ChatId, person: &PersonId) -> Result<Option<SentSound>, PlatformError> {
        let connected = self.connected()?;
        let Some((channel, user)) = channel_of(chat).zip(user_of(person)) else { return Ok(None) };
        let messages = match connected.http.get_messages(channel, None, Some(LOOKED_AT)).await {
            Ok(messages) => messages,
            Err(error) if matches!(failure(&error), Failure::Gone | Failure::Refused) => return Ok(None),
            Err(error) => return Err(refusal(&error)),
        };
        // They come newest first.
        let mut theirs = messages.iter().filter(|message| message.author.id == user);
        Ok(theirs.find_map(|message| {
            let parts = parts(&connected.files, &message.attachments);
            let sound = parts.into_iter().find(|part| part.part.kind == PartKind::Audio)?;
            Some(SentSound { sound, at: at(message.timestamp) })
        }))
    }

    fn speaks_in(&self, chat: &ChatId) -> bool {
        voice_channel_of(chat).is_none()
    }

    async fn speak(&self, outbound: &Outbound, note: &VoiceNote) -> Result<(), PlatformError> {
        let target = target(&outbound.chat, &outbound.id, None)?;
        self.connected()?.shown.add_sound(target, note).await
    }
}

impl Replies {
    /// Adds the sound of a reply to its last message, unless another reply is shown there or none.
    async fn add_sound(&self, target: Target, note: &VoiceNote) -> Result<(), PlatformError> {
        let answer = self.place_of(target).await?;
        let Some(last) = answer.parts.last().filter(|_| answer.number == Some(target.reply.number)) else {
            return Ok(());
        };
        // The list names every file that stays, so a second try replaces the file of the first.
        let file = CreateAttachment::bytes(note.bytes.clone(), VoiceNote::FILE_NAME);
        let files = EditAttachments::new().add(file);
        self.pace.turn().await;
        let edited = match &last.face {
            None => {
                let edit = EditMessage::new().attachments(files).allowed_mentions(nobody());
                target.channel.edit_message(&self.http, last.id, edit).await.map(drop)
            }
            Some(face) => {
                let edit = EditWebhookMessage::new().attachments(files).allowed_mentions(nobody());
                self.webhooks.change(target.channel, face.hook, last.id, edit).await
            }
        };
        match edited {
            Ok(()) => {
                self.places().note_sound(target.reply.spot, last.id);
                Ok(())
            }
            // Somebody deleted the message meanwhile.
            Err(error) if failure(&error) == Failure::Gone => Ok(()),
            Err(error) => Err(refusal(&error)),
        }
    }
}
