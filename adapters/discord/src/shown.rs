//! Replies on Discord: posting them once, making them what they should be, finding them again, taking them back.
//!
//! The answers to one message have one place, whichever of them stands there: another answer takes the messages of the
//! one before over. Where that place is, is remembered for what was shown lately; for everything else it is looked up
//! in the channel, where each message bears its mark.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use azera_adapter::PlatformError;
use serenity::all::{
    ApplicationId, ChannelId, CreateActionRow, CreateAllowedMentions, CreateMessage, EditMessage, Http, Message,
    MessageId, MessagePagination, MessageReference, Nonce, UserId,
};
use sha2::{Digest, Sha256};

use crate::error::{Failure, failure, in_words, refusal};
use crate::id::ReplyKey;
use crate::mark::Mark;
use crate::pace::Pace;
use crate::split::split;

/// Answers whose place is remembered.
const MAX_REMEMBERED: usize = 4_096;

/// Messages of one request for history
/// (<https://discord.com/developers/docs/resources/message#get-channel-messages>).
pub(crate) const PAGE: u8 = 100;

/// Pages of history looked through behind a message for the answer to it.
const PAGES: usize = 3;

/// Letters of a nonce; Discord takes 25.
const NONCE_LETTERS: usize = 24;

/// What stands where an answer would that is nothing but blanks.
const NOTHING: &str = "…";

/// The messages that show the answer to one message, in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Answer {
    /// Which of the answers, if the messages say so.
    number: Option<u32>,
    parts: Vec<Part>,
}

#[derive(Debug, Clone)]
struct Part {
    id: MessageId,
    content: String,
    /// Of how many parts its buttons say it is one; without buttons, as in the making, none.
    of: Option<usize>,
}

/// Replies as they stand on Discord.
pub(crate) struct Shown {
    http: Arc<Http>,
    pub(crate) pace: Pace,
    me: UserId,
    application: ApplicationId,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    answers: HashMap<MessageId, Answer>,
    order: VecDeque<MessageId>,
    /// Messages that were new when this process was told of them, so that nothing of an answer can stand there yet.
    fresh: HashSet<MessageId>,
    fresh_order: VecDeque<MessageId>,
}

impl Shown {
    pub(crate) fn new(http: Arc<Http>, me: UserId, application: ApplicationId) -> Self {
        Self { http, pace: Pace::default(), me, application, known: Mutex::default() }
    }

    /// A message was said just now.
    pub(crate) fn fresh(&self, asked: MessageId) {
        let mut known = self.known();
        if known.fresh.insert(asked) {
            known.fresh_order.push_back(asked);
        }
        if known.fresh_order.len() > MAX_REMEMBERED
            && let Some(oldest) = known.fresh_order.pop_front()
        {
            known.fresh.remove(&oldest);
        }
    }

    /// Whether a message is the bot's own, under its own name or a persona's.
    pub(crate) fn is_own(&self, message: &Message) -> bool {
        message.author.id == self.me || message.application_id == Some(self.application)
    }

    /// Makes a reply stand in its channel, whole.
    pub(crate) async fn show(&self, channel: ChannelId, reply: ReplyKey, text: &str) -> Result<(), PlatformError> {
        let wanted = messages(text);
        let mut answer = self.place_of(channel, reply.asked).await?;
        let done = self.make(channel, reply, &wanted, &mut answer).await;
        match &done {
            Ok(()) => self.remember(reply.asked, answer),
            // What came of the last request is not known, so the next attempt looks.
            Err(_) => self.doubt(reply.asked),
        }
        done
    }

    /// Shows what there is of a reply in the making: the beginning, up to one message. True if somebody can see it now.
    pub(crate) async fn show_beginning(&self, channel: ChannelId, reply: ReplyKey, text: &str) -> bool {
        let Some(beginning) = messages(text).into_iter().next() else { return false };
        let Ok(mut answer) = self.place_of(channel, reply.asked).await else { return false };
        if answer.number.is_some_and(|number| number != reply.number) {
            // Another answer stands there, whole; it is not replaced by half of one.
            return false;
        }
        answer.number = Some(reply.number);
        let made = self.make_part(channel, reply, 0, None, &beginning, &mut answer).await;
        match made {
            Ok(()) => self.remember(reply.asked, answer),
            Err(error) => {
                self.doubt(reply.asked);
                tracing::debug!(%error, "a reply in the making is not shown");
                return false;
            }
        }
        true
    }

