//! Counts and times of turns since the start, for the operator. They name no person, place or persona, and hold no text.

use std::sync::atomic::{AtomicU64, Ordering};

use azera_adapter::{Outcome, Turn};

use crate::engine::Engine;
use crate::error::Error;
use crate::learning_stages::{LearningMeasurements, LearningSnapshot};

/// Upper bounds of the buckets of a histogram, in milliseconds.
pub const BUCKETS_MS: [f64; 11] = [5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1_000.0, 2_500.0, 10_000.0, 60_000.0];

/// How often values fell into each bucket.
#[derive(Debug, Default)]
pub(crate) struct Histogram {
    /// Values up to each bound; the last bucket has the larger ones.
    buckets: [AtomicU64; BUCKETS_MS.len() + 1],
    /// Sum of all values, in microseconds.
    sum_us: AtomicU64,
}

/// A histogram at one moment.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HistogramSnapshot {
    /// For each of [`BUCKETS_MS`], how many values were at most as large.
    pub up_to: Vec<u64>,
    /// How many values there were.
    pub count: u64,
    /// The sum of all values, in milliseconds.
    pub sum_ms: f64,
}

impl Histogram {
    fn note(&self, ms: f64) {
        let bucket = BUCKETS_MS.iter().position(|bound| ms <= *bound).unwrap_or(BUCKETS_MS.len());
        if let Some(bucket) = self.buckets.get(bucket) {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
        self.sum_us.fetch_add((ms.max(0.0) * 1_000.0) as u64, Ordering::Relaxed);
    }

    fn snapshot(&self) -> HistogramSnapshot {
        let mut up_to = Vec::with_capacity(BUCKETS_MS.len());
        let mut count = 0;
        for (index, bucket) in self.buckets.iter().enumerate() {
            count += bucket.load(Ordering::Relaxed);
            if index < BUCKETS_MS.len() {
                up_to.push(count);
            }
        }
        HistogramSnapshot { up_to, count, sum_ms: self.sum_us.load(Ordering::Relaxed) as f64 / 1_000.0 }
    }
}

/// The counters.
#[derive(Debug, Default)]
pub(crate) struct Measurements {
    replied: AtomicU64,
    skipped: AtomicU64,
    failed: AtomicU64,
    prompt_tokens: AtomicU64,
    cached_tokens: AtomicU64,
    completion_tokens: AtomicU64,
    first_word: Histogram,
    recall: Histogram,
    pub(crate) learning: LearningMeasurements,
}

/// The counters at one moment.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MeasurementsSnapshot {
    /// Turns with a reply.
    pub replied: u64,
    /// Turns without one, on purpose.
    pub skipped: u64,
    /// Turns that failed; each try counts.
    pub failed: u64,
    /// Tokens of prompts.
    pub prompt_tokens: u64,
    /// Tokens of prompts that the cache held.
    pub cached_tokens: u64,
    /// Tokens of replies.
    pub completion_tokens: u64,
    /// Time from the request to the model to its first token.
    pub first_word: HistogramSnapshot,
    /// Time of recall.
    pub recall: HistogramSnapshot,
    /// Messages that wait for their turn or have it.
    pub waiting_messages: usize,
    /// Chats in which messages wait or are answered.
    pub busy_chats: usize,
    /// What happened after conversations.
    pub learning: LearningSnapshot,
}

/// Adds to a counter.
pub(crate) fn add(counter: &AtomicU64, number: usize) {
    counter.fetch_add(u64::try_from(number).unwrap_or(u64::MAX), Ordering::Relaxed);
}

impl Measurements {
    /// Counts the end of a turn.
    pub(crate) fn note_outcome(&self, outcome: &Result<Outcome, Error>) {
        match outcome {
            Ok(Outcome::Replied(turn)) => self.note_reply(turn),
            Ok(Outcome::Skipped(_)) => add(&self.skipped, 1),
            Err(_) => add(&self.failed, 1),
        }
    }

    fn note_reply(&self, turn: &Turn) {
        let usage = &turn.usage;
        add(&self.replied, 1);
        add(&self.prompt_tokens, usage.prompt_tokens);
        add(&self.cached_tokens, usage.cached_tokens);
        add(&self.completion_tokens, usage.completion_tokens);
        self.first_word.note(usage.ttft_ms);
    }

    /// Counts a recall for a reply.
    pub(crate) fn note_recall(&self, ms: f64) {
        self.recall.note(ms);
    }
}

impl Engine {
    /// Returns the counts and times of turns since the start.
    pub fn measurements(&self) -> MeasurementsSnapshot {
        let (counted, read) = (&self.0.services.measurements, |counter: &AtomicU64| counter.load(Ordering::Relaxed));
        let (busy_chats, waiting_messages) = self.0.turns.queues.lengths();
        MeasurementsSnapshot {
            replied: read(&counted.replied),
            skipped: read(&counted.skipped),
            failed: read(&counted.failed),
            prompt_tokens: read(&counted.prompt_tokens),
            cached_tokens: read(&counted.cached_tokens),
            completion_tokens: read(&counted.completion_tokens),
            first_word: counted.first_word.snapshot(),
            recall: counted.recall.snapshot(),
            waiting_messages,
            busy_chats,
            learning: counted.learning.snapshot(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_counts_in_its_bucket_and_all_larger_ones() {
        let histogram = Histogram::default();
        for ms in [5.0, 5.1, 70_000.0] {
            histogram.note(ms);
        }
        let snapshot = histogram.snapshot();
        assert_eq!(snapshot.up_to, [1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2]);
        assert_eq!(snapshot.count, 3);
        assert!((snapshot.sum_ms - 70_010.1).abs() < 0.01);
    }
}
