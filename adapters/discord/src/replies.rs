//! Replies on Discord: posts them once, updates, finds and retracts them.
//!
//! All replies to one message share one place: an alternative reply takes over the messages of the one before. The
//! places of recent replies are cached. Others are found in the channel, because each message carries its part's id.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use azera_adapter::{AnswerFile, PlatformError};
use serenity::all::{ApplicationId, ChannelId, CreateAllowedMentions, Http, Message, MessageId, UserId};

use crate::buttons::{PartId, Shown};
use crate::error::{Failure, failure, in_words, is_webhook_gone, refusal};
use crate::id::{ReplyKey, Target};
use crate::reply_cache::{CachedReply, ReplyCache};
use crate::request_pacer::RequestPacer;
use crate::split::split;
use crate::webhooks::{Speaker, Webhooks};

/// Shown for a reply that is only whitespace.
const NOTHING: &str = "…";

/// Shows replies on Discord.
pub(crate) struct Replies {
    pub(crate) http: Arc<Http>,
    pub(crate) pace: RequestPacer,
    me: UserId,
    application: ApplicationId,
    pub(crate) webhooks: Webhooks,
    places: Mutex<ReplyCache>,
    /// The edited messages that are being answered again.
    edits: Mutex<HashSet<MessageId>>,
}

/// A reply to show, and who says it.
#[derive(Clone, Copy)]
pub(crate) struct ReplyPart<'a> {
    pub(crate) target: Target,
    pub(crate) speaker: &'a Speaker,
    /// The files of the whole reply. They come with its last message.
    pub(crate) files: &'a [AnswerFile],
    /// True if a picture among the files can be drawn larger.
    pub(crate) can_upscale: bool,
}

impl ReplyPart<'_> {
    /// Returns what stands below a part, out of `of` parts.
    pub(crate) fn below(&self, part: usize, of: Option<usize>) -> Below<'_> {
        // While a picture is drawn, its message has one part, and the file is a preview.
        let is_last = of.is_none_or(|parts| part + 1 == parts);
        Below { of, files: if is_last { self.files } else { &[] }, can_upscale: self.can_upscale }
    }
}

/// What comes with the text of a message: its buttons, and its files.
#[derive(Clone, Copy)]
pub(crate) struct Below<'a> {
    /// The number of parts; `None` while the reply is being generated.
    pub(crate) of: Option<usize>,
    pub(crate) files: &'a [AnswerFile],
    can_upscale: bool,
}

impl Below<'_> {
    /// Returns what the message shows besides its text.
    pub(crate) fn picture(&self) -> Shown {
        match (self.files.is_empty(), self.can_upscale) {
            (true, _) => Shown::Text,
            (false, can_upscale) => Shown::Picture { can_upscale },
        }
    }
}

impl Replies {
    pub(crate) fn new(http: Arc<Http>, me: UserId, application: ApplicationId, webhooks: Webhooks) -> Self {
        let (places, edits) = (Mutex::default(), Mutex::default());
        Self { http, pace: RequestPacer::default(), me, application, webhooks, places, edits }
    }

    /// Records that a message is new, if it is somebody else's.
    pub(crate) fn fresh(&self, message: &Message) {
        if !self.is_own(message) {
            self.places().fresh(message.id);
        }
    }

    /// Returns true if a message is the bot's own, under its own name or a persona's.
    pub(crate) fn is_own(&self, message: &Message) -> bool {
        message.author.id == self.me || message.application_id == Some(self.application)
    }

    /// Shows a complete reply in its channel.
    pub(crate) async fn show(&self, saying: ReplyPart<'_>, text: &str) -> Result<(), PlatformError> {
        let (wanted, spot) = (messages(text), saying.target.reply.spot);
        let mut answer = self.place_of(saying.target).await?;
        let done = self.make(saying, &wanted, &mut answer).await;
        match &done {
            Ok(()) => self.places().remember(spot, answer),
            // The result of the last request is unknown, so the next attempt searches.
            Err(_) => self.places().doubt(spot),
        }
        done
    }

    /// Shows the beginning of a reply that is being generated, up to one message. Returns true if people can see it.
    pub(crate) async fn show_beginning(&self, saying: ReplyPart<'_>, text: &str) -> bool {
        let Some(beginning) = messages(text).into_iter().next() else { return false };
        let Ok(mut answer) = self.place_of(saying.target).await else { return false };
        let reply = saying.target.reply;
        if answer.number.is_some_and(|number| number != reply.number) {
            // Another complete reply is shown there; it is not replaced by a partial one.
            return false;
        }
        answer.number = Some(reply.number);
        let made = self.make_part(saying, 0, None, &beginning, &mut answer).await;
        match made {
            Ok(()) => self.places().remember(reply.spot, answer),
            Err(error) => {
                self.places().doubt(reply.spot);
                tracing::debug!(%error, "cannot show a reply that is being generated");
                return false;
            }
        }
        true
    }

    async fn make(
        &self,
        saying: ReplyPart<'_>,
        wanted: &[String],
        answer: &mut CachedReply,
    ) -> Result<(), PlatformError> {
        answer.number = Some(saying.target.reply.number);
        self.remove_other_names(saying, answer).await?;
        for (part, content) in wanted.iter().enumerate() {
            self.pace.turn().await;
            self.make_part(saying, part, Some(wanted.len()), content, answer).await?;
        }
        while answer.parts.len() > wanted.len() {
            let Some(surplus) = answer.parts.last() else { break };
            self.remove(saying.target.channel, surplus).await?;
            answer.parts.pop();
        }
        Ok(())
    }

