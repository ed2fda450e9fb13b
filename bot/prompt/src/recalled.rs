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
    /// The stretch of time since which it holds, if it says so.
    pub since: Option<(Timestamp, Timestamp)>,
    /// The stretch of time in which it ceased to hold; `None` while it holds. A moment stands for its day.
    pub until: Option<(Timestamp, Timestamp)>,
}

impl RecalledMemory {
    /// Creates a memory that still holds.
    pub fn new(came: MemoryOrigin, speaker: Option<String>, text: String, at: Timestamp) -> Self {
        Self { came, speaker, text, at, since: None, until: None }
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
    let stretch = |when: (Timestamp, Timestamp)| named(when, zone);
    let holds = match (memory.since.map(stretch), memory.until.map(stretch)) {
        (None, None) => String::new(),
        (Some(since), None) => format!(", true since {since}"),
        (None, Some(until)) => format!(", true until {until}"),
        (Some(since), Some(until)) => format!(", true from {since} until {until}"),
    };
    let speaker = memory.speaker.as_deref().unwrap_or("You");
    let said = match memory.came {
        MemoryOrigin::Said => format!("{speaker} said"),
        MemoryOrigin::Diary => "You wrote in your diary".to_owned(),
        MemoryOrigin::Journal => "You wrote in your journal".to_owned(),
        MemoryOrigin::Dreamt => "You dreamt".to_owned(),
        MemoryOrigin::MadeUp => "You made up".to_owned(),
        MemoryOrigin::CheckIn => "You asked".to_owned(),
    };
    format!("{said} on {}{holds}: \"{text}\"", named((memory.at, memory.at), zone))
}

/// Returns a stretch of time as exactly as people named it: a year, a month or a day.
fn named((from, to): (Timestamp, Timestamp), zone: &TimeZone) -> String {
    let format = match to.duration_since(from).as_hours() / 24 {
        300.. => "%Y",
        27.. => "%B %Y",
        _ => "%-d %B %Y",
    };
    from.to_zoned(zone.clone()).strftime(format).to_string()
}
