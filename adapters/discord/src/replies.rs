//! Replies on Discord: posting them once, making them what they should be, finding them again, taking them back.
//!
//! The answers to one message have one place, whichever of them stands there: another answer takes the messages of the
//! one before over. Where that place is, is remembered for what was shown lately; for everything else it is looked up
//! in the channel, where each message bears its mark.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use azera_adapter::PlatformError;
use serenity::all::{ApplicationId, ChannelId, CreateAllowedMentions, Http, Message, MessageId, UserId};

use crate::buttons::PartId;
use crate::error::{Failure, failure, in_words, is_webhook_gone, refusal};
use crate::id::{ReplyKey, Target};
use crate::reply_cache::{Answer, Part, ReplyCache};
use crate::request_pacer::RequestPacer;
use crate::split::split;
use crate::webhooks::{Speaker, Webhooks};

/// What stands where an answer would that is nothing but blanks.
const NOTHING: &str = "…";

/// Replies as they stand on Discord.
pub(crate) struct Replies {
    pub(crate) http: Arc<Http>,
    pub(crate) pace: RequestPacer,
    me: UserId,
    application: ApplicationId,
    pub(crate) webhooks: Webhooks,
    places: Mutex<ReplyCache>,
}

/// What is to be shown where, and who says it.
#[derive(Clone, Copy)]
pub(crate) struct ReplyPart<'a> {
    pub(crate) target: Target,
    pub(crate) speaker: &'a Speaker,
}

impl Replies {
    pub(crate) fn new(http: Arc<Http>, me: UserId, application: ApplicationId, webhooks: Webhooks) -> Self {
        Self { http, pace: RequestPacer::default(), me, application, webhooks, places: Mutex::default() }
    }

    /// A message was said just now.
    pub(crate) fn fresh(&self, question: MessageId) {
        self.places().fresh(question);
    }

    /// Whether a message is the bot's own, under its own name or a persona's.
    pub(crate) fn is_own(&self, message: &Message) -> bool {
        message.author.id == self.me || message.application_id == Some(self.application)
    }

    /// Makes a reply stand in its channel, whole.
    pub(crate) async fn show(&self, saying: ReplyPart<'_>, text: &str) -> Result<(), PlatformError> {
        let (wanted, spot) = (messages(text), saying.target.reply.spot);
        let mut answer = self.place_of(saying.target).await?;
        let done = self.make(saying, &wanted, &mut answer).await;
        match &done {
            Ok(()) => self.places().remember(spot, answer),
            // What came of the last request is not known, so the next attempt looks.
            Err(_) => self.places().doubt(spot),
        }
        done
    }

    /// Shows what there is of a reply in the making: the beginning, up to one message. True if somebody can see it now.
    pub(crate) async fn show_beginning(&self, saying: ReplyPart<'_>, text: &str) -> bool {
        let Some(beginning) = messages(text).into_iter().next() else { return false };
        let Ok(mut answer) = self.place_of(saying.target).await else { return false };
        let reply = saying.target.reply;
        if answer.number.is_some_and(|number| number != reply.number) {
            // Another answer stands there, whole; it is not replaced by half of one.
            return false;
        }
        answer.number = Some(reply.number);
        let made = self.make_part(saying, 0, None, &beginning, &mut answer).await;
        match made {
            Ok(()) => self.places().remember(reply.spot, answer),
            Err(error) => {
                self.places().doubt(reply.spot);
                tracing::debug!(%error, "a reply in the making is not shown");
                return false;
            }
        }
        true
    }