    async fn make(
        &self,
        channel: ChannelId,
        reply: ReplyKey,
        wanted: &[String],
        answer: &mut Answer,
    ) -> Result<(), PlatformError> {
        answer.number = Some(reply.number);
        for (part, content) in wanted.iter().enumerate() {
            self.pace.turn().await;
            self.make_part(channel, reply, part, Some(wanted.len()), content, answer).await?;
        }
        while answer.parts.len() > wanted.len() {
            let Some(surplus) = answer.parts.last() else { break };
            self.remove(channel, surplus.id).await?;
            answer.parts.pop();
        }
        Ok(())
    }

    async fn make_part(
        &self,
        channel: ChannelId,
        reply: ReplyKey,
        part: usize,
        of: Option<usize>,
        content: &str,
        answer: &mut Answer,
    ) -> Result<(), PlatformError> {
        let mark = Mark { reply, part };
        if let Some(there) = answer.parts.get_mut(part) {
            if there.content == content && there.of == of {
                return Ok(());
            }
            match self.edit(channel, there.id, mark, of, content).await {
                Ok(()) => {
                    (there.content, there.of) = (content.to_owned(), of);
                    return Ok(());
                }
                // Somebody deleted it: what comes now is new, and so is all behind it.
                Err(error) if failure(&error) == Failure::Gone => answer.parts.truncate(part),
                Err(error) => return Err(refusal(&error)),
            }
        }
        let posted = self.post(channel, mark, of, content).await.map_err(|error| refusal(&error))?;
        if posted.content != content {
            // Discord knows the nonce: it is the message of an earlier attempt, with what was known then.
            self.edit(channel, posted.id, mark, of, content).await.map_err(|error| refusal(&error))?;
        }
        answer.parts.push(Part { id: posted.id, content: content.to_owned(), of });
        Ok(())
    }

    async fn post(
        &self,
        channel: ChannelId,
        mark: Mark,
        of: Option<usize>,
        content: &str,
    ) -> serenity::Result<Message> {
        let mut message = CreateMessage::new()
            .content(content)
            .allowed_mentions(nobody())
            .components(buttons(mark, of))
            .nonce(Nonce::String(nonce(mark)))
            .enforce_nonce(true);
        if mark.part == 0 {
            let reference = MessageReference::from((channel, mark.reply.asked)).fail_if_not_exists(false);
            message = message.reference_message(reference);
        }
        self.http.send_message(channel, Vec::new(), &message).await
    }

    async fn edit(
        &self,
        channel: ChannelId,
        id: MessageId,
        mark: Mark,
        of: Option<usize>,
        content: &str,
    ) -> serenity::Result<()> {
        let edit = EditMessage::new().content(content).allowed_mentions(nobody()).components(buttons(mark, of));
        self.http.edit_message(channel, id, &edit, Vec::new()).await.map(drop)
    }

    async fn remove(&self, channel: ChannelId, id: MessageId) -> Result<(), PlatformError> {
        self.pace.turn().await;
        match self.http.delete_message(channel, id, None).await {
            Err(error) if failure(&error) != Failure::Gone => Err(refusal(&error)),
            _ => Ok(()),
        }
    }

    /// Takes a reply back, if it is the one that stands there.
    pub(crate) async fn retract(&self, channel: ChannelId, reply: ReplyKey) -> Result<(), PlatformError> {
        let answer = self.place_of(channel, reply.asked).await?;
        if answer.number.is_some_and(|number| number != reply.number) {
            return Ok(());
        }
        for part in answer.parts.iter().rev() {
            self.remove(channel, part.id).await?;
        }
        self.remember(reply.asked, Answer::default());
        Ok(())
    }

    /// Where the answer to a message stands, as it is remembered or found.
    async fn place_of(&self, channel: ChannelId, asked: MessageId) -> Result<Answer, PlatformError> {
        {
            let known = self.known();
            if let Some(answer) = known.answers.get(&asked) {
                return Ok(answer.clone());
            }
            if known.fresh.contains(&asked) {
                return Ok(Answer::default());
            }
        }
        self.find(channel, asked).await
    }

