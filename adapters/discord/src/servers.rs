//! Servers that the bot is in no more: what was said there is kept for a while, in case it was removed by mistake, and then
//! forgotten.

use serenity::all::GuildId;

use crate::channels::Hall;
use crate::discord::Discord;
use crate::gateway::Session;
use crate::id;

/// Milliseconds of a day.
const DAY_MS: i64 = 24 * 3_600 * 1_000;

impl Discord {
    /// Servers that a new session does not tell of were left while nobody looked.
    pub(crate) fn came_back(&self, session: &Session) {
        for server in self.ledger.servers() {
            if session.covers(server) && !session.servers.contains(&server) {
                self.left(server);
            }
        }
    }

    /// The bot was removed from a server.
    pub(crate) fn left(&self, server: GuildId) {
        let days = self.settings.keep_removed_days;
        tracing::info!(%server, "the bot was removed from a server; in {days} days what was said there is forgotten");
        self.ledger.left_server(server, self.clock.now());
    }

    /// Has forgotten what was said in servers that the bot left long ago.
    pub(crate) async fn let_go(&self, hall: &Hall) {
        let kept = i64::from(self.settings.keep_removed_days) * DAY_MS;
        let Ok(before) = azera_types::Timestamp::from_millisecond(self.clock.now().as_millisecond() - kept) else {
            return;
        };
        for (server, channels) in self.ledger.left_before(before) {
            let chats = channels.into_iter().map(id::chat).collect::<Result<Vec<_>, _>>();
            let (Ok(realm), Ok(chats)) = (id::realm(server), chats) else { continue };
            match hall.around.host.left(&hall.around.platform, &realm, chats).await {
                Ok(()) => {
                    self.ledger.forget_server(server);
                    tracing::info!(%server, "what was said in a server that removed the bot is forgotten");
                }
                Err(error) => tracing::warn!(%server, %error, "a server that removed the bot is not forgotten yet"),
            }
        }
    }
}
