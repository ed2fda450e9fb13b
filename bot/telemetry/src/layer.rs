//! Records the spans of Azera's own code.

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use azera_types::{Clock, SystemClock};
use tokio::sync::mpsc;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

use crate::span::{Attribute, Kind, Span};

/// The beginning of the targets of Azera's own code.
const OWN: &str = "azera";

/// Fields whose values are fixed words, such as the name of a stage. Other texts are left out.
const WORDS: [&str; 9] =
    ["activity", "http.request.method", "http.route", "job", "kind", "model", "outcome", "platform", "stage"];

/// Fields that are not attributes: they give the span another name or kind.
const NAME: &str = "otel.name";
const KIND: &str = "otel.kind";

/// Longest word, in characters.
const MAX_WORD_CHARS: usize = 64;

/// Most attributes of a span.
const MAX_ATTRIBUTES: usize = 16;

/// Records spans, and hands them over when they end.
pub struct SpanLayer {
    finished: mpsc::Sender<Span>,
    dropped: Arc<AtomicU64>,
}

/// A span that has not ended.
struct Open(Span);

fn now_ns() -> i128 {
    SystemClock.now().as_nanosecond()
}

impl SpanLayer {
    pub(crate) fn new(finished: mpsc::Sender<Span>) -> Self {
        Self { finished, dropped: Arc::default() }
    }

    /// Returns the number of spans that nobody took.
    pub(crate) fn dropped(&self) -> Arc<AtomicU64> {
        self.dropped.clone()
    }

    /// Returns true for what this layer records.
    pub fn records(metadata: &Metadata<'_>) -> bool {
        metadata.is_span() && metadata.target().starts_with(OWN)
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for SpanLayer {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id).filter(|span| Self::records(span.metadata())) else { return };
        let parent = span.parent().and_then(|parent| {
            let extensions = parent.extensions();
            extensions.get::<Open>().map(|Open(parent)| (parent.trace, parent.id))
        });
        let mut open = Span {
            trace: parent.map_or_else(|| fastrand::u128(1..), |(trace, _)| trace),
            id: fastrand::u64(1..),
            parent: parent.map(|(_, id)| id),
            name: span.name().to_owned(),
            kind: Kind::Internal,
            start_ns: now_ns(),
            end_ns: 0,
            attributes: Vec::new(),
        };
        attributes.record(&mut Read(&mut open));
        span.extensions_mut().insert(Open(open));
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(Open(open)) = span.extensions_mut().get_mut()
        {
            values.record(&mut Read(open));
        }
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let Some(span) = context.span(&id) else { return };
        let Some(Open(mut closed)) = span.extensions_mut().remove() else { return };
        closed.end_ns = now_ns();
        // Nobody waits for the collector.
        if self.finished.try_send(closed).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Reads the fields of a span.
struct Read<'a>(&'a mut Span);

impl Read<'_> {
    fn keep(&mut self, field: &Field, value: Attribute) {
        let attributes = &mut self.0.attributes;
        attributes.retain(|(name, _)| *name != field.name());
        if attributes.len() < MAX_ATTRIBUTES {
            attributes.push((field.name(), value));
        }
    }

    fn text(&mut self, field: &Field, text: &str) {
        match field.name() {
            NAME => self.0.name = word(text),
            KIND => self.0.kind = if text == "server" { Kind::Server } else { Kind::Internal },
            name if WORDS.contains(&name) => self.keep(field, Attribute::Text(word(text))),
            _ => {}
        }
    }
}

fn word(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(MAX_WORD_CHARS).collect()
}

impl Visit for Read<'_> {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.keep(field, Attribute::Real(value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.keep(field, Attribute::Whole(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.keep(field, Attribute::Whole(i64::try_from(value).unwrap_or(i64::MAX)));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.keep(field, Attribute::Truth(value));
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
    use tracing::field::Empty;
    use tracing_subscriber::layer::SubscriberExt;

    use super::*;

    /// Returns the spans of some work, in the order in which they ended, and how many were dropped.
    fn recorded(room: usize, work: impl FnOnce()) -> (Vec<Span>, u64) {
        let (sender, mut finished) = mpsc::channel(room);
        let layer = SpanLayer::new(sender);
        let dropped = layer.dropped();
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), work);
        let mut spans = Vec::new();
        while let Ok(span) = finished.try_recv() {
            spans.push(span);
        }
        (spans, dropped.load(Ordering::Relaxed))
    }

    #[test]
    fn a_span_knows_its_parent_and_holds_no_text_and_no_person() {
        let (spans, dropped) = recorded(8, || {
            let (chat, person) = ("web:a1:main", "web:a1");
            let turn =
                tracing::info_span!(target: "azera_engine", "turn", %chat, %person, outcome = Empty, tokens = Empty);
            let stage = tracing::info_span!(target: "azera_engine", parent: &turn, "stage", otel.name = Empty, note = "heliotrope");
            stage.record("otel.name", "turn.recall");
            drop(stage);
            turn.record("outcome", "replied").record("tokens", 7_u64);
            drop(turn);
            drop(tracing::info_span!(target: "hyper", "a library", secret = 1));
        });
        let [stage, turn] = spans.as_slice() else { panic!("{spans:?}") };
        assert_eq!((stage.name.as_str(), stage.trace, stage.parent), ("turn.recall", turn.trace, Some(turn.id)));
        assert_eq!((stage.attributes.as_slice(), turn.parent), ([].as_slice(), None));
        let want = [("outcome", Attribute::Text("replied".into())), ("tokens", Attribute::Whole(7))];
        assert_eq!(turn.attributes, want);
        assert!(turn.start_ns <= stage.start_ns && stage.end_ns <= turn.end_ns);
        let told = format!("{spans:?}");
        assert!(!told.contains("heliotrope") && !told.contains("web:a1"), "{told}");
        assert_eq!(dropped, 0);
    }

    #[test]
    fn spans_that_nobody_takes_are_dropped_and_counted() {
        let (spans, dropped) = recorded(2, || {
            for number in 0..5 {
                drop(tracing::info_span!(target: "azera", "work", number));
            }
        });
        assert_eq!((spans.len(), dropped), (2, 3));
    }
}
