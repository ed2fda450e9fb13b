//! Sound in memory.

use std::time::Duration;

/// Rate at which speech is recognised.
pub const RECOGNITION_RATE: SampleRate = SampleRate(16_000);

/// Samples of one second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SampleRate(pub u32);

impl SampleRate {
    /// Returns how long this many samples last.
    pub fn duration(self, samples: usize) -> Duration {
        if self.0 == 0 { Duration::ZERO } else { Duration::from_secs_f64(samples as f64 / f64::from(self.0)) }
    }

    /// Returns how many whole samples a duration has.
    pub fn samples(self, duration: Duration) -> usize {
        (duration.as_secs_f64() * f64::from(self.0)) as usize
    }
}

/// Mono sound. Samples lie between -1 and 1.
#[derive(Clone, PartialEq)]
pub struct Audio {
    /// Samples of one second.
    pub rate: SampleRate,
    /// The samples in order.
    pub samples: Vec<f32>,
}

/// Leaves out what people said.
impl std::fmt::Debug for Audio {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Audio[{:?} at {} Hz]", self.duration(), self.rate.0)
    }
}

/// The level up to which a sample is silence: 40 dB below full scale.
const SILENCE: f32 = 0.01;

impl Audio {
    /// Returns how long the sound lasts.
    pub fn duration(&self) -> Duration {
        self.rate.duration(self.samples.len())
    }

    /// Returns from when and until when the sound is no silence; `None` if all of it is.
    pub fn loud(&self) -> Option<(Duration, Duration)> {
        let is_loud = |sample: &f32| sample.abs() > SILENCE;
        let first = self.samples.iter().position(is_loud)?;
        let last = self.samples.iter().rposition(is_loud)?;
        Some((self.rate.duration(first), self.rate.duration(last + 1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_and_its_samples_agree() {
        let audio = Audio { rate: RECOGNITION_RATE, samples: vec![0.0; 24_000] };
        assert_eq!(audio.duration(), Duration::from_millis(1_500));
        assert_eq!(RECOGNITION_RATE.samples(audio.duration()), 24_000);
        assert_eq!(SampleRate(0).duration(10), Duration::ZERO);
    }

    #[test]
    fn silence_around_a_sound_is_known() {
        let mut samples = vec![0.005; 16_000];
        assert_eq!(Audio { rate: RECOGNITION_RATE, samples: samples.clone() }.loud(), None);
        samples[4_000] = -0.5;
        samples[7_999] = 0.5;
        let loud = Audio { rate: RECOGNITION_RATE, samples }.loud();
        assert_eq!(loud, Some((Duration::from_millis(250), Duration::from_millis(500))));
    }
}
