//! Replies to somebody in danger. Nothing of them is said aloud where others listen: the person gets a direct message, and
//! the voice says one fixed sentence that points to it.

use azera_adapter::{Outbound, PlatformError};
use azera_types::{ChatId, MessageId, PersonId};
use serenity::all::{ChannelId, CreateMessage, Nonce};
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
        let call = self.call_in(channel);
        if let Some(call) = &call {
            // The sentence is no reply, and nothing else answers the question aloud.
            call.unanswered(outbound.asker.clone());
        }
        match call {
            Some(call) if !self.is_silenced(channel) => {
                call.say(sentence);
                self.heard(&outbound.id, sentence, true).await;
            }
            _ => self.heard(&outbound.id, "", false).await,
        }
        Ok(())
    }

    async fn write_to_asker(&self, outbound: &Outbound) -> Result<bool, PlatformError> {
        match &outbound.asker {
            Some(asker) => self.write_to(asker, &outbound.id, outbound.text.as_str()).await,
            None => Ok(false),
        }
    }

    /// Writes help lines to a person who gets no reply, because they left a voice channel or because somebody came. They may
    /// be in the channel again, or still. If their direct messages are closed, the lines go into the text chat of the
    /// channel.
    ///
    /// # Errors
    /// Discord cannot be reached.
    pub(crate) async fn send_help(
        &self,
        question: &MessageId,
        chat: &ChatId,
        person: &PersonId,
        lines: &str,
    ) -> Result<(), PlatformError> {
        let Some(channel) = id::voice_channel_of(chat) else { return Ok(()) };
        if self.write_to(person, question, lines).await? {
            return Ok(());
        }
        self.write(channel, question, lines).await.map(drop)
    }

    async fn write_to(&self, person: &PersonId, message: &MessageId, text: &str) -> Result<bool, PlatformError> {
        let (Some(user), Some(line)) = (id::user_of(person), self.line.get()) else { return Ok(false) };
        match line.directory.direct_with(user).await {
            Some(direct) => self.write(direct, message, text).await,
            None => Ok(false),
        }
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
