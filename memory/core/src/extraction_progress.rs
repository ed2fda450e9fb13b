use azera_types::Timestamp;
use serde::{Deserialize, Serialize};

/// How far a conversation was searched for salient statements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExtractionProgress {
    /// Number of the last message searched.
    pub seq: u64,
    /// When it was searched.
    pub at: Timestamp,
    /// How many times in a row the messages after it could not be compared with earlier ones.
    #[serde(default)]
    pub tries: u16,
    /// How many times in a row the model that searches them was away.
    #[serde(default)]
    pub absences: u16,
    /// How many times in a row their search gave way to live chat.
    #[serde(default)]
    pub interruptions: u16,
}

impl ExtractionProgress {
    /// Returns the progress of a search that has not begun.
    pub fn none() -> Self {
        Self { seq: 0, at: Timestamp::UNIX_EPOCH, tries: 0, absences: 0, interruptions: 0 }
    }

    /// Returns the progress after the messages up to `seq` were searched. What failed before counts for them alone.
    pub fn up_to(self, seq: u64) -> Self {
        if seq > self.seq { Self { seq, at: self.at, ..Self::none() } } else { self }
    }

    /// Returns the progress after all messages were searched `at` a time. What failed before counts no more, even if they
    /// were edited messages alone.
    pub fn whole(self, at: Timestamp) -> Self {
        Self { seq: self.seq, at, ..Self::none() }
    }
}
