//! The sync cursor on disk: how far each channel was handled, so that a restart continues there. A channel's history
//! from before the bot first saw it counts as handled. It also stores the bot's servers.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use azera_types::Timestamp;
use serde::{Deserialize, Serialize};
use serenity::all::{ChannelId, GuildId, MessageId};

use crate::error::Error;

/// Most channels in the file. Beyond that, those handled longest ago are dropped, and start again with the next
/// message.
const MAX_CHANNELS: usize = 50_000;

/// How far every channel was handled.
pub(crate) struct SyncCursor {
    path: PathBuf,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    channels: HashMap<ChannelId, ChannelState>,
    servers: HashMap<GuildId, Server>,
    changed: bool,
}

/// The contents of the file.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct File {
    channels: HashMap<ChannelId, ChannelCursor>,
    servers: HashMap<GuildId, Server>,
}

/// A server that the bot is or was in.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
struct Server {
    /// Time when the bot was found to be removed, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    gone_ms: Option<i64>,
}

impl Server {
    fn was_left_before(self, time: Timestamp) -> bool {
        self.gone_ms.is_some_and(|gone| gone <= time.as_millisecond())
    }
}

struct ChannelState {
    cursor: ChannelCursor,
    /// Messages in progress; the cursor stays before the oldest.
    under_way: BTreeSet<MessageId>,
    /// The newest message in progress or handled.
    newest: u64,
}

/// A channel in the file.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct ChannelCursor {
    /// The snowflake up to which everything was handled.
    to: u64,
    /// True for a DM. Discord does not list DMs at a start, so they are checked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    dm: bool,
    /// Its server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    server: Option<GuildId>,
}

