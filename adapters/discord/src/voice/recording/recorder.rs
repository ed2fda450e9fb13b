//! Where recordings are kept, and what holds for all of them.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use azera_adapter::VoiceError;
use azera_voice_call_recordings::RecordingFolder;
use serenity::all::ChannelId;
use tokio::time::Instant;

/// Shortest time between two questions for a recording in a voice channel, because everybody there is called each time.
const COOLDOWN: Duration = Duration::from_secs(60);

/// Where recordings are kept, and how long one may be.
pub(in crate::voice) struct Recorder {
    pub(super) folder: RecordingFolder,
    pub(super) most: Duration,
    /// When somebody asked for one lately, by voice channels.
    begun: Mutex<HashMap<ChannelId, Instant>>,
}

impl Recorder {
    pub(super) fn new(folder: RecordingFolder, most: Duration) -> Self {
        Self { folder, most, begun: Mutex::default() }
    }

    pub(super) fn not_too_often(&self, channel: ChannelId) -> Result<(), VoiceError> {
        let mut begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        begun.retain(|_, begun| begun.elapsed() < COOLDOWN);
        if begun.contains_key(&channel) {
            return Err(VoiceError::Unavailable(
                "Somebody asked for a recording of this call less than a minute ago. Try again in a minute.".to_owned(),
            ));
        }
        begun.insert(channel, Instant::now());
        Ok(())
    }
}
