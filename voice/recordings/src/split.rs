//! Cuts long sound at quiet places.

use std::ops::Range;

use azera_voice_api::{Audio, SampleRate};

/// Length of the pieces whose loudness is compared, in thousandths of a second.
const PIECE_MS: usize = 20;
/// Pieces of one quiet place: 300 ms.
const QUIET_PIECES: usize = 15;
/// A part ends in its second half, so that few words are cut where nothing is quiet.
const SHORTEST: f32 = 0.5;

/// Returns the parts of the sound, each of at most `most_seconds`. They follow each other without gaps. Each but the
/// last ends in the middle of the quietest place of its second half.
pub fn split(audio: &Audio, most_seconds: f32) -> Vec<Range<usize>> {
    let SampleRate(rate) = audio.rate;
    let piece = (rate as usize * PIECE_MS / 1_000).max(1);
    let most = ((most_seconds * rate as f32) as usize).max(piece * QUIET_PIECES * 4);
    let mut parts = Vec::new();
    let mut start = 0;
    while audio.samples.len() - start > most {
        let earliest = start + (most as f32 * SHORTEST) as usize;
        let end = earliest + quietest(&audio.samples[earliest..start + most], piece);
        parts.push(start..end);
        start = end;
    }
    parts.push(start..audio.samples.len());
    parts
}

/// Returns the middle of the quietest place. The last of several counts.
fn quietest(samples: &[f32], piece: usize) -> usize {
    let energies: Vec<f32> =
        samples.chunks(piece).map(|piece| piece.iter().map(|sample| sample * sample).sum()).collect();
    let places = energies.windows(QUIET_PIECES).map(|place| place.iter().sum::<f32>()).enumerate();
    let quietest = places.min_by(|(a_at, a), (b_at, b)| a.total_cmp(b).then(b_at.cmp(a_at)));
    quietest.map_or(samples.len(), |(at, _)| (at + QUIET_PIECES / 2) * piece)
}

#[cfg(test)]
mod tests {
    use azera_voice_api::RECOGNITION_RATE;

    use super::*;

    const SECOND: usize = RECOGNITION_RATE.0 as usize;

    fn sound(samples: Vec<f32>) -> Audio {
        Audio { rate: RECOGNITION_RATE, samples }
    }

    #[test]
    fn long_sound_is_cut_where_it_is_quiet() {
        let mut samples = vec![0.5; 50 * SECOND];
        samples[22 * SECOND..23 * SECOND].fill(0.01);
        let parts = split(&sound(samples), 29.0);
        let [first, second] = &parts[..] else { panic!("{parts:?}") };
        assert!((22 * SECOND..23 * SECOND).contains(&first.end), "{first:?}");
        assert_eq!((first.start, second.start, second.end), (0, first.end, 50 * SECOND));
    }

    #[test]
    fn parts_are_short_enough_and_cover_everything() {
        for seconds in [0, 1, 29, 30, 61, 200] {
            let parts = split(&sound(vec![0.1; seconds * SECOND]), 29.0);
            assert!(parts.iter().all(|part| part.len() <= 29 * SECOND), "{seconds}");
            assert_eq!(parts.iter().map(Range::len).sum::<usize>(), seconds * SECOND);
            assert!(parts.windows(2).all(|pair| pair[0].end == pair[1].start && !pair[0].is_empty()));
        }
    }
}
