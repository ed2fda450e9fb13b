use async_trait::async_trait;
use azera_types::{ChatId, InboundPart, MessageId, PersonId, Timestamp, VoiceNote};

use crate::{Outbound, PlatformError};

/// A voice message, or an attached recording.
pub struct SentSound {
    /// The sound.
    pub sound: InboundPart,
    /// When it was sent.
    pub at: Timestamp,
}

/// The voice messages of a platform.
#[async_trait]
pub trait VoiceMessages: Send + Sync {
    /// Returns the parts of a person's message, in the order in which they came with it. The engine asks when it no
    /// longer has their sources, as after a restart. Returns none if the message is gone.
    async fn parts(&self, chat: &ChatId, message: &MessageId) -> Result<Vec<InboundPart>, PlatformError>;

    /// Returns the newest sound that a person sent in a chat, among its latest messages. Returns none if there is none, or
    /// where the platform cannot look for it.
    ///
    /// # Errors
    /// The platform cannot be reached.
    async fn newest_sound(&self, _chat: &ChatId, _person: &PersonId) -> Result<Option<SentSound>, PlatformError> {
        Ok(None)
    }

    /// Returns whether replies in a chat can have a sound. Replies in a voice channel are spoken there already.
    fn speaks_in(&self, _chat: &ChatId) -> bool {
        true
    }

    /// Adds the sound of a reply to the reply as it is shown. Does nothing if another reply or none is shown there by
    /// now, or if the reply has its sound already. Whatever takes the reply away takes the sound away, too.
    async fn speak(&self, outbound: &Outbound, note: &VoiceNote) -> Result<(), PlatformError>;
}
