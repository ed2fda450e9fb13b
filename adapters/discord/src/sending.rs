//! Sends one part of a reply as one message: as the bot, or through a webhook with the name and picture of a persona.
//!
//! Discord posts a message with an enforced nonce only once, and may do so even if that message was deleted. Then the
//! part is posted with another nonce. Webhooks support no nonce. So a webhook's message carries its part id from the
//! beginning, and if it is unknown whether it was posted, the channel is searched first.

use azera_adapter::{AnswerFile, PlatformError};
use data_encoding::HEXLOWER;
use serenity::all::{
    Builder, ChannelId, CreateActionRow, CreateAttachment, CreateButton, CreateMessage, EditAttachments, EditMessage,
    EditWebhookMessage, ExecuteWebhook, Message, MessageId, MessageReference, Nonce,
};
use sha2::{Digest, Sha256};

use crate::buttons::PartId;
use crate::commands::{MAX_FILES, attachment};
use crate::error::{Failure, failure, refusal};
use crate::id::Spot;
use crate::replies::{Below, Replies, ReplyPart, nobody};
use crate::reply_cache::Part;
use crate::webhooks::WebhookIdentity;

/// Length of a nonce; Discord allows 25.
const NONCE_LETTERS: usize = 24;

/// Attempts to recreate a webhook that somebody deleted.
const ATTEMPTS: usize = 2;

/// The most nonces of one part. Each but the last is of a message that was deleted, within the few minutes for which
/// Discord knows a nonce.
const MAX_NONCES: usize = 16;

impl Replies {
    /// Posts a part of a reply that is not shown yet, and returns its message. That may be the message of an earlier
    /// attempt whose result was unknown; then it is changed to what it is to show now.
    pub(crate) async fn post_once(
        &self,
        saying: ReplyPart<'_>,
        mark: PartId,
        of: Option<usize>,
        content: &str,
    ) -> Result<Part, PlatformError> {
        let (channel, below) = (saying.target.channel, saying.below(mark.part, of));
        let has_only_passing_files = below.files.is_empty() || of.is_none();
        let mut deleted = None;
        for _ in 0..MAX_NONCES {
            let (posted, face) = self.post(saying, mark, deleted, below, content).await?;
            if self.places().was_deleted(posted.id) {
                deleted = Some(posted.id);
                continue;
            }
            // The beginning of a reply has no buttons, which tell it from the whole of the same text.
            let is_earlier =
                posted.content != content || (of.is_some() && face.is_none() && PartId::of(&posted) != Some(mark));
            let has_passing_file = has_only_passing_files && !posted.attachments.is_empty();
            let mut made = Part { id: posted.id, content: posted.content, of, face, has_passing_file };
            if !is_earlier {
                return Ok(made);
            }
            match self.edit(channel, &made, mark, below, content).await {
                Ok(()) => {
                    content.clone_into(&mut made.content);
                    return Ok(made);
                }
                // It was deleted before this process began.
                Err(error) if made.face.is_none() && failure(&error) == Failure::Gone => {
                    self.places().note_deleted(made.id);
                    deleted = Some(made.id);
                }
                Err(error) => return Err(refusal(&error)),
            }
        }
        Err(PlatformError::Transient("Discord returned deleted messages and posted none".to_owned()))
    }

    /// Posts a part of a reply, under the persona's name if possible. `deleted` is the message that Discord returned
    /// before. Returns the message and the webhook identity.
    async fn post(
        &self,
        saying: ReplyPart<'_>,
        mark: PartId,
        deleted: Option<MessageId>,
        below: Below<'_>,
        content: &str,
    ) -> Result<(Message, Option<WebhookIdentity>), PlatformError> {
        let channel = saying.target.channel;
        for _ in 0..ATTEMPTS {
            let Some(face) = self.webhooks.face(channel, saying.speaker).await? else { break };
            let message = ExecuteWebhook::new()
                .content(content)
                .allowed_mentions(nobody())
                .components(self.webhook_buttons(channel, mark, below))
                .add_files(attachments(below.files));
            match self.webhooks.say(channel, &face, message).await {
                Ok(said) => return Ok((said, Some(face))),
                Err(error) => match failure(&error) {
                    Failure::Gone => {}
                    Failure::Refused => {
                        self.webhooks.refused(channel, saying.speaker, error).await;
                        break;
                    }
                    Failure::Token | Failure::Unknown => return Err(refusal(&error)),
                },
            }
        }
        let mut message = CreateMessage::new()
            .content(content)
            .allowed_mentions(nobody())
            .components(buttons(mark, below))
            .nonce(Nonce::String(nonce(mark, deleted)))
            .enforce_nonce(true)
            .add_files(attachments(below.files));
        // Discord refuses a reply to a message that the bot may not read.
        if let (0, Spot::Answers(question)) = (mark.part, mark.reply.spot)
            && self.webhooks.reads_history(channel)
        {
            let reference = MessageReference::from((channel, question)).fail_if_not_exists(false);
            message = message.reference_message(reference);
        }
        // Numbers the files, too. Permissions are Discord's word, so the cache is left out.
        let posted = message.execute(&*self.http, (channel, None)).await;
        Ok((posted.map_err(|error| refusal(&error))?, None))
    }

