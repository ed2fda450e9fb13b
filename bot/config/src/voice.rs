use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

// The doc comments of these fields are also the comments of azera.example.toml, so they address the operator.

/// Voice messages.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Voice {
    /// Hear voice messages, and answer them by voice. This needs a speech model and a voice on this machine, which
    /// `azera models pull whisper-base` and `azera models pull piper-en-us-joe` fetch, or the servers of
    /// `[recognition_server]` and `[speech_server]`. Without them, people get and send text only. Calls have a setting of
    /// their own.
    pub enabled: bool,
    /// Talk in voice channels when somebody asks for it (`/voice join`). With false, Azera joins none.
    pub calls: bool,
    /// The model that recognises speech; by default the one in use, which `azera models list` shows.
    #[schemars(length(min = 1, max = 100), example = "whisper-base")]
    pub speech_model: Option<String>,
    /// The voice that speaks; by default the one in use, which `azera models list` shows. It may be one of several in a
    /// model, such as "bf_emma" of kokoro-82m. Personas may name another.
    #[schemars(length(min = 1, max = 100), example = "piper-en-us-joe")]
    pub voice: Option<String>,
    /// Let the program espeak-ng speak where neither a voice nor a server is there, if it is installed. It knows many
    /// languages, and sounds like a machine.
    pub espeak: bool,
    /// How long nobody may talk, in calls or in voice messages, until the models of speech are unloaded, in seconds. They
    /// are loaded again when somebody talks. With 0, they stay loaded after they were used once.
    #[schemars(range(min = 60, max = 86_400), extend("x-or-zero" = true))]
    pub unload_after_s: u32,
    /// When replies are also spoken, where a place has no setting of its own (`/voice replies`).
    pub replies: VoiceReplies,
    /// The longest voice message that is heard or spoken, in seconds.
    #[schemars(range(min = 5, max = 3600))]
    pub max_seconds: u32,
    /// The longest recording of a call in a voice channel, in minutes. Calls are recorded only if somebody asks for it and
    /// everybody in the call agrees (`/voice record`). With 0, nobody can record.
    #[schemars(range(min = 0, max = 240))]
    pub record_minutes: u32,
    /// The most megabytes of all recordings of calls together. Once they are reached, recordings end and no other begins.
    #[schemars(range(min = 10, max = 1_000_000))]
    pub recordings_mb: u32,
    /// The most megabytes of the recordings of one server together, so that no server takes the room of the others.
    #[schemars(range(min = 10, max = 1_000_000))]
    pub recordings_mb_per_server: u32,
}

/// When replies are also spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum VoiceReplies {
    /// to a voice message; the text stands beside the sound
    Auto,
    /// every reply
    Always,
    /// no reply
    Never,
}

impl Default for Voice {
    fn default() -> Self {
        Self {
            enabled: true,
            calls: true,
            speech_model: None,
            voice: None,
            espeak: true,
            unload_after_s: 300,
            replies: VoiceReplies::Auto,
            max_seconds: 300,
            record_minutes: 60,
            recordings_mb: 1_000,
            recordings_mb_per_server: 500,
        }
    }
}
