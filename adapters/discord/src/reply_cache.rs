//! Where answers stand, as far as this process remembers it.

use std::collections::{HashMap, HashSet, VecDeque};

use serenity::all::MessageId;

use crate::id::{ReplyKey, Spot};
use crate::webhooks::WebhookIdentity;

/// Answers whose place is remembered.
const MAX_REMEMBERED: usize = 4_096;

/// The messages that show the answer to one message, or a post, in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct CachedReply {
    /// Which of the answers, if the messages say so.
    pub(crate) number: Option<u32>,
    pub(crate) parts: Vec<Part>,
}

#[derive(Debug, Clone)]
pub(crate) struct Part {
    pub(crate) id: MessageId,
    pub(crate) content: String,
    /// Of how many parts its buttons say it is one; as long as it is in the making, none.
    pub(crate) of: Option<usize>,
    /// The webhook that said it, and under which name; `None` if the bot did.
    pub(crate) face: Option<WebhookIdentity>,
}

impl CachedReply {
    fn shows(&self, message: MessageId) -> bool {
        self.parts.iter().any(|part| part.id == message)
    }
}

/// What was shown lately.
#[derive(Default)]
pub(crate) struct ReplyCache {
    answers: HashMap<Spot, CachedReply>,
    order: VecDeque<Spot>,
    /// Messages that were new when this process was told of them, so that nothing of an answer can stand there yet.
    fresh: HashSet<MessageId>,
    fresh_order: VecDeque<MessageId>,
}

impl ReplyCache {
    /// A message was said just now.
    pub(crate) fn fresh(&mut self, question: MessageId) {
        if self.fresh.insert(question) {
            self.fresh_order.push_back(question);
        }
        if self.fresh_order.len() > MAX_REMEMBERED
            && let Some(oldest) = self.fresh_order.pop_front()
        {
            self.fresh.remove(&oldest);
        }
    }

    /// What stands in a place, if that is known.
    pub(crate) fn known(&self, spot: Spot) -> Option<CachedReply> {
        let known = self.answers.get(&spot).cloned();
        known.or_else(|| match spot {
            Spot::Answers(question) => self.fresh.contains(&question).then(CachedReply::default),
            Spot::Post(_) => None,
        })
    }

    pub(crate) fn remember(&mut self, spot: Spot, answer: CachedReply) {
        if self.answers.insert(spot, answer).is_none() {
            self.order.push_back(spot);
        }
        if self.order.len() > MAX_REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.doubt(oldest);
        }
    }

    /// What stands there is not known any more.
    pub(crate) fn doubt(&mut self, spot: Spot) {
        self.answers.remove(&spot);
        if let Spot::Answers(question) = spot {
            self.fresh.remove(&question);
        }
    }

    /// The reply that a message shows.
    pub(crate) fn reply_of(&self, message: MessageId) -> Option<ReplyKey> {
        let (spot, answer) = self.answers.iter().find(|(_, answer)| answer.shows(message))?;
        Some(ReplyKey { spot: *spot, number: answer.number? })
    }

    /// The reply that a message showed which is not there any more.
    pub(crate) fn forget_message(&mut self, message: MessageId) -> Option<ReplyKey> {
        let (spot, answer) = self.answers.iter_mut().find(|(_, answer)| answer.shows(message))?;
        let reply = ReplyKey { spot: *spot, number: answer.number? };
        answer.parts.retain(|part| part.id != message);
        Some(reply)
    }
}
