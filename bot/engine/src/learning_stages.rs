//! Counts and times of what happens after a conversation, since the start. They name no person, place or persona, and
//! hold no text.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use crate::background::ItemCounts;
use crate::measurements::add;

/// A stage of learning from conversations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LearningStage {
    /// Splits a conversation for the model.
    Chunk,
    /// Finds what is worth keeping in a part of a conversation, by classifiers or by the model.
    Extract,
    /// Compares a new statement with earlier ones of the same person.
    Deduplicate,
    /// Compares claims, to find what a new statement contradicts.
    Contradict,
    /// Computes vectors of new memories.
    Embed,
    /// Adds new memories to the indexes and to the graph.
    Index,
    /// Adds memories to the graph that were stored before there was one.
    Graph,
    /// Groups memories into themes.
    Themes,
    /// Writes a dream, a journal entry or a piece.
    Reflect,
    /// Finds procedures and problems in imported coding sessions.
    Mine,
}

impl LearningStage {
    /// All stages, in their order.
    pub const ALL: [Self; 10] = [
        Self::Chunk,
        Self::Extract,
        Self::Deduplicate,
        Self::Contradict,
        Self::Embed,
        Self::Index,
        Self::Graph,
        Self::Themes,
        Self::Reflect,
        Self::Mine,
    ];

    /// Returns the name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Chunk => "chunk",
            Self::Extract => "extract",
            Self::Deduplicate => "deduplicate",
            Self::Contradict => "contradict",
            Self::Embed => "embed",
            Self::Index => "index",
            Self::Graph => "graph",
            Self::Themes => "themes",
            Self::Reflect => "reflect",
            Self::Mine => "mine",
        }
    }
}

/// How often a stage ran, and for how long.
#[derive(Debug, Default)]
struct StageCounter {
    done: AtomicU64,
    failed: AtomicU64,
    /// Sum of all times, in microseconds.
    sum_us: AtomicU64,
}

/// The counters.
#[derive(Debug, Default)]
pub(crate) struct LearningMeasurements {
    stages: [StageCounter; LearningStage::ALL.len()],
    chunks: AtomicU64,
    found: AtomicU64,
    kept: AtomicU64,
    untraceable: AtomicU64,
    repeated: AtomicU64,
    duplicates: AtomicU64,
    superseded: AtomicU64,
    retries: AtomicU64,
    fallbacks: AtomicU64,
}

/// A stage at one moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StageSnapshot {
    /// The stage.
    pub stage: LearningStage,
    /// How often it ended well.
    pub done: u64,
    /// How often it failed; most failures are tried again.
    pub failed: u64,
    /// Its time in all, in seconds.
    pub seconds: f64,
}

/// The counters at one moment.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LearningSnapshot {
    /// The stages, in their order.
    pub stages: Vec<StageSnapshot>,
    /// Parts of conversations for the model.
    pub chunks: u64,
    /// Items that models listed.
    pub found: u64,
    /// Marks on statements that are worth keeping, found by models or classifiers.
    pub kept: u64,
    /// Items of models whose words stand in no message that may be quoted.
    pub untraceable: u64,
    /// Items of models that only repeat what was said before.
    pub repeated: u64,
    /// Statements that say the same as another one.
    pub duplicates: u64,
    /// Statements that a newer one contradicts.
    pub superseded: u64,
    /// Extractions that were postponed because a model was away.
    pub retries: u64,
    /// Parts that the classifiers searched instead of the model.
    pub fallbacks: u64,
}

impl LearningMeasurements {
    pub(crate) fn note_chunks(&self, chunks: usize) {
        add(&self.chunks, chunks);
    }

    pub(crate) fn note_items(&self, counts: ItemCounts) {
        add(&self.found, counts.found);
        add(&self.untraceable, counts.untraceable);
        add(&self.repeated, counts.repeated);
    }

    /// Counts a mark on a statement.
    pub(crate) fn note_kept(&self) {
        add(&self.kept, 1);
    }

    pub(crate) fn note_duplicate(&self) {
        add(&self.duplicates, 1);
    }

    pub(crate) fn note_superseded(&self) {
        add(&self.superseded, 1);
    }

    /// Counts an extraction that was postponed.
    pub(crate) fn note_retry(&self) {
        add(&self.retries, 1);
    }

    /// Counts a part that the classifiers searched instead of the model.
    pub(crate) fn note_fallback(&self) {
        add(&self.fallbacks, 1);
    }

    /// Returns the counters as they are now.
    pub(crate) fn snapshot(&self) -> LearningSnapshot {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let stage = |(stage, counter): (LearningStage, &StageCounter)| StageSnapshot {
            stage,
            done: read(&counter.done),
            failed: read(&counter.failed),
            seconds: read(&counter.sum_us) as f64 / 1_000_000.0,
        };
        LearningSnapshot {
            stages: LearningStage::ALL.into_iter().zip(&self.stages).map(stage).collect(),
            chunks: read(&self.chunks),
            found: read(&self.found),
            kept: read(&self.kept),
            untraceable: read(&self.untraceable),
            repeated: read(&self.repeated),
            duplicates: read(&self.duplicates),
            superseded: read(&self.superseded),
            retries: read(&self.retries),
            fallbacks: read(&self.fallbacks),
        }
    }
}

/// Measures one run of a stage. A run that is dropped before it is done counts as failed.
pub(crate) struct StageClock<'a> {
    counter: Option<&'a StageCounter>,
    begun: Instant,
    is_done: bool,
}

impl<'a> StageClock<'a> {
    /// Begins to measure.
    pub(crate) fn start(learning: &'a LearningMeasurements, stage: LearningStage) -> Self {
        let place = LearningStage::ALL.iter().position(|other| *other == stage);
        let counter = place.and_then(|place| learning.stages.get(place));
        Self { counter, begun: Instant::now(), is_done: false }
    }

    /// Notes that the run ended well.
    pub(crate) fn done(mut self) {
        self.is_done = true;
    }
}

impl Drop for StageClock<'_> {
    fn drop(&mut self) {
        let Some(counter) = self.counter else { return };
        add(if self.is_done { &counter.done } else { &counter.failed }, 1);
        let us = u64::try_from(self.begun.elapsed().as_micros()).unwrap_or(u64::MAX);
        counter.sum_us.fetch_add(us, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_done_or_failed() {
        let learning = LearningMeasurements::default();
        StageClock::start(&learning, LearningStage::Embed).done();
        drop(StageClock::start(&learning, LearningStage::Embed));
        drop(StageClock::start(&learning, LearningStage::Reflect));
        let counted: Vec<(&str, u64, u64)> = learning
            .snapshot()
            .stages
            .into_iter()
            .filter(|stage| stage.done + stage.failed > 0)
            .map(|stage| (stage.stage.name(), stage.done, stage.failed))
            .collect();
        assert_eq!(counted, [("embed", 1, 1), ("reflect", 0, 1)]);
    }
}
