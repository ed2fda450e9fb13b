//! The newest lines of the log in memory. They hold less than the log itself: of Azera's own lines the level, the time, the
//! part that wrote it, the sentence, and those fields that are numbers or ids. Lines of libraries and texts of errors stay
//! in the log alone, because nobody here knows what they quote.

use std::collections::VecDeque;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};

use azera_types::{Clock, SystemClock, Timestamp};
use serde_json::Value;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

/// Most lines that are kept.
const MAX_LINES: usize = 1_000;

/// Longest sentence, and longest value of a field, in characters.
const MAX_MESSAGE_CHARS: usize = 300;
const MAX_VALUE_CHARS: usize = 120;

/// Most fields of a line.
const MAX_FIELDS: usize = 12;

/// The beginning of the targets of Azera's own lines.
const OWN: &str = "azera";

/// Fields that are ids or fixed words. Others that are no numbers are left out.
const IDS: [&str; 19] = [
    "account", "activity", "branch", "channel", "chat", "code", "guild", "job", "kind", "lora", "memory", "message",
    "model", "persona", "person", "place", "platform", "reply", "room",
];

/// A line of the log.
#[derive(Debug, Clone, PartialEq)]
pub struct LogEntry {
    pub at: Timestamp,
    pub level: Level,
    pub target: String,
    pub message: String,
    pub fields: Vec<(String, Value)>,
}

/// The newest lines, oldest first.
#[derive(Debug, Default)]
pub struct LogRing(Mutex<VecDeque<LogEntry>>);

impl LogRing {
    fn push(&self, entry: LogEntry) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() >= MAX_LINES {
            lines.pop_front();
        }
        lines.push_back(entry);
    }

    /// Returns the newest `most` lines of the wanted levels, the newest last.
    pub fn newest(&self, most: usize, wanted: impl Fn(&Level) -> bool) -> Vec<LogEntry> {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut newest: Vec<LogEntry> =
            lines.iter().rev().filter(|line| wanted(&line.level)).take(most).cloned().collect();
        newest.reverse();
        newest
    }
}

/// Adds lines to a ring.
pub struct RingLayer(pub Arc<LogRing>);

impl<S: Subscriber> Layer<S> for RingLayer {
    fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
        let metadata = event.metadata();
        if !metadata.target().starts_with(OWN) {
            return;
        }
        let mut read = Read::default();
        event.record(&mut read);
        self.0.push(LogEntry {
            at: SystemClock.now(),
            level: *metadata.level(),
            target: metadata.target().to_owned(),
            message: read.message.unwrap_or_default(),
            fields: read.fields,
        });
    }
}

/// What of an event is kept.
#[derive(Default)]
struct Read {
    message: Option<String>,
    fields: Vec<(String, Value)>,
}

impl Read {
    fn keep(&mut self, field: &Field, value: Value) {
        if self.fields.len() < MAX_FIELDS {
            self.fields.push((field.name().to_owned(), value));
        }
    }

    /// Keeps a text, if it is an id. The first `message` is the sentence; a further one is an id of a message.
    fn text(&mut self, field: &Field, text: &str) {
        let cut = |most: usize| text.chars().filter(|c| !c.is_control()).take(most).collect::<String>();
        if field.name() == "message" && self.message.is_none() {
            self.message = Some(cut(MAX_MESSAGE_CHARS));
        } else if IDS.contains(&field.name()) {
            self.keep(field, cut(MAX_VALUE_CHARS).into());
        }
    }
}

impl Visit for Read {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.keep(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.keep(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.keep(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.keep(field, value.into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.text(field, value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.text(field, &format!("{value:?}"));
    }
}

#[cfg(test)]
mod tests {
    use tracing_subscriber::layer::SubscriberExt;

    use super::*;

    /// Returns what the ring keeps of what is logged.
    fn kept(log: impl FnOnce()) -> Vec<LogEntry> {
        let ring = Arc::new(LogRing::default());
        let subscriber = tracing_subscriber::registry().with(RingLayer(ring.clone()));
        tracing::subscriber::with_default(subscriber, log);
        ring.newest(MAX_LINES, |_| true)
    }

    #[test]
    fn ids_and_numbers_are_kept_and_texts_are_not() {
        let lines = kept(|| {
            let (chat, error) = ("web:a1:main", "the secret is heliotrope");
            tracing::warn!(target: "azera_engine::turn", message = %"m7", %chat, tries = 2, %error, note = "heliotrope", "a turn failed");
            tracing::warn!(target: "hyper", "a library quotes heliotrope");
        });
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert_eq!((lines[0].level, lines[0].message.as_str()), (Level::WARN, "a turn failed"));
        let fields: Vec<(&str, &Value)> = lines[0].fields.iter().map(|(name, value)| (name.as_str(), value)).collect();
        assert_eq!(fields, [("message", &"m7".into()), ("chat", &"web:a1:main".into()), ("tries", &2.into())]);
        assert!(!format!("{lines:?}").contains("heliotrope"));
    }

    #[test]
    fn the_oldest_lines_go_first() {
        let ring = Arc::new(LogRing::default());
        let subscriber = tracing_subscriber::registry().with(RingLayer(ring.clone()));
        tracing::subscriber::with_default(subscriber, || {
            for number in 0..MAX_LINES + 5 {
                tracing::info!(target: "azera", number, "a line");
            }
            tracing::error!(target: "azera", "the last one");
        });
        let newest = ring.newest(2, |_| true);
        assert_eq!(newest[1].message, "the last one");
        assert_eq!(newest[0].fields[0].1, Value::from(MAX_LINES + 4));
        let all = ring.newest(usize::MAX, |_| true);
        assert_eq!((all.len(), &all[0].fields[0].1), (MAX_LINES, &Value::from(6)));
        assert_eq!(ring.newest(10, |level| *level == Level::ERROR).len(), 1);
    }
}
