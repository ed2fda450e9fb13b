//! A recalled memory, and how a prompt shows it.

use azera_types::{TimeZone, Timestamp};

/// The origin of a memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MemoryOrigin {
    /// Somebody said it, or asked to keep it.
    #[default]
    Said,
    /// The persona wrote it in its diary.
    Diary,
    /// The persona wrote it in its journal.
    Journal,
    /// The persona dreamt it, so it never happened.
    Dreamt,
    /// The persona made it up.
    MadeUp,
    /// The persona asked it in a check-in.
    CheckIn,
}

/// One recalled memory.
#[derive(Clone, PartialEq, Eq)]
pub struct RecalledMemory {
    /// The memory's origin.
    pub came: MemoryOrigin,
    /// The speaker's name; `None` for the persona itself.
    pub speaker: Option<String>,
    /// The text, cut to the snippet length.
    pub text: String,
    /// When it was said or written.
    pub at: Timestamp,
    /// When the speaker said something else instead; `None` while it holds.
    pub until: Option<Timestamp>,
}

impl RecalledMemory {
    /// Creates a memory that still holds.
    pub fn new(came: MemoryOrigin, speaker: Option<String>, text: String, at: Timestamp) -> Self {
        Self { came, speaker, text, at, until: None }
    }
}

impl std::fmt::Debug for RecalledMemory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RecalledMemory[{} bytes]", self.text.len())
    }
}

/// Returns a memory as one line, with its speaker and day.
pub(crate) fn recalled_line(memory: &RecalledMemory, zone: &TimeZone) -> String {
    // A recalled text must be one line, because its own line breaks would look like further entries.
    let text = memory.text.split_whitespace().collect::<Vec<_>>().join(" ");
    let day = |at: Timestamp| at.to_zoned(zone.clone()).strftime("%-d %B %Y").to_string();
    let until = memory.until.map_or_else(String::new, |until| format!(", true until {}", day(until)));
    let speaker = memory.speaker.as_deref().unwrap_or("You");
    let said = match memory.came {
        MemoryOrigin::Said => format!("{speaker} said"),
        MemoryOrigin::Diary => "You wrote in your diary".to_owned(),
        MemoryOrigin::Journal => "You wrote in your journal".to_owned(),
        MemoryOrigin::Dreamt => "You dreamt".to_owned(),
        MemoryOrigin::MadeUp => "You made up".to_owned(),
        MemoryOrigin::CheckIn => "You asked".to_owned(),
    };
    format!("{said} on {}{until}: \"{text}\"", day(memory.at))
}
