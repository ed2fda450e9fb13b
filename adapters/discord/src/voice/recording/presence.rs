//! Who is there, for recordings.
//!
//! Events may be missing: a new session begins with a description of each server and repeats none, and a full queue drops
//! some. So while something is recorded, it is looked at about once a second who is there, and nothing is kept while the
//! bot cannot know it.

use std::sync::Arc;
use std::time::Duration;

use azera_types::PersonId;
use serenity::all::{ChannelId, GuildId, UserId};
use serenity::gateway::ConnectionStage;
use tokio::time::MissedTickBehavior;

use crate::id;
use crate::voice::{Line, VoiceCalls};

/// How often it is looked at who is there.
const LOOK: Duration = Duration::from_secs(1);

impl Line {
    /// Returns the number of the shard that a server belongs to. It follows from how many shards Discord knows, also while
    /// some of them do not run.
    pub(in crate::voice) fn shard_of(&self, guild: GuildId) -> u32 {
        serenity::utils::shard_id(guild, self.directory.cache.shard_count().max(1))
    }

    /// Returns the numbers of all shards.
    pub(in crate::voice) fn shards(&self) -> impl Iterator<Item = u32> {
        0..self.directory.cache.shard_count().max(1)
    }
}

impl VoiceCalls {
    /// Looks at every recording again and again.
    pub(in crate::voice) async fn keep_looking_at_recordings(self: Arc<Self>) {
        let mut look = tokio::time::interval(LOOK);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            look.tick().await;
            self.look_at_recordings().await;
        }
    }

    /// Lets every recording run, pause or go on, by who is there now.
    pub(in crate::voice) async fn look_at_recordings(self: &Arc<Self>) {
        let places: Vec<(GuildId, ChannelId)> = {
            let calls = self.calls();
            let recorded = calls.iter().filter(|(_, ongoing)| ongoing.recording.is_some());
            recorded.map(|(guild, ongoing)| (*guild, ongoing.channel)).collect()
        };
        for (guild, channel) in places {
            self.look_at_recording(guild, channel).await;
            self.recording_has_other_people(guild, channel).await;
        }
    }

    /// Notes for a recording whether the bot can know who is there.
    pub(super) async fn look_at_recording(&self, guild: GuildId, channel: ChannelId) {
        // A shard may count as connected although its loss was told: the stage of its runner is noted apart from that.
        let is_blind = self.may_be_lost(guild, self.is_connected(guild).await);
        self.change_recording(channel, |recording| recording.is_blind = is_blind);
    }

    /// Returns true if Discord tells what happens in a server.
    pub(in crate::voice) async fn is_connected(&self, guild: GuildId) -> bool {
        self.stage_of(guild).await == Some(ConnectionStage::Connected)
    }

    /// Returns how far the connection of a server's shard is; `None` while the shard does not run.
    pub(in crate::voice) async fn stage_of(&self, guild: GuildId) -> Option<ConnectionStage> {
        let line = self.line.get()?;
        let shard = line.shard_of(guild);
        let runners = line.shards.runners.lock().await;
        runners.iter().find(|(id, _)| id.0 == shard).map(|(_, runner)| runner.stage)
    }

    /// Takes in that a person left a voice channel.
    pub(in crate::voice) fn recording_is_left_by(&self, channel: ChannelId, user: UserId) {
        if let Ok(person) = id::person(user) {
            self.change_recording(channel, |recording| recording.is_left_by(&person));
        }
    }

    /// Takes a person's agreement to any recording back, because they say so or are forgotten. Returns false if they
    /// agreed to none.
    pub(in crate::voice) async fn forget_agreement(self: &Arc<Self>, person: &PersonId) -> bool {
        let places: Vec<(GuildId, ChannelId)> =
            self.calls().iter().map(|(guild, ongoing)| (*guild, ongoing.channel)).collect();
        let mut agreed = false;
        for (guild, channel) in places {
            agreed |= self.change_recording(channel, |recording| recording.agreed.remove(person)) == Some(true);
            self.review_recording(guild, channel).await;
        }
        agreed
    }
}
