//! One stream of sound: finds where speech begins and pauses, and keeps what was said.

use std::collections::VecDeque;
use std::time::Duration;

use azera_voice_api::{Audio, FRAME_SAMPLES, RECOGNITION_RATE};

/// Probability from which a frame begins an utterance, and from which it goes on with one.
const BEGINS: f32 = 0.5;
const GOES_ON: f32 = 0.35;

/// Sound kept from before the first voiced frame, and after the last one.
const BEFORE: Duration = Duration::from_millis(320);
const AFTER: Duration = Duration::from_millis(200);

/// The most sound that is recognised at once. Whisper takes 30 seconds.
const LONGEST: Duration = Duration::from_secs(28);

/// How long the place is at which a longer utterance is cut.
const QUIET: Duration = Duration::from_millis(160);

/// Less speech than this is a cough or a key.
const LEAST_VOICED: Duration = Duration::from_millis(130);

/// The duration of a frame.
pub(crate) const FRAME: Duration = Duration::from_millis(32);

/// An utterance that is being spoken.
pub(crate) struct Utterance {
    samples: Vec<f32>,
    /// Samples up to the end of the last voiced frame.
    voiced_to: usize,
    /// How long voiced frames lasted together.
    pub(crate) voiced: Duration,
    /// When the first and the last voiced frame were heard.
    pub(crate) began: Duration,
    pub(crate) last_voiced: Duration,
}

impl Utterance {
    /// Returns the sound up to the last voiced frame, and a little more.
    pub(crate) fn audio(&self) -> Audio {
        let end = (self.voiced_to + RECOGNITION_RATE.samples(AFTER)).min(self.samples.len());
        Audio { rate: RECOGNITION_RATE, samples: self.samples.iter().take(end).copied().collect() }
    }

    /// Returns true if so far it may be a cough or a key.
    pub(crate) fn is_too_short(&self) -> bool {
        self.voiced < LEAST_VOICED
    }

    /// Returns true if no more fits.
    pub(crate) fn is_full(&self) -> bool {
        self.samples.len() >= RECOGNITION_RATE.samples(LONGEST)
    }

    /// Takes the first part of the sound off, up to the quietest place in the second half. The utterance goes on.
    pub(crate) fn take_first_part(&mut self) -> Audio {
        let window = RECOGNITION_RATE.samples(QUIET);
        let half = self.samples.len() / 2;
        let second = self.samples.get(half..).unwrap_or_default();
        let energy = |samples: &[f32]| samples.iter().map(|sample| sample * sample).sum::<f32>();
        let steps = second.chunks_exact(window).map(energy).enumerate();
        let quietest = steps.rev().min_by(|(_, a), (_, b)| a.total_cmp(b)).map_or(0, |(step, _)| step);
        let at = (half + quietest * window + window / 2).min(self.samples.len());
        let rest = self.samples.split_off(at);
        self.voiced_to = self.voiced_to.saturating_sub(at);
        Audio { rate: RECOGNITION_RATE, samples: std::mem::replace(&mut self.samples, rest) }
    }

    /// Takes the rest of the sound off as an utterance of its own. This one ends where it begins.
    pub(crate) fn take_rest(&mut self) -> Self {
        let samples = std::mem::take(&mut self.samples);
        let lasts = RECOGNITION_RATE.duration(samples.len());
        let began = self.last_voiced.saturating_sub(lasts).max(self.began);
        let rest = Self { voiced_to: self.voiced_to, voiced: lasts, began, last_voiced: self.last_voiced, samples };
        (self.voiced_to, self.last_voiced) = (0, began);
        rest
    }
}

/// Finds the utterances of one stream.
#[derive(Default)]
pub(crate) struct Endpointer {
    before: VecDeque<f32>,
    pub(crate) utterance: Option<Utterance>,
}

impl Endpointer {
    /// Takes in a frame that was heard at `at`; returns true if it is voiced.
    pub(crate) fn frame(&mut self, at: Duration, samples: &[f32; FRAME_SAMPLES], probability: f32) -> bool {
        match &mut self.utterance {
            None if probability >= BEGINS => {
                let mut kept: Vec<f32> = self.before.drain(..).collect();
                kept.extend_from_slice(samples);
                let voiced_to = kept.len();
                self.utterance =
                    Some(Utterance { samples: kept, voiced_to, voiced: FRAME, began: at, last_voiced: at });
                true
            }
            None => {
                self.before.extend(samples);
                let excess = self.before.len().saturating_sub(RECOGNITION_RATE.samples(BEFORE));
                self.before.drain(..excess);
                false
            }
            Some(utterance) => {
                let is_voiced = probability >= GOES_ON;
                // Silence behind a full utterance says nothing, while its words are recognised.
                if is_voiced || !utterance.is_full() {
                    utterance.samples.extend_from_slice(samples);
                }
                if is_voiced {
                    utterance.voiced += FRAME;
                    utterance.last_voiced = at;
                    utterance.voiced_to = utterance.samples.len();
                }
                is_voiced
            }
        }
    }

    /// Ends the utterance.
    pub(crate) fn end(&mut self) -> Option<Utterance> {
        self.before.clear();
        self.utterance.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_utterance_keeps_what_came_shortly_before_and_after() {
        let mut endpointer = Endpointer::default();
        let mut at = Duration::ZERO;
        let mut feed = |endpointer: &mut Endpointer, frames: usize, probability: f32| {
            for _ in 0..frames {
                at += FRAME;
                endpointer.frame(at, &[probability; FRAME_SAMPLES], probability);
            }
        };
        feed(&mut endpointer, 50, 0.1);
        assert!(endpointer.utterance.is_none());
        feed(&mut endpointer, 10, 0.9);
        feed(&mut endpointer, 20, 0.0);
        let utterance = endpointer.end().expect("it was begun");
        assert_eq!(utterance.voiced, FRAME * 10);
        assert_eq!(utterance.audio().duration(), BEFORE + FRAME * 10 + AFTER);
        assert!(endpointer.end().is_none());
    }

    #[test]
    fn a_long_utterance_is_cut_where_it_is_quiet_and_loses_nothing() {
        let mut endpointer = Endpointer::default();
        for number in 0..875_u16 {
            let level = if (600..610).contains(&number) { 0.001 } else { 0.3 };
            endpointer.frame(FRAME * u32::from(number), &[level; FRAME_SAMPLES], 0.9);
        }
        let utterance = endpointer.utterance.as_mut().expect("it was begun");
        assert!(utterance.is_full());
        let first = utterance.take_first_part();
        let place = first.samples.len() / FRAME_SAMPLES;
        assert!((600..610).contains(&place), "{place}");
        assert!(!utterance.is_full());
        assert_eq!(first.samples.len() + utterance.audio().samples.len(), 875 * FRAME_SAMPLES);
        assert_eq!((utterance.began, utterance.voiced), (Duration::ZERO, FRAME * 875));
    }
}
