//! The log-mel spectrogram that Whisper was trained on: 25 ms windows every 10 ms, in mel bands on Slaney's scale.

use std::f64::consts::PI;

use azera_voice_api::{Error, RECOGNITION_RATE};

use crate::linear::{Gemm, Strided};

/// Samples from one column of the spectrogram to the next.
pub(crate) const HOP: usize = 160;
/// Samples of one window.
const WINDOW: usize = 400;
/// Frequencies of one window, from 0 to half the rate.
const FREQUENCIES: usize = WINDOW / 2 + 1;
/// The least energy that is not silence.
const FLOOR: f32 = 1e-10;
/// How far below the loudest band a band is cut off, in powers of ten.
const RANGE: f32 = 8.0;

/// Computes spectrograms.
pub(crate) struct Mel {
    bands: usize,
    /// Hann window times cosine and sine for each frequency, `[WINDOW, 2 * FREQUENCIES]`.
    fourier: Vec<f32>,
    /// The weight of each frequency in each band, `[FREQUENCIES, bands]`.
    filters: Vec<f32>,
}

impl Mel {
    /// Prepares spectrograms with this many bands.
    pub(crate) fn new(bands: usize) -> Self {
        let mut fourier = vec![0.0; WINDOW * 2 * FREQUENCIES];
        for (n, row) in fourier.chunks_exact_mut(2 * FREQUENCIES).enumerate() {
            let hann = 0.5 - 0.5 * (2.0 * PI * n as f64 / WINDOW as f64).cos();
            let (cosines, sines) = row.split_at_mut(FREQUENCIES);
            for (k, (cosine, sine)) in cosines.iter_mut().zip(sines).enumerate() {
                let angle = 2.0 * PI * ((n * k) % WINDOW) as f64 / WINDOW as f64;
                *cosine = (hann * angle.cos()) as f32;
                *sine = (hann * angle.sin()) as f32;
            }
        }
        Self { bands, fourier, filters: filters(bands) }
    }

    /// Returns the spectrogram of sound at 16 kHz, `[samples / HOP, bands]`.
    pub(crate) fn spectrogram(&self, samples: &[f32], gemm: &Gemm) -> Result<Vec<f32>, Error> {
        let frames = samples.len() / HOP;
        let padded = reflect(samples, WINDOW / 2);
        let waves = Strided { data: &padded, rows: frames, columns: WINDOW, stride: HOP };
        let spectrum = gemm.product(waves, Strided::whole(&self.fourier, 2 * FREQUENCIES))?;
        let mut energies = Vec::with_capacity(frames * FREQUENCIES);
        for row in spectrum.chunks_exact(2 * FREQUENCIES) {
            let (real, imaginary) = row.split_at(FREQUENCIES);
            energies.extend(real.iter().zip(imaginary).map(|(a, b)| a * a + b * b));
        }
        let mut mel =
            gemm.product(Strided::whole(&energies, FREQUENCIES), Strided::whole(&self.filters, self.bands))?;
        let mut loudest = f32::MIN;
        for value in &mut mel {
            *value = value.max(FLOOR).log10();
            loudest = loudest.max(*value);
        }
        for value in &mut mel {
            *value = (value.max(loudest - RANGE) + 4.0) / 4.0;
        }
        Ok(mel)
    }
}

/// Returns the samples with `edge` mirrored samples before and after. The edge sample itself is not repeated.
fn reflect(samples: &[f32], edge: usize) -> Vec<f32> {
    let at = |index: usize| samples.get(index).copied().unwrap_or(0.0);
    let before = (1..=edge).rev().map(at);
    let after = (2..edge + 2).map(|back| samples.len().checked_sub(back).map_or(0.0, at));
    before.chain(samples.iter().copied()).chain(after).collect()
}