    /// Removes messages that are shown under another name, because the author of a message cannot be changed.
    async fn remove_other_names(&self, saying: ReplyPart<'_>, answer: &mut CachedReply) -> Result<(), PlatformError> {
        let channel = saying.target.channel;
        if answer.parts.is_empty() {
            return Ok(());
        }
        let face = self.webhooks.face(channel, saying.speaker).await?;
        let name = face.as_ref().map(|face| &face.name);
        let others = answer.parts.iter().position(|part| part.face.as_ref().map(|face| &face.name) != name);
        match others {
            Some(first) => self.clear(channel, answer, first).await,
            None => Ok(()),
        }
    }

    /// Removes the messages from a part on. Messages that the bot may not remove stay.
    async fn clear(&self, channel: ChannelId, answer: &mut CachedReply, first: usize) -> Result<(), PlatformError> {
        for part in answer.parts.split_off(first).iter().rev() {
            match self.remove(channel, part).await {
                Err(error) if !error.is_transient() => {
                    tracing::warn!(message = %part.id, %error, "cannot remove an old message");
                }
                done => done?,
            }
        }
        Ok(())
    }

    async fn make_part(
        &self,
        saying: ReplyPart<'_>,
        part: usize,
        of: Option<usize>,
        content: &str,
        answer: &mut CachedReply,
    ) -> Result<(), PlatformError> {
        let Target { channel, reply, .. } = saying.target;
        let mark = PartId { reply, part };
        if let Some(there) = answer.parts.get_mut(part) {
            if there.content == content && there.of == of {
                return Ok(());
            }
            let below = saying.below(part, of);
            match self.edit(channel, there, mark, below, content).await {
                Ok(()) => {
                    let has_preview = of.is_none() && !below.files.is_empty();
                    (there.content, there.of, there.has_passing_file) = (content.to_owned(), of, has_preview);
                    return Ok(());
                }
                // Nobody can change it without its webhook. Its text is right, so it stays.
                Err(error) if is_webhook_gone(&error) && there.content == content => {
                    there.of = of;
                    return Ok(());
                }
                // Somebody deleted it or its webhook. So it and all later parts are posted again.
                Err(error) if failure(&error) == Failure::Gone => self.clear(channel, answer, part).await?,
                Err(error) => return Err(refusal(&error)),
            }
        }
        let made = self.post_once(saying, mark, of, content).await?;
        answer.parts.push(made);
        Ok(())
    }

    /// Retracts a reply, if it is the one shown.
    pub(crate) async fn retract(&self, target: Target) -> Result<(), PlatformError> {
        let answer = self.place_of(target).await?;
        if answer.number.is_some_and(|number| number != target.reply.number) {
            return Ok(());
        }
        for part in answer.parts.iter().rev() {
            if let Err(error) = self.remove(target.channel, part).await {
                // The message is still there although it was removed from the cache, so the next attempt searches.
                self.places().doubt(target.reply.spot);
                return Err(error);
            }
        }
        self.places().remember(target.reply.spot, CachedReply::default());
        Ok(())
    }

    /// Returns where a reply is shown, from the cache or the channel.
    pub(crate) async fn place_of(&self, target: Target) -> Result<CachedReply, PlatformError> {
        let known = self.places().known(target.reply.spot);
        match known {
            Some(answer) => Ok(answer),
            None => self.find(target).await,
        }
    }

    /// Returns the reply of one of the bot's messages.
    pub(crate) fn reply_of(&self, message: &Message) -> Option<ReplyKey> {
        PartId::of(message).map(|mark| mark.reply).or_else(|| self.places().reply_of(message.id))
    }

    /// Returns whether a message is the bot's own, if the cache tells.
    pub(crate) fn is_own_message(&self, message: MessageId) -> Option<bool> {
        self.places().is_own(message)
    }

    /// Removes a deleted message from the cache; returns its reply, if it is recent.
    pub(crate) fn forget_message(&self, message: MessageId) -> Option<ReplyKey> {
        let mut places = self.places();
        let reply = places.forget_message(message);
        if reply.is_some() {
            places.note_deleted(message);
        }
        reply
    }

    pub(crate) fn places(&self) -> MutexGuard<'_, ReplyCache> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the edited messages that are being answered again.
    pub(crate) fn edits(&self) -> MutexGuard<'_, HashSet<MessageId>> {
        self.edits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows the typing indicator; a failure does not matter.
    pub(crate) async fn typing(&self, channel: ChannelId) {
        if self.pace.spare()
            && let Err(error) = self.http.broadcast_typing(channel).await
        {
            tracing::debug!(error = in_words(&error), "cannot show the typing indicator");
        }
    }
}

/// Splits a reply into messages, trimmed as Discord stores them.
fn messages(text: &str) -> Vec<String> {
    let parts = split(text).into_iter().map(|part| part.trim().to_owned());
    let parts: Vec<String> = parts.filter(|part| !part.is_empty()).collect();
    if parts.is_empty() { vec![NOTHING.to_owned()] } else { parts }
}

/// Replies never mention anyone.
pub(crate) fn nobody() -> CreateAllowedMentions {
    CreateAllowedMentions::new().replied_user(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_of_whitespace_is_shown_as_an_ellipsis() {
        assert_eq!(messages(" \n "), [NOTHING]);
        assert_eq!(messages(" hello\n"), ["hello"]);
    }
}
