//! The loudness of sound over time, as clients draw it.

use azera_voice_api::SampleRate;

/// Length of the pieces whose loudness is kept, in thousandths of a second.
const PIECE_MS: u32 = 50;

/// Follows the loudness of a stream.
#[derive(Debug, Clone)]
pub struct Waveform {
    piece: usize,
    /// The root mean square of each whole piece.
    pieces: Vec<f32>,
    /// The sum of squares of the piece under way, and its samples.
    sum: f32,
    samples: usize,
}

impl Waveform {
    /// Starts with a stream of this rate.
    pub fn new(rate: SampleRate) -> Self {
        let piece = (rate.0 * PIECE_MS / 1_000).max(1) as usize;
        Self { piece, pieces: Vec::new(), sum: 0.0, samples: 0 }
    }

    /// Adds samples.
    pub fn push(&mut self, samples: &[f32]) {
        for sample in samples {
            self.sum += sample * sample;
            self.samples += 1;
            if self.samples == self.piece {
                self.end_piece();
            }
        }
    }

    fn end_piece(&mut self) {
        if self.samples > 0 {
            self.pieces.push((self.sum / self.samples as f32).sqrt());
        }
        (self.sum, self.samples) = (0.0, 0);
    }

    /// Returns at most `most` bars from 0 to 255, each for an equal stretch of the sound. The loudest has 255, unless
    /// all is silent.
    pub fn bars(mut self, most: usize) -> Vec<u8> {
        self.end_piece();
        let count = self.pieces.len().min(most);
        let bound = |bar: usize| bar * self.pieces.len() / count.max(1);
        let loudest = |bar: usize| {
            let pieces = self.pieces.get(bound(bar)..bound(bar + 1)).unwrap_or_default();
            pieces.iter().copied().fold(0.0_f32, f32::max)
        };
        let bars: Vec<f32> = (0..count).map(loudest).collect();
        let peak = bars.iter().copied().fold(0.0_f32, f32::max);
        // Below this level nothing is heard, and a drawing of it would look like speech.
        let scale = if peak > 1e-4 { 255.0 / peak } else { 0.0 };
        bars.into_iter().map(|bar| (bar * scale).round() as u8).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_follow_the_loudness() {
        let mut waveform = Waveform::new(SampleRate(1_000));
        for level in [0.0, 0.5, 1.0, 0.25] {
            waveform.push(&[level; 100]);
        }
        assert_eq!(waveform.clone().bars(4), [0, 128, 255, 64]);
        assert_eq!(waveform.clone().bars(2), [128, 255]);
        assert_eq!(waveform.bars(100), [0, 0, 128, 128, 255, 255, 64, 64]);
    }

    #[test]
    fn silence_is_flat_and_no_sound_has_no_bars() {
        let mut waveform = Waveform::new(SampleRate(1_000));
        assert!(waveform.clone().bars(10).is_empty());
        waveform.push(&[0.0; 120]);
        assert_eq!(waveform.bars(10), [0, 0, 0]);
    }
}
