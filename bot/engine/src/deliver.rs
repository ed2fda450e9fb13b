//! Stage *deliver*: the outbox is emptied through the platform, each reply shown once.
//!
//! Between writing a reply and showing it people may have come and gone, most of all over a restart. So the right is
//! asked for again right before: a reply that may no longer be shown is withdrawn, and its message answered anew with
//! what may be shown now.

use std::time::Duration;

use azera_adapter::{Outbound, Platform, Post, State};
use azera_memory::{MessageRow, OutboxRow, SourceScope};
use azera_types::{Author, ChatId, PersonId, PersonaId, Scope, Timestamp};

use crate::engine::Engine;
use crate::error::Error;

/// How often a delivery is tried before it waits in the outbox for a better time.
pub(crate) const DELIVERY_ATTEMPTS: u32 = 5;

/// Wait before the second attempt; it doubles each time.
const FIRST_WAIT: Duration = Duration::from_millis(250);

/// Time after which a turn that failed for a reason that may pass is tried again; doubled each time that fails too.
const SOON: Duration = Duration::from_secs(1);

/// Time the last try takes at most when the core stops.
const LAST_TRY: Duration = Duration::from_secs(5);

/// Time between two looks at what could not be delivered.
const OUTBOX_WAIT: Duration = Duration::from_secs(60);

/// A reply, or one in the making, and where it comes from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DeliverableReply<'a> {
    pub(crate) chat: &'a ChatId,
    /// For whom the place is asked after; nobody for what was written unasked.
    pub(crate) asker: Option<&'a PersonId>,
    pub(crate) persona: &'a PersonaId,
    /// The place it is said in.
    pub(crate) scope: &'a Scope,
    /// When the oldest of what came from there was said: somebody may have joined since it was used.
    pub(crate) from: Timestamp,
    /// The other places it was built on.
    pub(crate) source_scopes: &'a [SourceScope],
}

impl Engine {
    /// Whether everybody who would read a reply now may read what it was built on, by the platform's word of this
    /// moment.
    pub(crate) async fn may_be_shown(
        &self,
        platform: &dyn Platform,
        reply: &DeliverableReply<'_>,
    ) -> Result<bool, Error> {
        let place = match reply.asker {
            Some(asker) => self.place(platform, reply.chat, asker).await?,
            None => self.place_unasked(platform, reply.chat).await?,
        };
        let Some(place) = place else { return Ok(false) };
        // A persona that may not be here any more has nothing to say here.
        match self.persona(place.shared_realm(), reply.persona).await {
            Ok(_) => {}
            Err(Error::NoPersona(_)) => return Ok(false),
            Err(error) => return Err(error),
        }
        let read_scope = self.read_scope(platform, &place, reply.persona).await?;
        Ok(read_scope.allows(reply.persona, reply.scope, reply.source_scopes, reply.from))
    }

    /// Takes back a reply of the outbox that may no longer be shown. The turn of the message it answers is open again
    /// afterwards, if that is to be answered still.
    pub(crate) async fn withdraw(&self, reply: &MessageRow, row: &OutboxRow) -> Result<(), Error> {
        tracing::warn!(reply = %reply.id, chat = %reply.chat, "a reply may no longer be shown and is withdrawn");
        let (reply, row) = (reply.clone(), row.clone());
        let receipt = self.blocking(move |memory| memory.withdraw(&reply, &row)).await?;
        self.carry_out(&receipt).await
    }

    /// Shows a reply and takes it off the outbox, in so many attempts. What the platform refuses for good goes off the outbox too, with a
    /// warning; what it cannot do now stays there.
    pub(crate) async fn deliver(
        &self,
        platform: &dyn Platform,
        reply: &MessageRow,
        state: &State,
        attempts: u32,
    ) -> Result<(), Error> {
        let Author::Persona { id, name } = &reply.author else { return Ok(()) };
        let outbound = Outbound {
            id: reply.id.clone(),
            chat: reply.chat.clone(),
            persona: id.clone(),
            persona_name: name.clone(),
            text: reply.text.clone(),
            reply_to: reply.reply_to.clone(),
            state: state.clone(),
        };
        let post = self.as_post(reply, &outbound).await?;
        let mut wait = FIRST_WAIT;
        for attempt in 1..=attempts {
            let shown = match &post {
                None => platform.deliver(&outbound).await,
                Some(post) => platform.post(post).await,
            };
            match shown {
                Ok(()) => break,
                Err(error) if error.is_transient() && attempt < attempts => {
                    tracing::warn!(reply = %reply.id, attempt, %error, "delivery failed, trying again");
                    tokio::time::sleep(wait).await;
                    wait *= 2;
                }
                Err(error) if error.is_transient() => return Err(Error::Platform(error)),
                Err(error) => {
                    tracing::error!(reply = %reply.id, %error, "the platform refused a reply");
                    break;
                }
            }
        }
        let reply = reply.clone();
        self.blocking(move |memory| memory.delivered(&reply)).await
    }

