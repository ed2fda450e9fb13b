//! Forgetting outside the record: evaluated tokens in the model, replies on platforms, minds.

use std::sync::Arc;

use azera_memory::{Forget, ReadScope};

use crate::access::AccessControl;
use crate::error::Error;
use crate::hearth::Learning;
use crate::indexing::Indexer;
use crate::minds::MindService;
use crate::services::Services;
use crate::surprise::SurpriseMeter;

/// Forgets everywhere: in the record, in the model, on platforms, in minds and in LoRAs.
pub(crate) struct Forgetting {
    pub(crate) services: Arc<Services>,
    pub(crate) access: Arc<AccessControl>,
    pub(crate) minds: Arc<MindService>,
    pub(crate) indexer: Arc<Indexer>,
    pub(crate) learning: Arc<Learning>,
    pub(crate) surprise: Arc<SurpriseMeter>,
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

    /// Carries out a receipt outside the record: drops evaluated tokens and retracts replies.
    pub(crate) async fn carry_out(&self, receipt: &azera_memory::ForgetReceipt) -> Result<(), Error> {
        self.indexer.wake();
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
        for (chat, reply, at) in &receipt.retract {
            let row = {
                let chat = chat.clone();
                self.services.blocking(move |memory| memory.chats().get(&chat)).await?
            };
            let Some(platform) = row.and_then(|row| self.services.platform(&row.platform).ok()) else { continue };
            if let Err(error) = platform.retract(chat, reply, *at).await {
                tracing::warn!(%reply, %error, "cannot retract a forgotten reply");
            }
        }
        Ok(())
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
