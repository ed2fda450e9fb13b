//! Servers that the bot is in no more: what was said there is kept for a while, in case it was removed by mistake, and then
//! forgotten.

use std::sync::Arc;
use std::time::Duration;

use azera_types::{Clock, Timestamp};
use serenity::all::GuildId;
use tokio::time::MissedTickBehavior;

use crate::channels::ChannelRegistry;
use crate::discord::Discord;
use crate::gateway::Session;
use crate::id;
use crate::sync_cursor::SyncCursor;

/// Milliseconds of a day.
const DAY_MS: i64 = 24 * 3_600 * 1_000;

/// Time between two looks for servers whose time has come.
const LOOK: Duration = Duration::from_secs(5);

/// Wait after one could not be forgotten; it doubles, up to the longest.
const FIRST_WAIT: Duration = Duration::from_secs(30);
const LONGEST_WAIT: Duration = Duration::from_secs(3_600);

impl Discord {
    /// Servers that a new session does not tell of were left while nobody looked.
    pub(crate) fn came_back(&self, session: &Session) {
        for server in self.sync_cursor.servers() {
            if session.covers(server) && !session.servers.contains(&server) {
                self.left(server);
            }
        }
    }

    /// The bot was removed from a server.
    pub(crate) fn left(&self, server: GuildId) {
        let days = self.settings.keep_removed_days;
        tracing::info!(%server, "the bot was removed from a server; in {days} days what was said there is forgotten");
        self.sync_cursor.left_server(server, self.clock.now());
    }

    /// What has forgotten what was said in servers that the bot left long ago.
    pub(crate) fn farewell(&self, registry: &Arc<ChannelRegistry>) -> LeaveCleanup {
        LeaveCleanup {
            registry: registry.clone(),
            sync_cursor: self.sync_cursor.clone(),
            clock: self.clock.clone(),
            retention_ms: i64::from(self.settings.keep_removed_days) * DAY_MS,
        }
    }
}

/// Has forgotten what was said in servers that the bot left long ago, one server at a time. That may take long, so it has a task
/// of its own.
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

    /// False if one could not be forgotten.
    async fn let_go(&self) -> bool {
        let mut all = true;
        for server in self.sync_cursor.left_before(self.before()) {
            // While the one before was forgotten, this one may have let the bot in again.
            let Some(channels) = self.sync_cursor.to_be_forgotten(server, self.before()) else { continue };
            let chats = channels.into_iter().map(id::chat).collect::<Result<Vec<_>, _>>();
            let (Ok(realm), Ok(chats)) = (id::realm(server), chats) else { continue };
            match self.registry.context.host.left(&self.registry.context.platform, &realm, chats).await {
                Ok(()) => {
                    self.sync_cursor.forget_server(server);
                    tracing::info!(%server, "what was said in a server that removed the bot is forgotten");
                }
                Err(error) => {
                    all = false;
                    tracing::warn!(%server, %error, "a server that removed the bot is not forgotten yet");
                }
            }
        }
        all
    }

    /// What was left before this time is forgotten.
    fn before(&self) -> Timestamp {
        let before = self.clock.now().as_millisecond().saturating_sub(self.retention_ms);
        Timestamp::from_millisecond(before).unwrap_or(Timestamp::MIN)
    }
}
