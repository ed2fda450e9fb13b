//! The folder of recordings of calls.

use std::path::Path;
#[cfg(feature = "voice")]
use std::time::Duration;

use anyhow::Context;
use azera_config::Config;
use azera_voice_call_recordings::RecordingFolder;

/// The folder in the data folder.
const FOLDER: &str = "call_recordings";

/// Opens the folder. The data folder must belong to this process.
///
/// # Errors
/// The disk fails.
pub fn open(config: &Config, data: &Path) -> anyhow::Result<RecordingFolder> {
    let path = data.join(FOLDER);
    let bytes = |mb: u32| u64::from(mb) * 1_000_000;
    let folder = RecordingFolder::open(&path, bytes(config.voice.recordings_mb));
    let folder = folder.with_context(|| path.display().to_string())?;
    Ok(folder.with_most_per_realm(bytes(config.voice.recordings_mb_per_server)))
}

/// Returns how long a recording may be; `None` if calls are not recorded.
#[cfg(feature = "voice")]
pub fn most(config: &Config) -> Option<Duration> {
    match config.voice.record_minutes {
        0 => None,
        minutes => Some(Duration::from_secs(u64::from(minutes) * 60)),
    }
}
