//! Replies to somebody in danger. Nothing of them is said aloud where others listen: the person gets a direct message, and
//! the voice says one fixed sentence that points to it.

use azera_adapter::{Outbound, PlatformError};
use azera_types::MessageId;
use serenity::all::{ChannelId, CreateMessage, Nonce, UserId};
use sha2::{Digest, Sha256};

use super::VoiceCalls;
use crate::error::{Failure, failure, in_words, refusal};
use crate::id;
use crate::replies::nobody;
use crate::split::split;

/// Said when the person has a direct message.
const IN_MESSAGE: &str = "I wrote you a direct message. Please read it now.";

/// Said when the help lines stand in the text chat of the voice channel, because direct messages are closed.
const IN_CHAT: &str = "I put something important into the text chat of this channel. Please read it now.";

/// Said when nothing could be written.
const NOT_WRITTEN: &str = "I cannot write to you. If you need help now, please call an emergency number.";

impl VoiceCalls {
    /// Writes help to the person who asked, and says where it stands. If their direct messages are closed, the help
    /// lines alone go into the text chat of the channel: they say nothing about the person.
    ///
    /// # Errors
    /// Discord cannot be reached.
    pub(super) async fn deliver_help(&self, outbound: &Outbound) -> Result<(), PlatformError> {
        let Some(channel) = id::voice_channel_of(&outbound.chat) else { return Ok(()) };
        let sentence = if self.write_to_asker(outbound).await? {
            IN_MESSAGE
        } else if self.write(channel, &outbound.id, &outbound.help).await? {
            IN_CHAT
        } else {
            NOT_WRITTEN
        };
        // The record of the room holds what the room heard, and not what the person alone reads.
        match self.call_in(channel) {
            Some(call) => {
                call.say(sentence);
                self.heard(&outbound.id, sentence, true).await;
            }
            None => self.heard(&outbound.id, "", false).await,
        }
        Ok(())
    }

    async fn write_to_asker(&self, outbound: &Outbound) -> Result<bool, PlatformError> {
        let Some(user) = outbound.reply_to.as_ref().and_then(|question| self.asker(question)) else { return Ok(false) };
        let Some(line) = self.line.get() else { return Ok(false) };
        match line.directory.direct_with(user).await {
            Some(direct) => self.write(direct, &outbound.id, outbound.text.as_str()).await,
            None => Ok(false),
        }
    }

    /// Returns who asked a question.
    pub(super) fn asker(&self, question: &MessageId) -> Option<UserId> {
        let asked = self.asked.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        asked.iter().find(|(id, _)| id == question).map(|(_, user)| *user)
    }

    /// Writes a text into a channel, each part once. Returns false if Discord does not let the bot write there.
    async fn write(&self, channel: ChannelId, reply: &MessageId, text: &str) -> Result<bool, PlatformError> {
        let Some(line) = self.line.get() else { return Ok(false) };
        for (number, part) in split(text).into_iter().enumerate() {
            let message = CreateMessage::new()
                .content(part)
                .allowed_mentions(nobody())
                .nonce(Nonce::String(nonce(reply, number)))
                .enforce_nonce(true);
            match line.http.send_message(channel, Vec::new(), &message).await {
                Ok(_) => {}
                Err(error) if failure(&error) == Failure::Unknown => return Err(refusal(&error)),
                Err(error) => {
                    tracing::warn!(error = in_words(&error), "cannot write help to a person");
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }
}

/// Returns the mark by which Discord posts a part of a reply only once.
fn nonce(reply: &MessageId, part: usize) -> String {
    /// Bytes of a nonce of 24 letters; Discord allows 25.
    const BYTES: usize = 12;
    let digest = Sha256::digest(format!("help {reply} {part}"));
    data_encoding::HEXLOWER.encode(digest.get(..BYTES).unwrap_or(&digest))
}
