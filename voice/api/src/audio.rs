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

impl Audio {
    /// Returns how long the sound lasts.
    pub fn duration(&self) -> Duration {
        self.rate.duration(self.samples.len())
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
}
