//! What the binary gives a bot that takes part in calls.

use std::sync::Arc;
use std::time::Duration;

use azera_adapter::VoiceHost;
use azera_voice_call_recordings::RecordingFolder;

use super::{CallWaits, Speech};
use crate::discord::Discord;

impl Discord {
    /// Sets what recognises and makes speech, and who records consent; only the first call counts. Without it the bot
    /// joins no voice channel.
    pub fn set_speech(&self, speech: Arc<dyn Speech>, host: Arc<dyn VoiceHost>) {
        self.voice.set_speech(speech, host);
    }

    /// Sets how long Discord may take in voice channels. Without it, it may take as long as [`CallWaits::default`] says.
    pub fn set_call_waits(&self, waits: CallWaits) {
        self.voice.set_waits(waits);
    }

    /// Lets people record calls, if all of them agree: where recordings are kept, and how long one may be. Only the first
    /// call counts.
    pub fn set_recordings(&self, folder: RecordingFolder, most: Duration) {
        self.voice.set_recordings(folder, most);
    }
}