    /// Looks for the answer to a message in what was said after it.
    async fn find(&self, channel: ChannelId, asked: MessageId) -> Result<Answer, PlatformError> {
        let mut found: Vec<(usize, Option<u32>, Message)> = Vec::new();
        let mut after = asked;
        for _ in 0..PAGES {
            self.pace.turn().await;
            let page = self.http.get_messages(channel, Some(MessagePagination::After(after)), Some(PAGE)).await;
            let page = match page {
                Ok(page) => page,
                // Where the bot may not read what was said, it shows what it has to say anew.
                Err(error) if failure(&error) == Failure::Refused => break,
                Err(error) => return Err(refusal(&error)),
            };
            let (last, whole) = (page.iter().map(|message| message.id).max(), page.len() == usize::from(PAGE));
            let own = page.into_iter().filter(|message| self.is_own(message));
            found.extend(own.filter_map(|message| {
                let (part, number) = stands_for(&message, asked)?;
                Some((part, number, message))
            }));
            match last.filter(|_| whole) {
                Some(last) => after = last,
                None => break,
            }
        }
        found.sort_by_key(|(part, _, message)| (*part, message.id));
        found.dedup_by_key(|(part, _, _)| *part);
        let number = found.iter().find_map(|(_, number, _)| *number);
        let parts = found.into_iter().enumerate().take_while(|(at, (part, _, _))| at == part);
        // What their buttons say is not looked at: they are made anew.
        let parts = parts.map(|(_, (_, _, message))| Part { id: message.id, content: message.content, of: None });
        Ok(Answer { number, parts: parts.collect() })
    }

    /// The reply that a message of the bot's own belongs to.
    pub(crate) fn reply_of(&self, message: &Message) -> Option<ReplyKey> {
        let marked = Mark::of(message).map(|mark| mark.reply);
        marked.or_else(|| {
            let known = self.known();
            let shows = |answer: &Answer| answer.parts.iter().any(|part| part.id == message.id);
            let (asked, answer) = known.answers.iter().find(|(_, answer)| shows(answer))?;
            Some(ReplyKey { asked: *asked, number: answer.number? })
        })
    }

    /// The reply that a message showed which is not there any more, if it was shown lately.
    pub(crate) fn forget_message(&self, message: MessageId) -> Option<ReplyKey> {
        let mut known = self.known();
        let shows = |answer: &Answer| answer.parts.iter().any(|part| part.id == message);
        let (asked, answer) = known.answers.iter_mut().find(|(_, answer)| shows(answer))?;
        let reply = ReplyKey { asked: *asked, number: answer.number? };
        answer.parts.retain(|part| part.id != message);
        Some(reply)
    }

    fn remember(&self, asked: MessageId, answer: Answer) {
        let mut known = self.known();
        if known.answers.insert(asked, answer).is_none() {
            known.order.push_back(asked);
        }
        if known.order.len() > MAX_REMEMBERED
            && let Some(oldest) = known.order.pop_front()
        {
            known.answers.remove(&oldest);
            known.fresh.remove(&oldest);
        }
    }

    fn doubt(&self, asked: MessageId) {
        let mut known = self.known();
        known.answers.remove(&asked);
        known.fresh.remove(&asked);
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
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

/// What stands under a message; nothing while the reply is in the making.
fn buttons(mark: Mark, of: Option<usize>) -> Vec<CreateActionRow> {
    of.map(|parts| mark.buttons(parts)).unwrap_or_default()
}

/// Which part of which answer to `asked` a message of the bot's own is; one that bears no mark is known by what it
/// replies to, but not which of the answers it is.
fn stands_for(message: &Message, asked: MessageId) -> Option<(usize, Option<u32>)> {
    match Mark::of(message) {
        Some(mark) => (mark.reply.asked == asked).then_some((mark.part, Some(mark.reply.number))),
        None => {
            let reference = message.message_reference.as_ref()?;
            (reference.message_id == Some(asked)).then_some((0, None))
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

/// The same for the same part of the same reply, so that Discord posts it once.
fn nonce(mark: Mark) -> String {
    let source = format!("{}.{}.{}", mark.reply.asked, mark.reply.number, mark.part);
    let digest = Sha256::digest(source);
    digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>().chars().take(NONCE_LETTERS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nonce_follows_from_the_part() {
        let mark = |number, part| Mark { reply: ReplyKey { asked: MessageId::new(42), number }, part };
        assert_eq!(nonce(mark(0, 0)), nonce(mark(0, 0)));
        assert_ne!(nonce(mark(0, 0)), nonce(mark(1, 0)));
        assert_ne!(nonce(mark(0, 0)), nonce(mark(0, 1)));
        assert_eq!(nonce(mark(0, 0)).len(), NONCE_LETTERS);
    }

    #[test]
    fn a_reply_of_blanks_is_shown_as_such() {
        assert_eq!(messages(" \n "), [NOTHING]);
        assert_eq!(messages(" hello\n"), ["hello"]);
    }
}
