//! Rate limits for people and servers.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serenity::all::{GuildId, MessageId, UserId};
use tokio::time::Instant;

use crate::Limits;

/// The notice to a person over the limit, sent once.
pub(crate) const SLOWER: &str =
    "That is more than I can follow. I will read on in a minute; what comes until then I leave unread.";

/// The time over which messages are counted.
const SPAN: Duration = Duration::from_secs(60);

/// Time after which a person gets the notice again.
const WARN_AGAIN_AFTER: Duration = Duration::from_secs(600);

/// Most people and servers that are counted. Those counted longest ago start again.
const MAX_COUNTED: usize = 10_000;

/// Thumbs that a person takes back in a minute, below messages of which only Discord knows whose they are.
const MAX_UNKNOWN: u32 = 10;

/// Most edited messages that are remembered.
const MAX_EDITS: usize = 10_000;

/// The decision about a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RateDecision {
    /// Receive it.
    Fine,
    /// Ignore it.
    TooMuch,
    /// Ignore it, and notify the person.
    TellThem,
}

/// The counts.
pub(crate) struct RateLimiter {
    people: Counts<UserId>,
    guilds: Counts<GuildId>,
    unknown: Counts<UserId>,
    edits: Mutex<HashMap<MessageId, i64>>,
}

struct Counts<K> {
    limit: u32,
    counts: Mutex<HashMap<K, Count>>,
}

struct Count {
    since: Instant,
    messages: u32,
    warned_at: Option<Instant>,
}

impl RateLimiter {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            people: Counts { limit: limits.messages_per_person, counts: Mutex::default() },
            guilds: Counts { limit: limits.messages_per_server, counts: Mutex::default() },
            unknown: Counts { limit: MAX_UNKNOWN, counts: Mutex::default() },
            edits: Mutex::default(),
        }
    }

    /// Returns true if Discord may be asked for a message whose author is unknown, because a thumb was taken back.
    pub(crate) fn may_ask(&self, person: UserId) -> bool {
        self.unknown.judge(person) == RateDecision::Fine
    }

    /// Counts a message of a person in a server or a DM.
    pub(crate) fn judge(&self, person: UserId, guild: Option<GuildId>) -> RateDecision {
        // A person's ignored messages do not count against the server.
        match (self.people.judge(person), guild) {
            (RateDecision::Fine, Some(guild)) => self.guilds.judge(guild),
            (decision, _) => decision,
        }
    }

    /// Returns true if this edit of a message is new.
    pub(crate) fn is_new_edit(&self, message: MessageId, at_ms: i64) -> bool {
        let mut edits = self.edits.lock().unwrap_or_else(PoisonError::into_inner);
        if edits.len() >= MAX_EDITS {
            edits.clear();
        }
        edits.insert(message, at_ms).is_none_or(|before| before < at_ms)
    }
}

impl<K: Eq + Hash + Copy> Counts<K> {
    fn judge(&self, who: K) -> RateDecision {
        let now = Instant::now();
        let mut counts = self.lock();
        if counts.len() >= MAX_COUNTED && !counts.contains_key(&who) {
            counts.retain(|_, count| count.since.elapsed() < SPAN);
            if counts.len() >= MAX_COUNTED {
                counts.clear();
            }
        }
        let count = counts.entry(who).or_insert(Count { since: now, messages: 0, warned_at: None });
        if count.since.elapsed() >= SPAN {
            (count.since, count.messages) = (now, 0);
        }
        count.messages += 1;
        if count.messages <= self.limit {
            return RateDecision::Fine;
        }
        if count.warned_at.is_some_and(|warned_at| warned_at.elapsed() < WARN_AGAIN_AFTER) {
            return RateDecision::TooMuch;
        }
        count.warned_at = Some(now);
        RateDecision::TellThem
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<K, Count>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_person_over_the_limit_is_notified_once_and_heard_again_after_a_minute() {
        tokio::time::pause();
        let rate_limiter = RateLimiter::new(Limits { messages_per_person: 2, messages_per_server: 2 });
        let (ann, bob, here) = (UserId::new(1), UserId::new(2), Some(GuildId::new(9)));
        let say = |who| rate_limiter.judge(who, here);
        assert_eq!(
            [say(ann), say(ann), say(ann), say(ann)].map(|v| v == RateDecision::Fine),
            [true, true, false, false]
        );
        assert_eq!(say(bob), RateDecision::TellThem, "the server's limit is reached");
        assert_eq!(say(bob), RateDecision::TooMuch);
        assert_eq!(rate_limiter.judge(UserId::new(3), None), RateDecision::Fine, "a DM has no server limit");
        let asked = (0..=MAX_UNKNOWN).filter(|_| rate_limiter.may_ask(UserId::new(4))).count();
        assert_eq!(asked, MAX_UNKNOWN as usize);
        assert_eq!(rate_limiter.judge(UserId::new(4), None), RateDecision::Fine, "they are no messages");
        tokio::time::advance(SPAN).await;
        assert_eq!(say(ann), RateDecision::Fine);
    }

    #[test]
    fn an_edit_is_new_once() {
        let rate_limiter = RateLimiter::new(Limits { messages_per_person: 1, messages_per_server: 1 });
        let message = MessageId::new(5);
        assert!(rate_limiter.is_new_edit(message, 100));
        assert!(!rate_limiter.is_new_edit(message, 100), "Discord only added a preview");
        assert!(rate_limiter.is_new_edit(message, 101));
    }
}
