//! Forgetting outside the record: evaluated tokens in the model, replies on platforms, minds.

use std::collections::HashSet;
use std::sync::Arc;

use azera_adapter::PlatformError;
use azera_memory::{Forget, ReadScope, Retraction};
use azera_types::{MessageId, Span};
use tokio::sync::Mutex as AsyncMutex;

use crate::access::AccessControl;
use crate::error::Error;
use crate::files::FileFetcher;
use crate::hearth::Learning;
use crate::indexing::Indexer;
use crate::minds::MindService;
use crate::services::Services;
use crate::surprise::SurpriseMeter;

/// How many replies are retracted at once.
const RETRACTIONS: usize = 128;

/// How often a reply is retracted that its platform cannot reach. With the waits between, that is about a week. Then the
/// bot gives it up. What belongs to a platform that is not attached waits for it.
const MAX_TRIES: u32 = 36;

/// How often a reply is retracted that its platform refuses to retract, such as in a chat that is gone.
const MAX_REFUSALS: u32 = 5;

/// Wait before the second try. It doubles each time, up to [`LONGEST_WAIT_MIN`].
const FIRST_WAIT_MIN: i64 = 1;

/// Longest wait between two tries.
const LONGEST_WAIT_MIN: i64 = 360;

/// Forgets everywhere: in the record, in the model, on platforms, in minds and in LoRAs.
pub(crate) struct Forgetting {
    pub(crate) services: Arc<Services>,
    pub(crate) access: Arc<AccessControl>,
    pub(crate) minds: Arc<MindService>,
    pub(crate) indexer: Arc<Indexer>,
    pub(crate) learning: Arc<Learning>,
    pub(crate) surprise: Arc<SurpriseMeter>,
    pub(crate) files: Arc<FileFetcher>,
    /// Held while the replies that are due are retracted.
    pub(crate) retracting: AsyncMutex<()>,
}

impl Forgetting {
    /// Forgets something, drops the model's evaluated tokens of it, and retracts replies that were forgotten with it.
    /// With a read scope, the receipt lists only what that scope may show.
    pub(crate) async fn forget(
        &self,
        what: Forget,
        quotes: bool,
        seen: Option<ReadScope>,
    ) -> Result<azera_memory::ForgetReceipt, Error> {
        if let Forget::Person(person) = &what {
            self.access.codes.forget(person);
            self.services.references.forget(person);
        }
        // First, so that a failure leaves nothing that its person believes forgotten.
        self.services.forget_samples(&what).await?;
        self.services.forget_recordings(&what).await?;
        let minds_go = matches!(what, Forget::Person(_) | Forget::Chat(_) | Forget::Realm(..));
        let receipt = self
            .services
            .blocking(move |memory| match &seen {
                Some(read_scope) => memory.forgetting().forget_as_seen(read_scope, &what, quotes),
                None => memory.forgetting().forget(&what, quotes),
            })
            .await;
        if receipt.is_err() {
            // Forgetting runs in batches, and some of them may have been committed.
            self.learning.withdraw_unfounded(None).await;
        }
        let receipt = receipt?;
        if minds_go {
            self.minds.wake().await?;
        }
        self.carry_out(&receipt).await?;
        Ok(receipt)
    }

    /// Carries out a receipt outside the record: drops files that wait and evaluated tokens, and retracts replies.
    pub(crate) async fn carry_out(&self, receipt: &azera_memory::ForgetReceipt) -> Result<(), Error> {
        self.indexer.wake();
        self.files.forget(receipt.said.iter().map(|(_, message)| message));
        if let Err(error) = self.surprise.let_go_of_exchanges().await {
            tracing::warn!(%error, "cannot drop exchanges that wait for their surprise to be measured");
        }
        self.learning.withdraw_unfounded(None).await;
        let model = self.services.model();
        for (chat, persona) in &receipt.touched {
            if let Err(error) = model.forget_session(&Services::session(chat, persona)).await {
                tracing::error!(%chat, %error, "cannot drop evaluated tokens");
            }
        }
        self.withdraw_captions(receipt).await;
        // Only its own: nobody's forgetting waits for what failed before.
        let own: HashSet<&MessageId> = receipt.retract.iter().map(|(_, reply, _)| reply).collect();
        if !own.is_empty() {
            self.retract_of(|row| own.contains(&row.reply)).await;
        }
        Ok(())
    }

