use std::time::Duration;

/// Speech to send: Opus sound in an Ogg file, and what clients show of it.
#[derive(Clone, PartialEq, Eq)]
pub struct VoiceNote {
    /// The Ogg file.
    pub bytes: Vec<u8>,
    /// How long the sound lasts.
    pub duration: Duration,
    /// Loudness from 0 to 255 of equal stretches of the sound, at most [`VoiceNote::MAX_BARS`].
    pub waveform: Vec<u8>,
}

impl VoiceNote {
    /// The media type of the file.
    pub const MIME: &str = "audio/ogg";
    /// The name that the file gets.
    pub const FILE_NAME: &str = "voice-message.ogg";
    /// The most values of a waveform.
    pub const MAX_BARS: usize = 256;
}

/// Leaves out the sound.
impl std::fmt::Debug for VoiceNote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "VoiceNote[{:?}, {} bytes]", self.duration, self.bytes.len())
    }
}
