//! Takes captions back when what they show is forgotten.
//!
//! One task does it for all calls ([`VoiceCalls::keep_captions`]). It alone marks lines in the log and removes them, so
//! nobody waits for Discord but it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use azera_types::{ChatId, MessageId};
use serde_json::json;
use serenity::all::{ChannelId, EditMessage, Http};
use tokio::sync::Notify;

use super::VoiceCalls;
use super::log::Posted;
use crate::error::{Failure, failure, in_words};
use crate::id;
use crate::replies::nobody;

/// How long to wait until the record or the disk is asked again.
const RETRY: Duration = Duration::from_secs(60);

/// What was forgotten and may stand in captions.
#[derive(Default)]
pub(in crate::voice) struct Withdrawn {
    noted: Mutex<BTreeMap<ChannelId, BTreeSet<MessageId>>>,
    wake: Notify,
}

impl Withdrawn {
    /// Notes what was forgotten of a voice channel.
    pub(super) fn note(&self, channel: ChannelId, gone: BTreeSet<MessageId>) {
        if gone.is_empty() {
            return;
        }
        self.noted.lock().unwrap_or_else(PoisonError::into_inner).entry(channel).or_default().extend(gone);
        self.wake.notify_one();
    }

    fn take(&self) -> BTreeMap<ChannelId, BTreeSet<MessageId>> {
        std::mem::take(&mut *self.noted.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl VoiceCalls {
    /// Takes back the captions of what was forgotten, soon.
    pub(in crate::voice) fn withdraw_captions(&self, gone: &[(ChatId, MessageId)]) {
        for (chat, message) in gone {
            if let Some(channel) = id::voice_channel_of(chat) {
                self.withdrawn.note(channel, BTreeSet::from([message.clone()]));
            }
        }
    }

    /// Removes the captions of what was forgotten: also of what was forgotten while the bot was away, or in a way of which
    /// nobody told it.
    pub(in crate::voice) async fn keep_captions(self: Arc<Self>) {
        let mut is_checked = false;
        loop {
            let is_noted = self.mark_withdrawn().await;
            is_checked = is_noted && (is_checked || (self.recover_captions().await && self.check_captions().await));
            let is_removed = self.remove_due_captions().await;
            let woken = self.withdrawn.wake.notified();
            if is_checked && is_removed {
                woken.await;
            } else {
                tokio::time::timeout(RETRY, woken).await.ok();
            }
        }
    }

    /// Marks what was forgotten in the log. Returns false if some of it could not be marked.
    async fn mark_withdrawn(&self) -> bool {
        let mut is_noted = true;
        for (channel, gone) in self.withdrawn.take() {
            is_noted &= self.mark(channel, &gone).await;
        }
        is_noted
    }

    async fn mark(&self, channel: ChannelId, gone: &BTreeSet<MessageId>) -> bool {
        let marked = self.caption_log.lock().await.withdraw(channel, &gone.iter().collect());
        marked.inspect_err(|error| tracing::error!(%channel, %error, "cannot note which captions must go")).is_ok()
    }

    /// Marks the captions of everything that does not stand in the record. Returns false if it cannot be told.
    async fn check_captions(&self) -> bool {
        let Some((_, host)) = self.speech.get() else { return false };
        let shown = match self.caption_log.lock().await.shown() {
            Ok(shown) => shown,
            Err(error) => {
                tracing::error!(%error, "cannot read where captions stand; trying again in a minute");
                return false;
            }
        };
        for (channel, messages) in shown {
            let mut gone = BTreeSet::new();
            for message in messages {
                match host.stands(&message).await {
                    Ok(Some(true)) => {}
                    Ok(_) => drop(gone.insert(message)),
                    Err(error) => {
                        tracing::warn!(%error, "cannot read whether captions were forgotten; trying again in a minute");
                        return false;
                    }
                }
            }
            if !self.mark(channel, &gone).await {
                return false;
            }
        }
        true
    }

    /// Removes the captions that must go. Returns false if some are left that may go later. What Discord refuses is tried
    /// again when the next ones must go, and after a start.
    async fn remove_due_captions(&self) -> bool {
        let due = self.caption_log.lock().await.due();
        let Ok(line) = self.line() else { return due.is_empty() };
        let mut is_removed = true;
        for (channel, posted) in due {
            match posted {
                Ok(all) => {
                    for posted in all {
                        is_removed &= self.remove_caption(&line.http, channel, &posted).await;
                    }
                }
                Err(error) => {
                    tracing::error!(%channel, %error, "cannot read which captions must go; trying again in a minute");
                    is_removed = false;
                }
            }
        }
        is_removed
    }

    /// Removes the lines of a message that must go. Returns false if that may succeed later.
    async fn remove_caption(&self, http: &Http, channel: ChannelId, posted: &Posted) -> bool {
        if let Err(error) = remove_from(http, posted).await {
            tracing::warn!(message = %posted.message, error = in_words(&error), "cannot remove a forgotten caption");
            return failure(&error) != Failure::Unknown;
        }
        let settled = self.caption_log.lock().await.settle(channel, posted.message);
        settled.inspect_err(|error| tracing::error!(%channel, %error, "cannot note that captions are gone")).is_ok()
    }
}

/// Removes the lines of a message that must go. Nobody can change a message in an archived thread, so it is opened first.
async fn remove_from(http: &Http, posted: &Posted) -> serenity::Result<()> {
    match remove_lines(http, posted).await {
        Err(error) if failure(&error) == Failure::Refused => {
            http.edit_thread(posted.thread, &json!({"archived": false}), None).await?;
            remove_lines(http, posted).await
        }
        removed => removed,
    }
}

/// Removes the lines of a message that must go, or the message if no other line is left.
async fn remove_lines(http: &Http, posted: &Posted) -> serenity::Result<()> {
    let is_gone = |error: &serenity::Error| failure(error) == Failure::Gone;
    let message = match http.get_message(posted.thread, posted.message).await {
        Err(error) if is_gone(&error) => return Ok(()),
        message => message?,
    };
    let lines: Vec<&str> = message.content.lines().collect();
    let kept: Vec<&str> =
        lines.iter().zip(&posted.lines).filter(|(_, shown)| shown.is_some()).map(|(line, _)| *line).collect();
    let removed = if kept.is_empty() || lines.len() != posted.lines.len() {
        http.delete_message(posted.thread, posted.message, None).await
    } else {
        let edit = EditMessage::new().content(kept.join("\n")).allowed_mentions(nobody());
        http.edit_message(posted.thread, posted.message, &edit, Vec::new()).await.map(drop)
    };
    match removed {
        Err(error) if !is_gone(&error) => Err(error),
        _ => Ok(()),
    }
}
