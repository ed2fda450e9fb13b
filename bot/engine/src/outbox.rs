//! Stage *deliver*: sends the replies in the outbox to their platforms, each once.
//!
//! People may join or leave between writing a reply and sending it, most of all over a restart. So the engine checks
//! the read scope again right before sending. A reply that may no longer be shown is withdrawn, and its message is
//! answered again with what may be shown now.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use azera_adapter::{AnswerFile, FileContent, Outbound, Platform, Post};
use azera_memory::{MessageRow, OutboxRow, SourceScope};
use azera_types::{Author, ChatId, PersonId, PersonaId, Scope, Timestamp};

use crate::access::AccessControl;
use crate::error::Error;
use crate::forgetting::Forgetting;
use crate::services::Services;

/// Sends replies and posts. [`crate::turn::Turns`] decides when, and goes through what is left over.
pub(crate) struct Outbox {
    pub(crate) services: Arc<Services>,
    pub(crate) access: Arc<AccessControl>,
    pub(crate) forgetting: Arc<Forgetting>,
}

/// Attempts to deliver a reply before it stays in the outbox for later.
pub(crate) const DELIVERY_ATTEMPTS: u32 = 5;

/// Wait before the second attempt; it doubles each time.
const FIRST_WAIT: Duration = Duration::from_millis(250);

/// A reply, finished or in progress, and what it is built on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DeliverableReply<'a> {
    pub(crate) chat: &'a ChatId,
    /// The person whom the reply answers; `None` for a post that nobody asked for.
    pub(crate) asker: Option<&'a PersonId>,
    pub(crate) persona: &'a PersonaId,
    /// The place that the reply is said in.
    pub(crate) scope: &'a Scope,
    /// When the oldest source from that place was said: somebody may have joined since.
    pub(crate) from: Timestamp,
    /// The scopes of other places that it is built on.
    pub(crate) source_scopes: &'a [SourceScope],
}

impl Outbox {
    /// Returns true if everybody who would read the reply now may read what it is built on, as the platform reports it
    /// at this moment.
    pub(crate) async fn may_be_shown(
        &self,
        platform: &dyn Platform,
        reply: &DeliverableReply<'_>,
    ) -> Result<bool, Error> {
        let place = match reply.asker {
            Some(asker) => self.services.place(platform, reply.chat, asker).await?,
            None => self.access.place_unasked(platform, reply.chat).await?,
        };
        let Some(place) = place else { return Ok(false) };
        // A persona that is no longer allowed here does not speak here.
        match self.services.persona(place.shared_realm(), reply.persona).await {
            Ok(_) => {}
            Err(Error::NoPersona(_)) => return Ok(false),
            Err(error) => return Err(error),
        }
        let read_scope = self.access.read_scope(platform, &place, reply.persona).await?;
        Ok(read_scope.allows(reply.persona, reply.scope, reply.source_scopes, reply.from))
    }

    /// Withdraws a reply in the outbox that may no longer be shown. The message it answers becomes unanswered again, if
    /// it is still to be answered. Help lines go to the person all the same. If that fails, the reply stays.
    pub(crate) async fn withdraw(
        &self,
        platform: &dyn Platform,
        reply: &MessageRow,
        row: &OutboxRow,
    ) -> Result<(), Error> {
        if let (Some(question), Some(asker), false) = (&reply.answers, &row.asker, row.help.is_empty()) {
            let sent = match platform.voice() {
                Some(voice) => voice.send_help(question, &reply.chat, asker, &row.help).await,
                None => Ok(()),
            };
            match sent {
                Err(error) if error.is_transient() => return Err(Error::Platform(error)),
                Err(error) => tracing::error!(reply = %reply.id, %error, "the platform refused help lines"),
                Ok(()) => {}
            }
        }
        tracing::warn!(reply = %reply.id, chat = %reply.chat, "withdrawing a reply that may no longer be shown");
        let (reply, row) = (reply.clone(), row.clone());
        let receipt = self.services.blocking(move |memory| memory.outbox().withdraw(&reply, &row)).await?;
        self.forgetting.carry_out(&receipt).await
    }

    /// Sends a reply and removes it from the outbox, in at most `attempts` attempts. A reply that the platform refuses
    /// for good is removed, too, and logged as an error. A reply that fails for a passing reason stays.
    pub(crate) async fn deliver(
        &self,
        platform: &dyn Platform,
        reply: &MessageRow,
        row: &OutboxRow,
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
            asker: row.asker.clone(),
            state: serde_json::from_value(row.state.clone()).unwrap_or_default(),
            help: row.help.clone(),
            files: self.files(reply).await?,
            can_upscale: self.services.upscales.load(Ordering::Relaxed),
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
                    tracing::warn!(reply = %reply.id, attempt, %error, "delivery failed; retrying");
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
        self.services.blocking(move |memory| memory.outbox().delivered(&reply)).await
    }

    /// Returns the files of a message in the outbox.
    async fn files(&self, reply: &MessageRow) -> Result<Vec<AnswerFile>, Error> {
        let reply = reply.clone();
        let files = self.services.blocking(move |memory| memory.outbox().files(&reply)).await?;
        Ok(files.into_iter().map(|(part, bytes)| AnswerFile { part, content: FileContent(bytes) }).collect())
    }

    /// Returns the post that an outbox message stands for, if it answers nobody.
    async fn as_post(&self, message: &MessageRow, outbound: &Outbound) -> Result<Option<Post>, Error> {
        if message.answers.is_some() {
            return Ok(None);
        }
        let (row, posted) = (message.clone(), message.id.clone());
        let written = self.services.blocking(move |memory| memory.writings().posted_as(&row)).await?;
        let (kind, sources) = match written {
            Some((memory, writing)) => {
                (writing.kind.as_str(), memory.sources.into_iter().filter(|source| *source != posted).collect())
            }
            // Only pictures are posts without a writing.
            None => ("picture", Vec::new()),
        };
        Ok(Some(Post { outbound: outbound.clone(), kind: kind.to_owned(), sources, at: message.at }))
    }
}