impl SyncCursor {
    /// Reads the sync cursor from a folder, if there is one.
    pub(crate) fn open(folder: &Path) -> Result<Self, Error> {
        let path = folder.join("discord.json");
        let broken = |source| Error::SyncCursor { path: path.display().to_string(), source };
        let File { channels: cursor, servers } = match std::fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| broken(error.into()))?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => File::default(),
            Err(error) => return Err(broken(error)),
        };
        let mark = |(channel, cursor): (ChannelId, ChannelCursor)| {
            (channel, ChannelState { cursor, under_way: BTreeSet::new(), newest: cursor.to })
        };
        let channels = cursor.into_iter().map(mark).collect();
        Ok(Self { path, state: Mutex::new(State { channels, servers, changed: false }) })
    }

    /// Returns how far the channel was handled; `None` if it was never seen.
    pub(crate) fn mark(&self, channel: ChannelId) -> Option<u64> {
        self.lock().channels.get(&channel).map(|mark| mark.cursor.to)
    }

    /// Returns the newest snowflake handled in any channel.
    pub(crate) fn newest(&self) -> Option<u64> {
        self.lock().channels.values().map(|mark| mark.cursor.to).max()
    }

    /// Records a new channel and how far it counts as handled; returns false if it is known.
    pub(crate) fn begin(&self, channel: ChannelId, to: u64, server: Option<GuildId>) -> bool {
        let mut state = self.lock();
        if state.channels.contains_key(&channel) {
            return false;
        }
        if state.channels.len() >= MAX_CHANNELS
            && let Some(oldest) = state.channels.iter().min_by_key(|(_, mark)| mark.cursor.to).map(|(id, _)| *id)
        {
            state.channels.remove(&oldest);
        }
        let cursor = ChannelCursor { to, dm: server.is_none(), server };
        state.channels.insert(channel, ChannelState { cursor, under_way: BTreeSet::new(), newest: to });
        state.changed = true;
        true
    }

    /// Records that a message is in progress.
    pub(crate) fn taken_up(&self, channel: ChannelId, message: MessageId) {
        if let Some(mark) = self.lock().channels.get_mut(&channel) {
            mark.newest = mark.newest.max(message.get());
            if message.get() > mark.cursor.to {
                mark.under_way.insert(message);
            }
        }
    }

    /// Records that a message was handled, or needs nothing.
    pub(crate) fn handled(&self, channel: ChannelId, message: MessageId) {
        let mut state = self.lock();
        let Some(mark) = state.channels.get_mut(&channel) else { return };
        mark.under_way.remove(&message);
        mark.newest = mark.newest.max(message.get());
        let to = mark.under_way.first().map_or(mark.newest, |oldest| oldest.get().saturating_sub(1));
        if to > mark.cursor.to {
            mark.cursor.to = to;
            state.changed = true;
        }
    }

    /// Records that the bot is in a server.
    pub(crate) fn in_server(&self, server: GuildId) {
        let mut state = self.lock();
        let before = state.servers.insert(server, Server::default());
        state.changed |= before.is_none_or(|before| before.gone_ms.is_some());
    }

    /// Records that the bot is no longer in a server.
    pub(crate) fn left_server(&self, server: GuildId, now: Timestamp) {
        let mut state = self.lock();
        if let Some(known) = state.servers.get_mut(&server).filter(|known| known.gone_ms.is_none()) {
            known.gone_ms = Some(now.as_millisecond());
            state.changed = true;
        }
    }

    /// Returns the servers that the bot is in.
    pub(crate) fn servers(&self) -> Vec<GuildId> {
        let state = self.lock();
        state.servers.iter().filter(|(_, server)| server.gone_ms.is_none()).map(|(id, _)| *id).collect()
    }

    /// Returns true if the bot is in a server.
    pub(crate) fn is_in(&self, server: GuildId) -> bool {
        self.lock().servers.get(&server).is_some_and(|server| server.gone_ms.is_none())
    }

    /// Returns the servers that the bot left before a time.
    pub(crate) fn left_before(&self, time: Timestamp) -> Vec<GuildId> {
        let state = self.lock();
        state.servers.iter().filter(|(_, server)| server.was_left_before(time)).map(|(id, _)| *id).collect()
    }

    /// Returns the known channels of a server; `None` unless the bot left it before a time.
    pub(crate) fn to_be_forgotten(&self, server: GuildId, time: Timestamp) -> Option<Vec<ChannelId>> {
        let state = self.lock();
        state.servers.get(&server).filter(|known| known.was_left_before(time))?;
        let lies_there = |(_, mark): &(&ChannelId, &ChannelState)| mark.cursor.server == Some(server);
        Some(state.channels.iter().filter(lies_there).map(|(id, _)| *id).collect())
    }

    /// Removes a server, unless the bot is in it again.
    pub(crate) fn forget_server(&self, server: GuildId) {
        let mut state = self.lock();
        if state.servers.get(&server).is_some_and(|known| known.gone_ms.is_none()) {
            return;
        }
        state.servers.remove(&server);
        state.channels.retain(|_, mark| mark.cursor.server != Some(server));
        state.changed = true;
    }

    /// Returns true if the channel belongs to a server that the bot left.
    pub(crate) fn is_left(&self, channel: ChannelId) -> bool {
        let state = self.lock();
        let server = state.channels.get(&channel).and_then(|mark| mark.cursor.server);
        server.and_then(|server| state.servers.get(&server)).is_some_and(|server| server.gone_ms.is_some())
    }

    /// Returns the DM channels.
    pub(crate) fn directs(&self) -> Vec<ChannelId> {
        self.lock().channels.iter().filter(|(_, mark)| mark.cursor.dm).map(|(id, _)| *id).collect()
    }

    /// Writes changes to disk on a blocking thread.
    pub(crate) async fn keep_soon(self: Arc<Self>) {
        let error = match tokio::task::spawn_blocking(move || self.keep()).await {
            Ok(Ok(())) => return,
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.to_string(),
        };
        tracing::error!(error, "cannot write the sync cursor");
    }

    /// Writes changes to disk atomically.
    fn keep(&self) -> Result<(), Error> {
        let cursor = {
            let mut state = self.lock();
            if !std::mem::take(&mut state.changed) {
                return Ok(());
            }
            let channels = state.channels.iter().map(|(id, mark)| (*id, mark.cursor)).collect();
            File { channels, servers: state.servers.clone() }
        };
        self.write(&cursor).inspect_err(|_| self.lock().changed = true)
    }

    fn write(&self, cursor: &File) -> Result<(), Error> {
        let broken = |source| Error::SyncCursor { path: self.path.display().to_string(), source };
        let bytes = serde_json::to_vec(cursor).map_err(|error| broken(error.into()))?;
        azera_files::write(&self.path, &bytes).map_err(broken)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: ChannelId = ChannelId::new(1);
    const SERVER: Option<GuildId> = Some(GuildId::new(7));

    fn message(id: u64) -> MessageId {
        MessageId::new(id)
    }

    #[test]
    fn the_cursor_stays_before_messages_in_progress() {
        let folder = tempfile::tempdir().unwrap();
        let sync_cursor = SyncCursor::open(folder.path()).unwrap();
        assert!(sync_cursor.begin(ROOM, 10, SERVER));
        assert!(!sync_cursor.begin(ROOM, 99, SERVER), "a known channel keeps its cursor");
        for id in [11, 12, 13] {
            sync_cursor.taken_up(ROOM, message(id));
        }
        sync_cursor.handled(ROOM, message(12));
        assert_eq!(sync_cursor.mark(ROOM), Some(10));
        sync_cursor.handled(ROOM, message(11));
        assert_eq!(sync_cursor.mark(ROOM), Some(12));
        sync_cursor.keep().unwrap();
        assert_eq!(
            SyncCursor::open(folder.path()).unwrap().mark(ROOM),
            Some(12),
            "messages in progress are read again"
        );
        sync_cursor.handled(ROOM, message(13));
        assert_eq!(sync_cursor.mark(ROOM), Some(13));
        sync_cursor.taken_up(ROOM, message(11));
        sync_cursor.handled(ROOM, message(11));
        assert_eq!(sync_cursor.mark(ROOM), Some(13), "a repeated message does not move the cursor back");
    }

    #[test]
    fn only_dms_are_listed() {
        let folder = tempfile::tempdir().unwrap();
        let sync_cursor = SyncCursor::open(folder.path()).unwrap();
        sync_cursor.begin(ROOM, 10, SERVER);
        sync_cursor.begin(ChannelId::new(2), 10, None);
        sync_cursor.keep().unwrap();
        assert_eq!(SyncCursor::open(folder.path()).unwrap().directs(), [ChannelId::new(2)]);
    }

    #[test]
    fn a_left_server_expires_unless_it_comes_back() {
        let folder = tempfile::tempdir().unwrap();
        let sync_cursor = SyncCursor::open(folder.path()).unwrap();
        let at = |ms| Timestamp::from_millisecond(ms).unwrap();
        let server = GuildId::new(7);
        sync_cursor.in_server(server);
        sync_cursor.begin(ROOM, 10, SERVER);
        sync_cursor.left_server(server, at(100));
        sync_cursor.left_server(server, at(900));
        sync_cursor.keep().unwrap();
        let sync_cursor = SyncCursor::open(folder.path()).unwrap();
        assert!(sync_cursor.is_left(ROOM) && sync_cursor.servers().is_empty());
        assert!(sync_cursor.left_before(at(99)).is_empty());
        assert_eq!(sync_cursor.left_before(at(100)), [server]);
        assert_eq!(sync_cursor.to_be_forgotten(server, at(100)), Some(vec![ROOM]));
        assert_eq!(sync_cursor.to_be_forgotten(server, at(99)), None);
        sync_cursor.in_server(server);
        assert!(!sync_cursor.is_left(ROOM) && sync_cursor.left_before(at(999)).is_empty());
        // It came back while it was being forgotten.
        assert_eq!(sync_cursor.to_be_forgotten(server, at(999)), None);
        sync_cursor.forget_server(server);
        assert_eq!((sync_cursor.servers(), sync_cursor.mark(ROOM)), (vec![server], Some(10)));
        sync_cursor.left_server(server, at(100));
        sync_cursor.forget_server(server);
        assert_eq!((sync_cursor.left_before(at(999)), sync_cursor.mark(ROOM)), (Vec::new(), None));
    }
}