/// Returns the triangular filters with Slaney's scale and normalisation, `[FREQUENCIES, bands]`.
fn filters(bands: usize) -> Vec<f32> {
    let highest = f64::from(RECOGNITION_RATE.0) / 2.0;
    let edges: Vec<f64> = (0..bands + 2).map(|edge| hertz(mels(highest) * edge as f64 / (bands + 1) as f64)).collect();
    let mut filters = vec![0.0; FREQUENCIES * bands];
    for (k, row) in filters.chunks_exact_mut(bands).enumerate() {
        let frequency = k as f64 * highest / (FREQUENCIES - 1) as f64;
        for (weight, edges) in row.iter_mut().zip(edges.windows(3)) {
            let [low, middle, high] = *edges else { continue };
            let rising = (frequency - low) / (middle - low);
            let falling = (high - frequency) / (high - middle);
            *weight = (rising.min(falling).max(0.0) * 2.0 / (high - low)) as f32;
        }
    }
    filters
}

/// The frequency up to which Slaney's scale is linear, and its mels there.
const LINEAR_HERTZ: f64 = 1_000.0;
const LINEAR_MELS: f64 = 15.0;

/// The natural logarithm of the step from one mel to the next above the linear part.
fn log_step() -> f64 {
    6.4_f64.ln() / 27.0
}

fn mels(hertz: f64) -> f64 {
    if hertz < LINEAR_HERTZ {
        hertz * LINEAR_MELS / LINEAR_HERTZ
    } else {
        LINEAR_MELS + (hertz / LINEAR_HERTZ).ln() / log_step()
    }
}

fn hertz(mels: f64) -> f64 {
    if mels < LINEAR_MELS {
        mels * LINEAR_HERTZ / LINEAR_MELS
    } else {
        LINEAR_HERTZ * ((mels - LINEAR_MELS) * log_step()).exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns one second of noise, the same on every machine.
    fn noise() -> Vec<f32> {
        let mut state = 1_u32;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            ((state >> 8) as f32 / (1 << 23) as f32 - 1.0) * 0.25
        };
        (0..16_000).map(|_| next()).collect()
    }

    /// The expected numbers come from the feature extractor of faster-whisper 1.2, run on the same noise.
    #[test]
    fn the_spectrogram_is_the_one_that_whisper_was_trained_on() {
        let mel = Mel::new(80).spectrogram(&noise(), &Gemm).unwrap();
        assert_eq!(mel.len(), 100 * 80);
        for (frame, band, expected) in [
            (0, 0, 0.2944),
            (0, 79, 0.7314),
            (10, 0, 0.6738),
            (50, 16, 0.6881),
            (50, 40, 0.5809),
            (75, 60, 0.6621),
            (98, 79, 0.6583),
            (99, 30, 0.8299),
        ] {
            let found = mel[frame * 80 + band];
            assert!((found - expected).abs() < 5e-4, "frame {frame}, band {band}: {found} instead of {expected}");
        }
    }

    /// The expected numbers come from the filters that OpenAI ships with Whisper; 128 bands are those of large-v3.
    #[test]
    fn the_filters_are_those_of_slaneys_scale() {
        fn check(bands: usize, sum: f32, expected: &[(usize, usize, f32)]) {
            let filters = filters(bands);
            for (frequency, band, expected) in expected {
                let found: f32 = filters[frequency * bands + band];
                assert!((found - expected).abs() < 1e-6, "{bands} bands: {frequency}, {band}: {found}");
            }
            assert!((filters.iter().sum::<f32>() - sum).abs() < 1e-4, "{bands} bands");
        }
        let of_80 = [
            (1, 0, 0.024_862_6),
            (1, 1, 0.001_990_8),
            (40, 38, 0.014_854_3),
            (75, 55, 0.003_870_8),
            (150, 72, 0.002_193_4),
            (199, 79, 0.000_448_8),
        ];
        check(80, 1.999_02, &of_80);
        let of_128 = [
            (1, 0, 0.012_374),
            (1, 1, 0.030_392_6),
            (40, 61, 0.019_425_6),
            (75, 88, 0.004_390_2),
            (150, 116, 0.006_443_7),
            (199, 127, 0.001_114_3),
        ];
        check(128, 3.190_99, &of_128);
    }
}
