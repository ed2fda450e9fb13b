//! The level of a piece of speech, and the silence around it.

use std::ops::Range;

use azera_voice_api::SampleRate;

/// The level of speech, as the root mean square of its loud frames: 20 dB below full scale.
const SPEECH_RMS: f32 = 0.1;
/// The highest sample: 1 dB below full scale.
const PEAK: f32 = 0.89;
/// The least and the greatest gain. A piece beyond them is no speech at a sane level.
const GAIN: std::ops::RangeInclusive<f32> = 0.1..=8.0;
/// A frame counts as loud if it is at most this much quieter than the loudest one: 25 dB.
const LOUD_SHARE: f32 = 0.056;
/// A sample is silence below this share of the peak.
const SILENCE_SHARE: f32 = 0.01;
/// Seconds of a frame.
const FRAME_S: f32 = 0.02;
/// Seconds that stay before the first and after the last audible sample.
const MARGIN_S: f32 = 0.03;
/// Seconds over which both ends fade.
const FADE_S: f32 = 0.005;

/// Returns how many samples last this many seconds.
pub fn samples(rate: SampleRate, seconds: f32) -> usize {
    (seconds * rate.0 as f32) as usize
}

/// Removes the silence at both ends, brings speech to an even level without clipping, and adds a pause of this many
/// seconds. Returns how many samples were removed from the beginning, too.
pub fn finish(sound: &[f32], rate: SampleRate, pause_s: f32) -> (usize, Vec<f32>) {
    let kept = trim(sound, rate);
    let mut speech = sound.get(kept.clone()).unwrap_or_default().to_vec();
    let gain = gain(&speech, rate);
    speech.iter_mut().for_each(|sample| *sample *= gain);
    let fade = samples(rate, FADE_S).min(speech.len() / 2);
    let last = speech.len().saturating_sub(1);
    for index in 0..fade {
        let share = index as f32 / fade as f32;
        for index in [index, last - index] {
            if let Some(sample) = speech.get_mut(index) {
                *sample *= share;
            }
        }
    }
    speech.resize(speech.len() + samples(rate, pause_s), 0.0);
    (kept.start, speech)
}

fn peak(sound: &[f32]) -> f32 {
    sound.iter().fold(0.0, |peak, sample| peak.max(sample.abs()))
}

/// Returns which samples stay without the silence at both ends.
fn trim(sound: &[f32], rate: SampleRate) -> Range<usize> {
    let silence = peak(sound) * SILENCE_SHARE;
    let is_audible = |sample: &f32| sample.abs() > silence;
    let Some(first) = sound.iter().position(is_audible) else { return 0..0 };
    let last = sound.iter().rposition(is_audible).unwrap_or(first);
    let margin = samples(rate, MARGIN_S);
    first.saturating_sub(margin)..(last + 1 + margin).min(sound.len())
}

/// Returns the gain that brings speech to [`SPEECH_RMS`] and keeps its peak at or below [`PEAK`].
fn gain(speech: &[f32], rate: SampleRate) -> f32 {
    let frame = samples(rate, FRAME_S).max(1);
    let powers: Vec<f32> =
        speech.chunks(frame).map(|frame| frame.iter().map(|s| s * s).sum::<f32>() / frame.len() as f32).collect();
    let loudest = powers.iter().copied().fold(0.0, f32::max);
    let loud = || powers.iter().filter(|power| **power >= loudest * LOUD_SHARE * LOUD_SHARE);
    let rms = (loud().sum::<f32>() / loud().count().max(1) as f32).sqrt();
    if rms <= 0.0 {
        return 1.0;
    }
    (SPEECH_RMS / rms).clamp(*GAIN.start(), *GAIN.end()).min(PEAK / peak(speech))
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: SampleRate = SampleRate(22_050);

    /// Returns half a second of silence, a second of a tone and half a second of silence.
    fn tone(level: f32) -> Vec<f32> {
        let silence = vec![0.0; 11_025];
        let tone = (0..22_050).map(|n| level * (n as f32 * 0.06).sin());
        [silence.clone(), tone.collect(), silence].concat()
    }

    #[test]
    fn quiet_and_loud_speech_come_to_one_level() {
        for level in [0.03, 0.3, 0.99] {
            let (_, sound) = finish(&tone(level), RATE, 0.0);
            let rms = (sound.iter().map(|s| s * s).sum::<f32>() / sound.len() as f32).sqrt();
            assert!((0.09..0.11).contains(&rms), "{level}: {rms}");
        }
    }

    #[test]
    fn a_lone_click_does_not_clip() {
        let mut sound = tone(0.02);
        sound[20_000] = 0.9;
        assert!(peak(&finish(&sound, RATE, 0.0).1) <= PEAK + 1e-6);
    }

    #[test]
    fn silence_around_speech_becomes_the_pause() {
        let (removed, sound) = finish(&tone(0.3), RATE, 0.25);
        let seconds = sound.len() as f32 / 22_050.0;
        assert!((1.25..1.33).contains(&seconds), "{seconds}");
        let removed = removed as f32 / 22_050.0;
        assert!((0.46..0.48).contains(&removed), "half a second without the margin: {removed}");
        assert!(sound.iter().rev().take(samples(RATE, 0.25)).all(|sample| *sample == 0.0));
    }

    #[test]
    fn silence_stays_silence() {
        assert_eq!(finish(&[0.0; 1_000], RATE, 0.0), (0, Vec::new()));
        assert!(finish(&[], RATE, 0.1).1.iter().all(|sample| *sample == 0.0));
    }
}
