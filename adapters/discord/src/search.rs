//! Finds replies in a channel. Each of the bot's messages carries the id of its part. So they are found in the channel
//! itself, whatever happened to the process that sent them.

use azera_adapter::PlatformError;
use serenity::all::{ChannelId, Message, MessageId, MessagePagination};

use crate::buttons::PartId;
use crate::error::{Failure, failure, refusal};
use crate::failed::is_notice;
use crate::id::{Spot, Target};
use crate::replies::Replies;
use crate::reply_cache::{CachedReply, Part};
use crate::webhooks::WebhookIdentity;

/// Messages in one request for history (<https://discord.com/developers/docs/resources/message#get-channel-messages>).
pub(crate) const PAGE: u8 = 100;

/// Pages of history that are searched after the place of a reply; as many from the end back, for a reply that was shown
/// late; and as many before it, for a post whose time is from a clock that is ahead.
const PAGES: usize = 10;

/// A found part: its number, the number of its reply, and the message.
type Found = (usize, Option<u32>, Message);

impl Replies {
    /// Finds the messages of a reply.
    pub(crate) async fn find(&self, target: Target) -> Result<CachedReply, PlatformError> {
        let Target { channel, reply, since } = target;
        let spot = reply.spot;
        let mut found: Vec<Found> = Vec::new();
        let (mut after, mut whole) = (since, false);
        for _ in 0..PAGES {
            let page = self.page(channel, Some(MessagePagination::After(after))).await?;
            let newest = page.iter().map(|message| message.id).max();
            whole = page.len() < usize::from(PAGE);
            found.extend(self.parts_in(page, spot));
            match newest.filter(|_| !whole) {
                Some(newest) => after = newest,
                None => break,
            }
        }
        let mut before = None;
        for _ in 0..PAGES {
            if whole {
                break;
            }
            let page = self.page(channel, before.map(MessagePagination::Before)).await?;
            before = page.iter().map(|message| message.id).min();
            whole = before.is_none_or(|oldest| oldest <= after);
            found.extend(self.parts_in(page, spot));
        }
        // With a clock that is ahead, its time is later than Discord's, and its first message is further up.
        let earliest = target.since_by_a_fast_clock().filter(|_| found.iter().all(|(part, ..)| *part != 0));
        let mut before = MessageId::new(since.get().saturating_add(1));
        for _ in 0..PAGES {
            let Some(earliest) = earliest.filter(|earliest| *earliest < before) else { break };
            let page = self.page(channel, Some(MessagePagination::Before(before))).await?;
            let oldest = page.iter().map(|message| message.id).min();
            found.extend(self.parts_in(page, spot));
            before = oldest.unwrap_or(earliest);
        }
        found.sort_by_key(|(part, _, message)| (*part, message.id));
        found.dedup_by_key(|(part, _, _)| *part);
        let number = found.iter().find_map(|(_, number, _)| *number);
        let parts = found.into_iter().enumerate().take_while(|(at, (part, _, _))| at == part);
        // Their buttons are ignored, because they are made again.
        let parts = parts.map(|(_, (_, _, message))| {
            let face = message.webhook_id.map(|hook| WebhookIdentity { hook, name: message.author.name });
            let has_passing_file = !message.attachments.is_empty();
            Part { id: message.id, content: message.content, of: None, face, has_passing_file }
        });
        Ok(CachedReply { number, parts: parts.collect() })
    }

    fn parts_in(&self, page: Vec<Message>, spot: Spot) -> impl Iterator<Item = Found> {
        page.into_iter().filter(|message| self.is_own(message)).filter_map(move |message| {
            let (part, number) = part_shown_by(&message, spot)?;
            Some((part, number, message))
        })
    }

    async fn page(&self, channel: ChannelId, from: Option<MessagePagination>) -> Result<Vec<Message>, PlatformError> {
        self.pace.turn().await;
        match self.http.get_messages(channel, from, Some(PAGE)).await {
            Ok(page) => Ok(page),
            // Without permission to read the history, the bot posts the reply again.
            Err(error) if failure(&error) == Failure::Refused => Ok(Vec::new()),
            Err(error) => Err(refusal(&error)),
        }
    }
}

/// Returns the part and the reply that a message of the bot shows. Without a part id, it is recognised by the message
/// that it replies to, and the reply's number is unknown.
fn part_shown_by(message: &Message, spot: Spot) -> Option<(usize, Option<u32>)> {
    match (PartId::of(message), spot) {
        (Some(mark), _) => (mark.reply.spot == spot).then_some((mark.part, Some(mark.reply.number))),
        (None, Spot::Answers(_)) if is_notice(message) => None,
        (None, Spot::Answers(question)) => {
            let reference = message.message_reference.as_ref()?;
            (reference.message_id == Some(question)).then_some((0, None))
        }
        (None, Spot::Post(_)) => None,
    }
}