    /// A message of the outbox that answers nobody, as what it is.
    async fn as_post(&self, message: &MessageRow, outbound: &Outbound) -> Result<Option<Post>, Error> {
        if message.answers.is_some() {
            return Ok(None);
        }
        let (row, posted) = (message.clone(), message.id.clone());
        let written = self.blocking(move |memory| memory.posted_as(&row)).await?;
        Ok(written.map(|(memory, writing)| Post {
            outbound: outbound.clone(),
            kind: writing.kind.as_str().to_owned(),
            sources: memory.sources.into_iter().filter(|source| *source != posted).collect(),
            at: message.at,
        }))
    }

    /// Tries again from time to time what is left in the outbox and in the inbox, until the core stops.
    pub(crate) async fn keep_delivering(self) {
        let mut soon = SOON;
        loop {
            let wait = tokio::select! {
                () = self.0.stopping.cancelled() => return,
                () = tokio::time::sleep(OUTBOX_WAIT) => {
                    soon = SOON;
                    Duration::ZERO
                }
                () = self.0.retry_wanted.notified() => soon,
            };
            soon = (soon * 2).min(OUTBOX_WAIT);
            tokio::select! {
                () = self.0.stopping.cancelled() => return,
                () = tokio::time::sleep(wait) => {}
            }
            self.retry_leftovers().await;
        }
    }

    /// Tries what is left in the outbox and in the inbox, unless somebody does.
    pub(crate) async fn retry_leftovers(&self) {
        let Ok(_alone) = self.0.leftovers.try_lock() else { return };
        if let Err(error) = self.deliver_left_over().await {
            tracing::warn!(%error, "the outbox could not be read");
        }
        if let Err(error) = self.take_up(|_| true).await {
            tracing::warn!(%error, "messages left over could not be taken up");
        }
    }

    /// Tries a last time what is left in the outbox.
    pub(crate) async fn deliver_leftovers(&self) {
        match tokio::time::timeout(LAST_TRY, self.deliver_outbox()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "the outbox will be read at the next start"),
            Err(_) => tracing::warn!("what is left in the outbox waits for the next start"),
        }
    }

    /// Delivers what the outbox holds for platforms that are attached, oldest first.
    pub(crate) async fn deliver_outbox(&self) -> Result<(), Error> {
        let _alone = self.0.leftovers.lock().await;
        self.deliver_left_over().await
    }

    /// The same, for whoever is alone with it: nobody is to deliver a reply while another does.
    async fn deliver_left_over(&self) -> Result<(), Error> {
        for (reply, row) in self.blocking(azera_memory::Memory::outbox).await? {
            let Ok(platform) = self.platform(&row.platform) else { continue };
            // Its own turn delivers it, or has done so since the outbox was read.
            let answering = reply.answers.as_ref().is_some_and(|message| self.is_under_way(message));
            let listed = reply.clone();
            if answering || !self.blocking(move |memory| memory.is_undelivered(&listed)).await? {
                continue;
            }
            if let Err(error) = self.deliver_or_withdraw(platform.as_ref(), &reply, row).await {
                // It stays in the outbox; the others must not wait for it.
                tracing::warn!(reply = %reply.id, %error, "a reply waits in the outbox");
            }
        }
        Ok(())
    }

    async fn deliver_or_withdraw(
        &self,
        platform: &dyn Platform,
        reply: &MessageRow,
        row: OutboxRow,
    ) -> Result<(), Error> {
        let MessageRow { chat, persona, scope, source_scopes, at, .. } = reply;
        let from = row.from.unwrap_or(Timestamp::MIN).min(*at);
        let written = |asker| DeliverableReply { chat, asker, persona, scope, from, source_scopes };
        let post = reply.clone();
        let may = match &row.asker {
            Some(asker) => self.may_be_shown(platform, &written(Some(asker))).await?,
            // What was written unasked, unless what it was is gone.
            None if reply.answers.is_none()
                && self.blocking(move |memory| memory.posted_as(&post)).await?.is_some() =>
            {
                self.may_be_shown(platform, &written(None)).await?
            }
            None => false,
        };
        if may {
            let state = serde_json::from_value(row.state).unwrap_or_default();
            return self.deliver(platform, reply, &state, 1).await;
        }
        self.withdraw(reply, &row).await?;
        self.take_up(|message| Some(&message.id) == reply.answers.as_ref()).await
    }
}
