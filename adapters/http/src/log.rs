use azera_types::Timestamp;
use serde_json::Value;

/// How grave a line of the log is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// Details for developers.
    Trace,
    /// Details.
    Debug,
    /// What happens.
    Info,
    /// Something works less well.
    Warn,
    /// Something does not work.
    Error,
}

impl LogLevel {
    /// Every level, the gravest last.
    pub const ALL: [Self; 5] = [Self::Trace, Self::Debug, Self::Info, Self::Warn, Self::Error];

    /// Returns the name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Trace => "trace",
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Error => "error",
        }
    }

    /// Returns the level with this name. Case does not count.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.name().eq_ignore_ascii_case(name))
    }
}

/// A line of the log without anything that people wrote.
#[derive(Debug, Clone, PartialEq)]
pub struct LogLine {
    /// When it was written.
    pub at: Timestamp,
    /// How grave it is.
    pub level: LogLevel,
    /// The part of the program that wrote it.
    pub target: String,
    /// What happened.
    pub message: String,
    /// Numbers, and the ids of what it is about, by their names.
    pub fields: Vec<(String, Value)>,
}
