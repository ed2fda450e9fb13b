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

/// The longest utterance. A longer one is cut.
const LONGEST: Duration = Duration::from_secs(28);

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
                utterance.samples.extend_from_slice(samples);
                let is_voiced = probability >= GOES_ON;
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
}
