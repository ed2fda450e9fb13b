//! Servers that removed the bot. Their messages are kept for some days, in case it was a mistake, and then forgotten.

use std::sync::Arc;
use std::time::Duration;

use azera_adapter::InboundEvent;
use azera_types::{Clock, Timestamp};
use serenity::all::GuildId;
use tokio::time::MissedTickBehavior;

use crate::channels::ChannelRegistry;
use crate::discord::Discord;
use crate::gateway::Session;
use crate::id;
use crate::sync_cursor::SyncCursor;

const DAY_MS: i64 = 24 * 3_600 * 1_000;

/// Interval of the checks for expired servers.
const LOOK: Duration = Duration::from_secs(5);

/// Wait after a failure to forget a server; it doubles up to the longest.
const FIRST_WAIT: Duration = Duration::from_secs(30);
const LONGEST_WAIT: Duration = Duration::from_secs(3_600);

impl Discord {
    /// Marks servers as left that are missing in a new session.
    pub(crate) fn came_back(&self, session: &Session) {
        for server in self.sync_cursor.servers() {
            if session.covers(server) && !session.servers.contains(&server) {
                self.left(server);
            }
        }
    }

    /// Records that the bot was removed from a server.
    pub(crate) fn left(&self, server: GuildId) {
        let days = self.settings.keep_removed_days;
        tracing::info!(%server, "the bot was removed from a server; its messages will be forgotten in {days} days");
        self.sync_cursor.left_server(server, self.clock.now());
    }

    /// Returns the task that forgets servers after the configured time.
    pub(crate) fn farewell(&self, registry: &Arc<ChannelRegistry>) -> LeaveCleanup {
        LeaveCleanup {
            registry: registry.clone(),
            sync_cursor: self.sync_cursor.clone(),
            clock: self.clock.clone(),
            retention_ms: i64::from(self.settings.keep_removed_days) * DAY_MS,
        }
    }
}

/// Forgets servers that the bot left long ago, one at a time. This may take long, so it runs as a task of its own.
pub(crate) struct LeaveCleanup {
    registry: Arc<ChannelRegistry>,
    sync_cursor: Arc<SyncCursor>,
    clock: Arc<dyn Clock>,
    retention_ms: i64,
}

impl LeaveCleanup {
    pub(crate) async fn go_on(self) {
        let mut look = tokio::time::interval(LOOK);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut wait = FIRST_WAIT;
        loop {
            look.tick().await;
            if self.let_go().await {
                wait = FIRST_WAIT;
            } else {
                tokio::time::sleep(wait).await;
                wait = (wait * 2).min(LONGEST_WAIT);
            }
        }
    }

    /// Forgets all expired servers; returns false if one failed.
    async fn let_go(&self) -> bool {
        let mut all = true;
        for server in self.sync_cursor.left_before(self.before()) {
            // This server may have readmitted the bot meanwhile.
            let Some(channels) = self.sync_cursor.to_be_forgotten(server, self.before()) else { continue };
            self.registry.context.voice.forget(&channels).await;
            // What was said in a voice channel is a chat of its own.
            let chats = channels.into_iter().flat_map(|channel| [id::chat(channel), id::voice_chat(channel)]);
            let chats = chats.collect::<Result<Vec<_>, _>>();
            let (Ok(realm), Ok(chats)) = (id::realm(server), chats) else { continue };
            let event = InboundEvent::Left { realm, chats };
            match self.registry.context.host.submit(&self.registry.context.platform, event).await {
                Ok(_) => {
                    self.sync_cursor.forget_server(server);
                    tracing::info!(%server, "forgot a server that removed the bot");
                }
                Err(error) => {
                    all = false;
                    tracing::warn!(%server, %error, "cannot forget a server that removed the bot; trying again later");
                }
            }
        }
        all
    }

    /// Returns the time before which a server must have been left to be forgotten now.
    fn before(&self) -> Timestamp {
        let before = self.clock.now().as_millisecond().saturating_sub(self.retention_ms);
        Timestamp::from_millisecond(before).unwrap_or(Timestamp::MIN)
    }
}