    /// Changes the text of a message. The sound or the preview of the text before goes.
    pub(crate) async fn edit(
        &self,
        channel: ChannelId,
        part: &Part,
        mark: PartId,
        below: Below<'_>,
        content: &str,
    ) -> serenity::Result<()> {
        let Some(face) = &part.face else {
            let mut edit =
                EditMessage::new().content(content).allowed_mentions(nobody()).components(buttons(mark, below));
            if !below.files.is_empty() {
                edit = edit.attachments(edited(below.files));
            } else if part.has_passing_file {
                edit = edit.remove_all_attachments();
            }
            return edit.execute(&*self.http, (channel, part.id, None)).await.map(drop);
        };
        let mut edit = EditWebhookMessage::new()
            .content(content)
            .allowed_mentions(nobody())
            .components(self.webhook_buttons(channel, mark, below));
        if !below.files.is_empty() {
            edit = edit.attachments(edited(below.files));
        } else if part.has_passing_file {
            edit = edit.attachments(EditAttachments::new());
        }
        self.webhooks.change(channel, face.hook, part.id, edit).await
    }

    /// Removes a message. The cache entry goes first, so that this deletion does not count as a person's wish to forget
    /// it.
    pub(crate) async fn remove(&self, channel: ChannelId, part: &Part) -> Result<(), PlatformError> {
        self.places().forget_message(part.id);
        self.pace.turn().await;
        let removed = match &part.face {
            Some(face) => self.webhooks.take_back(channel, face.hook, part.id).await,
            None => self.http.delete_message(channel, part.id, None).await,
        };
        match removed {
            Err(error) if failure(&error) != Failure::Gone => Err(refusal(&error)),
            _ => {
                self.places().note_deleted(part.id);
                Ok(())
            }
        }
    }

    /// Returns the buttons below a webhook's message: its part id, and a link to the answered message.
    fn webhook_buttons(&self, channel: ChannelId, mark: PartId, below: Below<'_>) -> Vec<CreateActionRow> {
        let mut rows = below.of.map_or_else(|| mark.making(), |parts| mark.buttons(parts, below.picture()));
        if let (0, Spot::Answers(question)) = (mark.part, mark.reply.spot)
            && let Some(link) = self.webhooks.link(channel, question)
        {
            rows.push(CreateActionRow::Buttons(vec![CreateButton::new_link(link).label("\u{21a9}")]));
        }
        rows
    }
}

/// Returns the buttons of a message; none while a reply is being generated, and one while a picture is drawn.
fn buttons(mark: PartId, below: Below<'_>) -> Vec<CreateActionRow> {
    match (below.of, mark.reply.spot) {
        (Some(parts), _) => mark.buttons(parts, below.picture()),
        (None, Spot::Post(_)) => mark.making(),
        (None, Spot::Answers(_)) => Vec::new(),
    }
}

/// Returns files as Discord takes them, each with its description.
fn attachments(files: &[AnswerFile]) -> Vec<CreateAttachment> {
    files.iter().take(MAX_FILES).map(attachment).collect()
}

/// Returns the files of an edited message. They take the place of earlier ones, so that a second attempt adds none.
fn edited(files: &[AnswerFile]) -> EditAttachments {
    attachments(files).into_iter().fold(EditAttachments::new(), EditAttachments::add)
}

/// Returns the same nonce for the same part of a reply, so that Discord posts it once. Where Discord returned a deleted
/// message for the nonce before, the next one follows from that message: an attempt after a crash comes to the same.
fn nonce(mark: PartId, deleted: Option<MessageId>) -> String {
    let deleted = deleted.map_or_else(String::new, |message| format!(".{message}"));
    let source = format!("{}.{}.{}{deleted}", mark.reply.spot, mark.reply.number, mark.part);
    HEXLOWER.encode(&Sha256::digest(source)).chars().take(NONCE_LETTERS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::ReplyKey;

    #[test]
    fn a_part_always_has_the_same_nonce() {
        let mark = |number, part| PartId { reply: ReplyKey { spot: Spot::Answers(MessageId::new(42)), number }, part };
        let first = nonce(mark(0, 0), None);
        assert_eq!((nonce(mark(0, 0), None), first.len()), (first.clone(), NONCE_LETTERS));
        assert_ne!(nonce(mark(1, 0), None), first);
        assert_ne!(nonce(mark(0, 1), None), first);
        let [after_seven, after_eight] = [7, 8].map(|message| nonce(mark(0, 0), Some(MessageId::new(message))));
        assert_eq!(nonce(mark(0, 0), Some(MessageId::new(7))), after_seven);
        assert!(after_seven != first && after_seven != after_eight && after_seven.len() == NONCE_LETTERS);
    }
}
