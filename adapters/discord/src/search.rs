//! Looking for what stands in a channel. Each message of the bot's own bears a mark, so it is found in the channel itself,
//! whatever became of the process that sent it.

use azera_adapter::PlatformError;
use serenity::all::{ChannelId, Message, MessageId, MessagePagination};

use crate::buttons::PartId;
use crate::error::{Failure, failure, refusal};
use crate::id::{Spot, Target};
use crate::replies::Replies;
use crate::reply_cache::{Answer, Part};
use crate::webhooks::WebhookIdentity;

/// Messages of one request for history
/// (<https://discord.com/developers/docs/resources/message#get-channel-messages>).
pub(crate) const PAGE: u8 = 100;

/// Pages of history looked through from where a reply belongs; as many from the end back, for one that was shown late; and as
/// many before it, for one whose time is by a clock that is ahead.
const PAGES: usize = 10;

/// A part that was found: which it is, of which of the answers, and the message.
type Found = (usize, Option<u32>, Message);

impl Replies {
    /// Looks for what stands where a reply belongs.
    pub(crate) async fn find(&self, target: Target) -> Result<Answer, PlatformError> {
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
        // By a clock that is ahead it was written later than Discord has it, and its beginning stands further up.
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
        // What their buttons say is not looked at: they are made anew.
        let parts = parts.map(|(_, (_, _, message))| {
            let face = message.webhook_id.map(|hook| WebhookIdentity { hook, name: message.author.name });
            Part { id: message.id, content: message.content, of: None, face }
        });
        Ok(Answer { number, parts: parts.collect() })
    }

    fn parts_in(&self, page: Vec<Message>, spot: Spot) -> impl Iterator<Item = Found> {
        page.into_iter().filter(|message| self.is_own(message)).filter_map(move |message| {
            let (part, number) = stands_for(&message, spot)?;
            Some((part, number, message))
        })
    }

    async fn page(&self, channel: ChannelId, from: Option<MessagePagination>) -> Result<Vec<Message>, PlatformError> {
        self.pace.turn().await;
        match self.http.get_messages(channel, from, Some(PAGE)).await {
            Ok(page) => Ok(page),
            // Where the bot may not read what was said, it shows what it has to say anew.
            Err(error) if failure(&error) == Failure::Refused => Ok(Vec::new()),
            Err(error) => Err(refusal(&error)),
        }
    }
}

/// Which part of what stands in a place a message of the bot's own is; one that bears no mark is known by what it replies
/// to, but not which of the answers it is.
fn stands_for(message: &Message, spot: Spot) -> Option<(usize, Option<u32>)> {
    match (PartId::of(message), spot) {
        (Some(mark), _) => (mark.reply.spot == spot).then_some((mark.part, Some(mark.reply.number))),
        (None, Spot::Answers(question)) => {
            let reference = message.message_reference.as_ref()?;
            (reference.message_id == Some(question)).then_some((0, None))
        }
        (None, Spot::Post(_)) => None,
    }
}
