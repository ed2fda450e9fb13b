//! What Discord tells the operator about its places.

use std::sync::PoisonError;

use async_trait::async_trait;
use azera_adapter::{ConnectionHistory, Invitation, PlaceNames};
use azera_types::{ChatId, RealmId};
use serenity::gateway::ConnectionStage;

use crate::discord::Discord;
use crate::id;
use crate::settings::invite;

#[async_trait]
impl PlaceNames for Discord {
    async fn is_reachable(&self) -> bool {
        let shards = self.shards.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(shards) = shards else { return false };
        let runners = shards.runners.lock().await;
        !runners.is_empty() && runners.values().all(|runner| runner.stage == ConnectionStage::Connected)
    }

    fn history(&self) -> ConnectionHistory {
        self.connection_log.history()
    }

    async fn invitation(&self) -> Option<Invitation> {
        let application = self.connected().ok()?.http.application_id()?;
        Some(Invitation::Link(invite(application.get())))
    }

    async fn realm_name(&self, realm: &RealmId) -> Option<String> {
        let directory = &self.connected().ok()?.directory;
        directory.cache.guild(id::guild_of(realm)?).map(|guild| guild.name.clone())
    }

    async fn chat_name(&self, chat: &ChatId) -> Option<String> {
        let channel = id::channel_of(chat).or_else(|| id::voice_channel_of(chat))?;
        self.connected().ok()?.directory.name_of(channel)
    }
}
