//! Recordings of calls: the state of one, and what came of sending one.

use azera_types::PersonId;

/// The recording of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordStatus {
    /// Names this recording, also in a button that agrees to it and to no other.
    pub name: String,
    /// The name of the person who asked for it.
    pub by: String,
    /// True while something is kept: everybody who is there agreed.
    pub is_running: bool,
    /// How many people are in the call, without bots.
    pub people: usize,
    /// How many of them agreed.
    pub agreed: usize,
    /// True if the person who asks agreed.
    pub records_you: bool,
}

/// The sound of a recording on its way to a person.
pub struct SentRecording<'a> {
    /// Who gets it.
    pub to: &'a PersonId,
    /// What is written above it.
    pub text: &'a str,
    /// Its files, with their names.
    pub files: Vec<(String, Vec<u8>)>,
}

/// Leaves out names and sound.
impl std::fmt::Debug for SentRecording<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SentRecording[to {}, {} files]", self.to, self.files.len())
    }
}
