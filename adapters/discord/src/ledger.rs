//! How far each channel was handled, on disk: where to go on reading after a pause. What came before the bot first saw a
//! channel lies behind its mark from the beginning, and is never answered.

use std::collections::{BTreeSet, HashMap};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use serenity::all::{ChannelId, MessageId};

use crate::error::Error;

/// Channels that are kept. Of more, those handled longest ago are dropped, and begin anew when something is said there.
const MAX_CHANNELS: usize = 50_000;

/// How far every channel was handled.
pub(crate) struct Ledger {
    path: PathBuf,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    channels: HashMap<ChannelId, Mark>,
    changed: bool,
}

struct Mark {
    kept: Kept,
    /// Messages that are under way: the mark stays before the oldest of them.
    under_way: BTreeSet<MessageId>,
    /// The newest message that was begun.
    newest: u64,
}

/// What stands on disk about a channel.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Kept {
    /// The snowflake up to which everything was handled.
    to: u64,
    /// A DM: nobody tells of those at a start, so they are asked after.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    dm: bool,
}

impl Ledger {
    /// Reads the ledger of a folder, if there is one.
    pub(crate) fn open(folder: &Path) -> Result<Self, Error> {
        let path = folder.join("discord.json");
        let broken = |source| Error::Ledger { path: path.display().to_string(), source };
        let kept: HashMap<ChannelId, Kept> = match std::fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| broken(error.into()))?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => HashMap::new(),
            Err(error) => return Err(broken(error)),
        };
        let mark =
            |(channel, kept): (ChannelId, Kept)| (channel, Mark { kept, under_way: BTreeSet::new(), newest: kept.to });
        let channels = kept.into_iter().map(mark).collect();
        Ok(Self { path, state: Mutex::new(State { channels, changed: false }) })
    }

    /// How far the channel was handled; `None` for one never seen.
    pub(crate) fn mark(&self, channel: ChannelId) -> Option<u64> {
        self.lock().channels.get(&channel).map(|mark| mark.kept.to)
    }

    /// The newest snowflake that was handled anywhere; `None` if nothing ever was.
    pub(crate) fn newest(&self) -> Option<u64> {
        self.lock().channels.values().map(|mark| mark.kept.to).max()
    }

    /// A channel seen for the first time, with what counts as handled in it; false if it is known.
    pub(crate) fn begin(&self, channel: ChannelId, to: u64, dm: bool) -> bool {
        let mut state = self.lock();
        if state.channels.contains_key(&channel) {
            return false;
        }
        if state.channels.len() >= MAX_CHANNELS
            && let Some(oldest) = state.channels.iter().min_by_key(|(_, mark)| mark.kept.to).map(|(id, _)| *id)
        {
            state.channels.remove(&oldest);
        }
        state.channels.insert(channel, Mark { kept: Kept { to, dm }, under_way: BTreeSet::new(), newest: to });
        state.changed = true;
        true
    }

    /// A message is taken up.
    pub(crate) fn taken_up(&self, channel: ChannelId, message: MessageId) {
        if let Some(mark) = self.lock().channels.get_mut(&channel) {
            mark.newest = mark.newest.max(message.get());
            if message.get() > mark.kept.to {
                mark.under_way.insert(message);
            }
        }
    }

    /// A message is in the record and dealt with, or needs nothing.
    pub(crate) fn handled(&self, channel: ChannelId, message: MessageId) {
        let mut state = self.lock();
        let Some(mark) = state.channels.get_mut(&channel) else { return };
        mark.under_way.remove(&message);
        mark.newest = mark.newest.max(message.get());
        let to = mark.under_way.first().map_or(mark.newest, |oldest| oldest.get().saturating_sub(1));
        if to > mark.kept.to {
            mark.kept.to = to;
            state.changed = true;
        }
    }

    /// The DM channels.
    pub(crate) fn directs(&self) -> Vec<ChannelId> {
        self.lock().channels.iter().filter(|(_, mark)| mark.kept.dm).map(|(id, _)| *id).collect()
    }

    /// Writes what changed to disk, off the threads that others wait for.
    pub(crate) async fn keep_soon(self: Arc<Self>) {
        let error = match tokio::task::spawn_blocking(move || self.keep()).await {
            Ok(Ok(())) => return,
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.to_string(),
        };
        tracing::error!(error, "how far each channel was handled could not be kept");
    }

    /// Writes what changed to disk, in one step.
    fn keep(&self) -> Result<(), Error> {
        let kept: HashMap<ChannelId, Kept> = {
            let mut state = self.lock();
            if !std::mem::take(&mut state.changed) {
                return Ok(());
            }
            state.channels.iter().map(|(id, mark)| (*id, mark.kept)).collect()
        };
        self.write(&kept).inspect_err(|_| self.lock().changed = true)
    }

    fn write(&self, kept: &HashMap<ChannelId, Kept>) -> Result<(), Error> {
        let broken = |source| Error::Ledger { path: self.path.display().to_string(), source };
        let bytes = serde_json::to_vec(kept).map_err(|error| broken(error.into()))?;
        let beside = self.path.with_extension("json.new");
        let mut file = std::fs::File::create(&beside).map_err(broken)?;
        file.write_all(&bytes).and_then(|()| file.sync_all()).map_err(broken)?;
        std::fs::rename(&beside, &self.path).map_err(broken)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: ChannelId = ChannelId::new(1);

    fn message(id: u64) -> MessageId {
        MessageId::new(id)
    }

    #[test]
    fn the_mark_stays_before_what_is_under_way() {
        let folder = tempfile::tempdir().unwrap();
        let ledger = Ledger::open(folder.path()).unwrap();
        assert!(ledger.begin(ROOM, 10, false));
        assert!(!ledger.begin(ROOM, 99, false), "a channel that is known keeps its mark");
        for id in [11, 12, 13] {
            ledger.taken_up(ROOM, message(id));
        }
        ledger.handled(ROOM, message(12));
        assert_eq!(ledger.mark(ROOM), Some(10));
        ledger.handled(ROOM, message(11));
        assert_eq!(ledger.mark(ROOM), Some(12));
        ledger.keep().unwrap();
        assert_eq!(Ledger::open(folder.path()).unwrap().mark(ROOM), Some(12), "what was under way is read again");
        ledger.handled(ROOM, message(13));
        assert_eq!(ledger.mark(ROOM), Some(13));
        ledger.taken_up(ROOM, message(11));
        ledger.handled(ROOM, message(11));
        assert_eq!(ledger.mark(ROOM), Some(13), "what is told twice moves nothing back");
    }

    #[test]
    fn only_dms_are_asked_after() {
        let folder = tempfile::tempdir().unwrap();
        let ledger = Ledger::open(folder.path()).unwrap();
        ledger.begin(ROOM, 10, false);
        ledger.begin(ChannelId::new(2), 10, true);
        ledger.keep().unwrap();
        assert_eq!(Ledger::open(folder.path()).unwrap().directs(), [ChannelId::new(2)]);
    }
}