    /// Retracts the forgotten replies whose time has come, at most [`RETRACTIONS`], unless another task is doing so. What
    /// fails stays in the record and is tried again later.
    pub(crate) async fn retract_due(&self) {
        let Ok(_alone) = self.retracting.try_lock() else { return };
        self.retract_of(|_| true).await;
    }

    /// Retracts the replies that are due and that `wanted` names.
    async fn retract_of(&self, wanted: impl Fn(&Retraction) -> bool) {
        let now = self.services.clock.now();
        let due = self.services.blocking(move |memory| memory.forgetting().retractions_due(now)).await;
        let attached = |row: &Retraction| self.services.platform(&row.platform).is_ok();
        let retracted = match due {
            Ok(due) => {
                let due = due.into_iter().filter(|row| wanted(row) && attached(row));
                self.retract_all(due.take(RETRACTIONS).collect()).await
            }
            Err(error) => Err(error),
        };
        if let Err(error) = retracted {
            tracing::warn!(%error, "cannot read or note which forgotten replies are retracted; trying again later");
        }
    }

    async fn retract_all(&self, due: Vec<Retraction>) -> Result<(), Error> {
        for row in due {
            let Ok(platform) = self.services.platform(&row.platform) else { continue };
            let retracted = tokio::select! {
                biased;
                () = self.services.stopping.cancelled() => return Ok(()),
                retracted = platform.retract(&row.chat, &row.reply, row.at) => retracted,
            };
            match retracted {
                Ok(()) => self.services.blocking(move |memory| memory.forgetting().retracted(&row)).await?,
                Err(error) => self.retract_later(row, &error).await?,
            }
        }
        Ok(())
    }

    /// Notes that a reply could not be retracted, and when to try again, or gives it up.
    async fn retract_later(&self, row: Retraction, error: &PlatformError) -> Result<(), Error> {
        let tries = row.tries + 1;
        let most = if error.is_transient() { MAX_TRIES } else { MAX_REFUSALS };
        if tries >= most {
            tracing::error!(reply = %row.reply, chat = %row.chat, %error, tries, "a forgotten reply may stay visible");
            return self.services.blocking(move |memory| memory.forgetting().retracted(&row)).await;
        }
        tracing::warn!(reply = %row.reply, %error, tries, "cannot retract a forgotten reply; trying again later");
        let wait = FIRST_WAIT_MIN.checked_shl(row.tries).unwrap_or(LONGEST_WAIT_MIN).clamp(1, LONGEST_WAIT_MIN);
        let now = self.services.clock.now();
        let next = now.checked_add(Span::new().minutes(wait)).unwrap_or(now);
        self.services.blocking(move |memory| memory.forgetting().retraction_failed(row, next)).await
    }

    /// Takes back the captions of what was forgotten. Platforms know their chats, even those that were forgotten entirely.
    async fn withdraw_captions(&self, receipt: &azera_memory::ForgetReceipt) {
        let replies = receipt.retract.iter().map(|(chat, reply, _)| (chat.clone(), reply.clone()));
        let gone: Vec<_> = receipt.said.iter().cloned().chain(replies).collect();
        if gone.is_empty() {
            return;
        }
        for platform in self.services.platform_ids() {
            let Ok(platform) = self.services.platform(&platform) else { continue };
            if let Some(voice) = platform.voice() {
                voice.withdraw(&gone).await;
            }
        }
    }
}
