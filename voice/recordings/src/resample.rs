//! Changes the rate of sound with a windowed-sinc low-pass filter.

use std::f64::consts::PI;

use azera_voice_api::SampleRate;

/// Zero crossings of the filter on each side. More make its edge steeper and its work longer.
const ZERO_CROSSINGS: f64 = 24.0;
/// The edge of the filter, as a part of half the lower rate.
const EDGE: f64 = 0.92;
/// Shape of the Kaiser window: what lies beyond the edge is 80 dB down.
const KAISER_BETA: f64 = 8.0;

/// Resamples a stream piece by piece. The output has no delay: both streams begin at the same moment.
pub struct Resampler {
    /// Output samples for each `down` input samples.
    up: u64,
    down: u64,
    /// Input samples on each side of an output sample that count.
    half: usize,
    /// `up` filters of `2 * half` weights: one for each place between two input samples.
    filters: Vec<f32>,
    /// The input that later output samples need.
    pending: Vec<f32>,
    /// The number of input samples before `pending`, with `half` samples of silence at the begin counted.
    dropped: u64,
    received: u64,
    produced: u64,
}

impl Resampler {
    /// Prepares a stream. Rates of 0 count as 1.
    pub fn new(from: SampleRate, to: SampleRate) -> Self {
        let (from, to) = (u64::from(from.0.max(1)), u64::from(to.0.max(1)));
        let common = greatest_common_divisor(from, to);
        let (up, down) = (to / common, from / common);
        let cutoff = if up == down { 1.0 } else { EDGE * (up as f64 / down as f64).min(1.0) };
        let half = (ZERO_CROSSINGS / cutoff).ceil() as usize;
        let filters = if up == down { Vec::new() } else { filters(up, half, cutoff) };
        Self { up, down, half, filters, pending: vec![0.0; half], dropped: 0, received: 0, produced: 0 }
    }

    /// Adds input, and appends the output that it completes to `out`.
    pub fn push(&mut self, samples: &[f32], out: &mut Vec<f32>) {
        self.received += samples.len() as u64;
        if self.filters.is_empty() {
            out.extend_from_slice(samples);
            return;
        }
        self.pending.extend_from_slice(samples);
        self.produce(u64::MAX, out);
    }

    /// Ends the stream, and appends the rest of the output to `out`.
    pub fn finish(mut self, out: &mut Vec<f32>) {
        if self.filters.is_empty() {
            return;
        }
        let total = (self.received * self.up).div_ceil(self.down);
        self.pending.resize(self.pending.len() + self.half + 1, 0.0);
        self.produce(total, out);
    }

    fn produce(&mut self, limit: u64, out: &mut Vec<f32>) {
        let taps = 2 * self.half;
        while self.produced < limit {
            let position = self.produced * self.down;
            // `pending` begins `half` samples early, so the first weight belongs to the next sample after that.
            let start = (position / self.up + 1 - self.dropped) as usize;
            let Some(samples) = self.pending.get(start..start + taps) else { break };
            let filter = (position % self.up) as usize * taps;
            let weights = &self.filters[filter..filter + taps];
            out.push(samples.iter().zip(weights).map(|(sample, weight)| sample * weight).sum());
            self.produced += 1;
        }
        let needed = (self.produced * self.down / self.up + 1).saturating_sub(self.dropped) as usize;
        let done = needed.min(self.pending.len());
        self.pending.drain(..done);
        self.dropped += done as u64;
    }
}

/// Returns the weights for each place between two samples. Each place's weights add up to 1.
fn filters(up: u64, half: usize, cutoff: f64) -> Vec<f32> {
    let mut filters = Vec::with_capacity(up as usize * 2 * half);
    for place in 0..up {
        let offset = place as f64 / up as f64;
        let weights: Vec<f64> = (0..2 * half)
            .map(|tap| {
                let at = tap as f64 + 1.0 - half as f64 - offset;
                let around = 1.0 - (at / half as f64).powi(2);
                sinc(at * cutoff) * bessel(KAISER_BETA * around.max(0.0).sqrt())
            })
            .collect();
        let sum: f64 = weights.iter().sum();
        filters.extend(weights.iter().map(|weight| (weight / sum) as f32));
    }
    filters
}

fn sinc(x: f64) -> f64 {
    if x == 0.0 { 1.0 } else { (PI * x).sin() / (PI * x) }
}

/// Returns the modified Bessel function of order 0, by its series.
fn bessel(x: f64) -> f64 {
    let (mut sum, mut term, mut n) = (1.0, 1.0, 1.0);
    while term > sum * 1e-12 {
        term *= (x / 2.0 / n).powi(2);
        sum += term;
        n += 1.0;
    }
    sum
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use std::f64::consts::TAU;

    use super::*;

    /// Returns one second of a tone, resampled in pieces of `piece` samples.
    fn resampled(from: u32, to: u32, hertz: f64, piece: usize) -> Vec<f32> {
        let tone: Vec<f32> = (0..from).map(|n| (f64::from(n) / f64::from(from) * hertz * TAU).sin() as f32).collect();
        let mut resampler = Resampler::new(SampleRate(from), SampleRate(to));
        let mut out = Vec::new();
        tone.chunks(piece).for_each(|piece| resampler.push(piece, &mut out));
        resampler.finish(&mut out);
        out
    }

    #[test]
    fn a_tone_keeps_its_height_level_and_place() {
        for (from, piece) in [(48_000, 480), (44_100, 1_000), (22_050, 7), (8_000, 8_000), (16_000, 100)] {
            let out = resampled(from, 16_000, 1_000.0, piece);
            assert_eq!(out.len(), 16_000, "{from}");
            let worst = out
                .iter()
                .enumerate()
                .skip(200)
                .take(15_600)
                .map(|(n, sample)| (f64::from(*sample) - (n as f64 / 16_000.0 * 1_000.0 * TAU).sin()).abs());
            assert!(worst.fold(0.0, f64::max) < 1e-3, "{from}");
        }
    }

    #[test]
    fn a_tone_above_half_the_rate_is_gone() {
        let out = resampled(48_000, 16_000, 11_000.0, 480);
        assert!(out.iter().skip(200).take(15_600).all(|sample| sample.abs() < 1e-3));
    }
}
