//! Replaces `voice` in a build without the feature `voice`: the bot joins no voice channel.

use std::path::Path;
use std::sync::Arc;

use azera_adapter::{CommandAnswer, Host, Making, Outbound, PlatformError, StreamEvent};
use azera_types::{ChatId, Clock, MessageId, PersonId, Place, PlatformId, ReadableScopes};
use serenity::all::{ChannelId, GuildId, Http, Message, VoiceServerUpdateEvent, VoiceState};
use serenity::gateway::ShardManager;

use crate::directory::Directory;

pub(crate) enum VoiceEvent {
    State(#[expect(dead_code, reason = "nobody reads it here")] Box<VoiceState>),
    Server(#[expect(dead_code, reason = "nobody reads it here")] Box<VoiceServerUpdateEvent>),
    Look,
    Lost(#[expect(dead_code, reason = "nobody reads it here")] u32),
    #[expect(dead_code, reason = "nobody reads it here")]
    Back {
        shard: u32,
        is_new: bool,
    },
    Away(#[expect(dead_code, reason = "nobody reads it here")] GuildId),
    Missed,
    Gone(#[expect(dead_code, reason = "nobody reads it here")] GuildId),
}

/// No calls.
pub(crate) struct VoiceCalls;

impl VoiceCalls {
    pub(crate) fn new(_: PlatformId, _: &Path, _: Arc<dyn Clock>) -> Self {
        Self
    }

    pub(crate) fn connected(&self, _: Arc<Http>, _: Arc<Directory>, _: Arc<ShardManager>) {}

    pub(crate) fn take(&self, _: VoiceEvent) {}

    pub(crate) async fn work(self: Arc<Self>, _: Arc<dyn Host>) {}

    pub(crate) async fn end_all(&self) {}

    pub(crate) fn place(&self, _: &ChatId, _: Option<&PersonId>) -> Option<Place> {
        None
    }

    pub(crate) async fn readable(&self, _: &PersonId, _: &mut ReadableScopes) {}

    pub(crate) async fn forget(&self, _: &[ChannelId]) {}

    pub(crate) async fn event(&self, _: Making<'_>, _: &StreamEvent) {}

    pub(crate) async fn captioned_in(&self, _: &Message) -> Option<Vec<MessageId>> {
        None
    }

    pub(crate) async fn forget_captioned(&self, _: &PersonId, _: &[MessageId]) -> CommandAnswer {
        CommandAnswer::default()
    }

    pub(crate) async fn deliver(self: &Arc<Self>, _: &Outbound) -> Result<(), PlatformError> {
        Ok(())
    }
}