    async fn make(&self, saying: ReplyPart<'_>, wanted: &[String], answer: &mut Answer) -> Result<(), PlatformError> {
        answer.number = Some(saying.target.reply.number);
        self.unmask(saying, answer).await?;
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

    /// Removes what stands there under another name: who said a message cannot be changed.
    async fn unmask(&self, saying: ReplyPart<'_>, answer: &mut Answer) -> Result<(), PlatformError> {
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

    /// Removes what stands there from a part on. What nobody lets the bot remove stays.
    async fn clear(&self, channel: ChannelId, answer: &mut Answer, first: usize) -> Result<(), PlatformError> {
        for part in answer.parts.split_off(first).iter().rev() {
            match self.remove(channel, part).await {
                Err(error) if !error.is_transient() => {
                    tracing::warn!(message = %part.id, %error, "what stood there before stays");
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
        answer: &mut Answer,
    ) -> Result<(), PlatformError> {
        let Target { channel, reply, .. } = saying.target;
        let mark = PartId { reply, part };
        if let Some(there) = answer.parts.get_mut(part) {
            if there.content == content && there.of == of {
                return Ok(());
            }
            match self.edit(channel, there, mark, of, content).await {
                Ok(()) => {
                    (there.content, there.of) = (content.to_owned(), of);
                    return Ok(());
                }
                // Nobody can change it without its webhook. What it says is right, so it stays.
                Err(error) if is_webhook_gone(&error) && there.content == content => {
                    there.of = of;
                    return Ok(());
                }
                // Somebody deleted it or its webhook: what comes now is new, and so is all behind it.
                Err(error) if failure(&error) == Failure::Gone => self.clear(channel, answer, part).await?,
                Err(error) => return Err(refusal(&error)),
            }
        }
        let (posted, face) = self.post(saying, mark, of, content).await?;
        let mut made = Part { id: posted.id, content: posted.content, of, face };
        if made.content != content {
            // Discord knows the nonce: it is the message of an earlier attempt, with what was known then.
            self.edit(channel, &made, mark, of, content).await.map_err(|error| refusal(&error))?;
            content.clone_into(&mut made.content);
        }
        answer.parts.push(made);
        Ok(())
    }

    /// Takes a reply back, if it is the one that stands there.
    pub(crate) async fn retract(&self, target: Target) -> Result<(), PlatformError> {
        let answer = self.place_of(target).await?;
        if answer.number.is_some_and(|number| number != target.reply.number) {
            return Ok(());
        }
        for part in answer.parts.iter().rev() {
            if let Err(error) = self.remove(target.channel, part).await {
                // It stands there still, though it was put out of mind: the next attempt looks.
                self.places().doubt(target.reply.spot);
                return Err(error);
            }
        }
        self.places().remember(target.reply.spot, Answer::default());
        Ok(())
    }

    /// Where a reply stands, as it is remembered or found.
    async fn place_of(&self, target: Target) -> Result<Answer, PlatformError> {
        let known = self.places().known(target.reply.spot);
        match known {
            Some(answer) => Ok(answer),
            None => self.find(target).await,
        }
    }

    /// The reply that a message of the bot's own belongs to.
    pub(crate) fn reply_of(&self, message: &Message) -> Option<ReplyKey> {
        PartId::of(message).map(|mark| mark.reply).or_else(|| self.places().reply_of(message.id))
    }

    /// The reply that a message showed which is not there any more, if it was shown lately.
    pub(crate) fn forget_message(&self, message: MessageId) -> Option<ReplyKey> {
        self.places().forget_message(message)
    }

    pub(crate) fn places(&self) -> MutexGuard<'_, ReplyCache> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows that the bot is writing. Nobody misses it if it does not come.
    pub(crate) async fn typing(&self, channel: ChannelId) {
        if self.pace.spare()
            && let Err(error) = self.http.broadcast_typing(channel).await
        {
            tracing::debug!(error = in_words(&error), "no sign of writing");
        }
    }
}

/// A reply as messages, as Discord keeps them: without blanks around.
fn messages(text: &str) -> Vec<String> {
    let parts = split(text).into_iter().map(|part| part.trim().to_owned());
    let parts: Vec<String> = parts.filter(|part| !part.is_empty()).collect();
    if parts.is_empty() { vec![NOTHING.to_owned()] } else { parts }
}

/// A reply calls nobody, whatever it says.
pub(crate) fn nobody() -> CreateAllowedMentions {
    CreateAllowedMentions::new().replied_user(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_of_blanks_is_shown_as_such() {
        assert_eq!(messages(" \n "), [NOTHING]);
        assert_eq!(messages(" hello\n"), ["hello"]);
    }
}
