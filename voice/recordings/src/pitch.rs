//! Another pitch for a voice, without another pace.

use std::ops::RangeInclusive;

use azera_voice_api::SampleRate;

use crate::Resampler;

/// Steps of a factor. All usual rates of voices are multiples of it, so that each step is exact.
const STEPS: u32 = 50;

/// A pitch as a factor of a voice's own, in steps of 2 %.
///
/// An engine makes the sound [`Pitch::factor`] times slower. Taken at [`Pitch::rate`], it is so much faster again: that raises
/// the pitch, and the pace stays as it was wished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pitch(u32);

impl Pitch {
    /// The lowest factor; below, a voice is no longer one.
    pub const MIN: f32 = 0.7;
    /// The highest factor.
    pub const MAX: f32 = 1.4;

    /// Returns the pitch next to a factor, within the limits. What is no number is a voice's own pitch.
    pub fn of(factor: f32) -> Self {
        let factor = if factor.is_finite() { factor.clamp(Self::MIN, Self::MAX) } else { 1.0 };
        Self((factor * STEPS as f32).round() as u32)
    }

    /// Returns the pitch next to a factor at which an engine stays within its paces, and the pace at which it must speak for
    /// it: what is made slower becomes higher at the same pace.
    pub fn at_pace(factor: f32, pace: f32, paces: &RangeInclusive<f32>) -> (Self, f32) {
        let (slowest, fastest) = (*paces.start(), *paces.end());
        let pace = if pace.is_finite() { pace.clamp(slowest, fastest) } else { slowest.max(1.0).min(fastest) };
        let factor = if factor.is_finite() { factor } else { 1.0 };
        let pitch = Self::of(factor.max(pace / fastest).min(pace / slowest));
        (pitch, (pace / pitch.factor()).clamp(slowest, fastest))
    }

    /// Returns the factor.
    pub fn factor(self) -> f32 {
        self.0 as f32 / STEPS as f32
    }

    /// Returns the rate at which sound made with this rate has the pitch.
    pub fn rate(self, rate: SampleRate) -> SampleRate {
        SampleRate(rate.0 * self.0 / STEPS)
    }

    /// Returns what brings sound made with this rate to the pitch, and makes it [`Pitch::factor`] times shorter; `None` for
    /// a voice's own pitch.
    pub fn resampler(self, rate: SampleRate) -> Option<Resampler> {
        (self.0 != STEPS).then(|| Resampler::new(self.rate(rate), rate))
    }
}

#[cfg(test)]
mod tests {
    use std::f32::consts::TAU;

    use super::*;

    /// Returns the frequency of a sound, by autocorrelation.
    fn hertz(sound: &[f32], rate: SampleRate) -> f32 {
        let window = &sound[sound.len() / 4..][..2_048];
        let alike =
            |lag: usize| window.iter().zip(&window[lag..]).map(|(a, b)| a * b).sum::<f32>() / (2_048 - lag) as f32;
        let lags = rate.0 as usize / 400..rate.0 as usize / 80;
        let best = lags.clone().map(alike).fold(0.0, f32::max);
        // The first top: a sound is as much like itself after two periods.
        let mut lag = lags.clone().find(|lag| alike(*lag) > 0.98 * best).unwrap();
        while alike(lag + 1) > alike(lag) {
            lag += 1;
        }
        // The top of the parabola through the best lag and its neighbours.
        let (before, at, after) = (alike(lag - 1), alike(lag), alike(lag + 1));
        let shift = (before - after) / (2.0 * (before - 2.0 * at + after));
        rate.0 as f32 / (lag as f32 + shift)
    }

    fn raised(sound: Vec<f32>, pitch: Pitch, rate: SampleRate) -> Vec<f32> {
        let Some(mut resampler) = pitch.resampler(rate) else { return sound };
        let mut raised = Vec::new();
        resampler.push(&sound, &mut raised);
        resampler.finish(&mut raised);
        raised
    }

    #[test]
    fn a_tone_gets_the_pitch_and_becomes_as_much_shorter() {
        for rate in [16_000, 22_050, 24_000].map(SampleRate) {
            let tone: Vec<f32> = (0..rate.0).map(|n| (n as f32 / rate.0 as f32 * 150.0 * TAU).sin()).collect();
            assert!((hertz(&tone, rate) - 150.0).abs() < 0.5);
            for factor in [0.7, 0.9, 1.0, 1.1, 1.4] {
                let raised = raised(tone.clone(), Pitch::of(factor), rate);
                let (found, wanted) = (hertz(&raised, rate), 150.0 * factor);
                assert!((found / wanted - 1.0).abs() < 0.005, "{found} Hz, not {wanted}");
                let shorter = tone.len() as f32 / raised.len() as f32;
                assert!((shorter / factor - 1.0).abs() < 0.001, "{shorter}, not {factor}");
            }
        }
    }

    #[test]
    fn a_pitch_never_takes_the_pace_out_of_what_is_understood() {
        let at = |factor, pace| {
            let (pitch, slower) = Pitch::at_pace(factor, pace, &(0.5..=2.0));
            (pitch.factor(), slower)
        };
        assert_eq!(at(1.25, 1.0), (1.26, 1.0 / 1.26));
        assert_eq!((at(0.7, 2.0), at(1.4, 0.5)), ((1.0, 2.0), (1.0, 0.5)));
        assert_eq!((at(1.0, 9.0), at(f32::NAN, f32::NAN)), ((1.0, 2.0), (1.0, 1.0)));
        for step in 0..40 {
            let pace = 0.5 + step as f32 * 0.0375;
            for factor in [0.7, 0.85, 1.15, 1.4] {
                assert!((0.5..=2.0).contains(&at(factor, pace).1), "{factor} at {pace}");
            }
        }
    }

    #[test]
    fn a_pitch_beyond_measure_is_brought_back() {
        let factors = [0.0, 9.0, f32::NAN, 1.013].map(|factor| Pitch::of(factor).factor());
        assert_eq!(factors, [0.7, 1.4, 1.0, 1.02]);
    }
}
