//! The level of a piece of speech, and the silence around it.

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

/// Seconds over which the gain glides to a better one.
const GLIDE_S: f32 = 0.15;

/// Returns how many samples last this many seconds.
pub fn samples(rate: SampleRate, seconds: f32) -> usize {
    (seconds * rate.0 as f32) as usize
}

/// Levels a whole sound, and adds a pause of this many seconds. See [`Leveller`].
pub fn finish(sound: &[f32], rate: SampleRate, pause_s: f32) -> Vec<f32> {
    let mut leveller = Leveller::new(rate);
    let mut levelled = leveller.push(sound);
    levelled.extend(leveller.finish(pause_s));
    levelled
}

/// Removes the silence at both ends of a sound and brings speech to an even level without clipping, while the sound is
/// still being made. The level is that of all sound so far: as more is known, the gain glides to a better one.
pub struct Leveller {
    rate: SampleRate,
    /// The sound from shortly before its first audible sample.
    speech: Vec<f32>,
    has_begun: bool,
    removed: usize,
    /// How many samples of `speech` were returned.
    given: usize,
    /// The gain of the last of them.
    gain: Option<f32>,
}

impl Leveller {
    /// Returns a leveller for sound of this rate.
    pub fn new(rate: SampleRate) -> Self {
        Self { rate, speech: Vec::new(), has_begun: false, removed: 0, given: 0, gain: None }
    }

    /// Returns how many samples were removed from the beginning.
    pub fn removed(&self) -> usize {
        self.removed
    }

    /// Takes in the next part of the sound, and returns what is ready. What may be silence at the end waits.
    pub fn push(&mut self, sound: &[f32]) -> Vec<f32> {
        self.speech.extend_from_slice(sound);
        if !self.has_begun {
            let silence = self.silence();
            let Some(first) = self.speech.iter().position(|sample| sample.abs() > silence) else { return Vec::new() };
            self.removed = first.saturating_sub(samples(self.rate, MARGIN_S));
            self.speech.drain(..self.removed);
            self.has_begun = true;
        }
        let fade = samples(self.rate, FADE_S);
        self.give(self.audible_end().min(self.speech.len().saturating_sub(fade)))
    }

    /// Returns the rest of the sound, and a pause of this many seconds.
    pub fn finish(mut self, pause_s: f32) -> Vec<f32> {
        let mut rest = if self.has_begun { self.give(self.kept_end()) } else { Vec::new() };
        let fade = samples(self.rate, FADE_S).min(rest.len());
        for (index, sample) in rest.iter_mut().rev().take(fade).enumerate() {
            *sample *= index as f32 / fade as f32;
        }
        rest.resize(rest.len() + samples(self.rate, pause_s), 0.0);
        rest
    }

    /// Returns the samples that were not returned so far, up to this one.
    fn give(&mut self, until: usize) -> Vec<f32> {
        let gain = gain(self.speech.get(..self.kept_end()).unwrap_or_default(), self.rate);
        let fresh = self.speech.get(self.given..until).unwrap_or_default();
        let (before, fade) = (self.gain.unwrap_or(gain), samples(self.rate, FADE_S).max(1));
        let glide = samples(self.rate, GLIDE_S).max(1);
        let gain_at = |done: usize| before + (gain - before) * (done as f32 / glide as f32).min(1.0);
        let level = |(index, sample): (usize, &f32)| {
            let fade_in = ((self.given + index) as f32 / fade as f32).min(1.0);
            // Only a gain from before a louder part can reach the limit.
            (sample * gain_at(index + 1)).clamp(-PEAK, PEAK) * fade_in
        };
        let levelled: Vec<f32> = fresh.iter().enumerate().map(level).collect();
        if !levelled.is_empty() {
            self.gain = Some(gain_at(levelled.len()));
            self.given = until;
        }
        levelled
    }

    fn silence(&self) -> f32 {
        peak(&self.speech) * SILENCE_SHARE
    }

    /// Returns the end of the last audible sample.
    fn audible_end(&self) -> usize {
        let silence = self.silence();
        self.speech.iter().rposition(|sample| sample.abs() > silence).map_or(0, |last| last + 1)
    }

    /// Returns the end of what stays if nothing follows.
    fn kept_end(&self) -> usize {
        (self.audible_end() + samples(self.rate, MARGIN_S)).min(self.speech.len()).max(self.given)
    }
}

fn peak(sound: &[f32]) -> f32 {
    sound.iter().fold(0.0, |peak, sample| peak.max(sample.abs()))
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

    /// Levels a sound that comes in parts of this many samples. Returns how many were removed at the beginning, too.
    fn levelled(sound: &[f32], part: usize, pause_s: f32) -> (usize, Vec<f32>) {
        let mut leveller = Leveller::new(RATE);
        let mut levelled: Vec<f32> = sound.chunks(part).flat_map(|part| leveller.push(part)).collect();
        let removed = leveller.removed();
        levelled.extend(leveller.finish(pause_s));
        (removed, levelled)
    }

    /// Returns half a second of silence, a second of a tone and half a second of silence.
    fn tone(level: f32) -> Vec<f32> {
        let silence = vec![0.0; 11_025];
        let tone = (0..22_050).map(|n| level * (n as f32 * 0.06).sin());
        [silence.clone(), tone.collect(), silence].concat()
    }

    #[test]
    fn quiet_and_loud_speech_come_to_one_level() {
        for level in [0.03, 0.3, 0.99] {
            let sound = finish(&tone(level), RATE, 0.0);
            let rms = (sound.iter().map(|s| s * s).sum::<f32>() / sound.len() as f32).sqrt();
            assert!((0.09..0.11).contains(&rms), "{level}: {rms}");
        }
    }

    #[test]
    fn a_lone_click_does_not_clip() {
        let mut sound = tone(0.02);
        sound[20_000] = 0.9;
        assert!(peak(&finish(&sound, RATE, 0.0)) <= PEAK + 1e-6);
    }

    #[test]
    fn silence_around_speech_becomes_the_pause() {
        let (removed, sound) = levelled(&tone(0.3), usize::MAX, 0.25);
        let seconds = sound.len() as f32 / 22_050.0;
        assert!((1.25..1.33).contains(&seconds), "{seconds}");
        let removed = removed as f32 / 22_050.0;
        assert!((0.46..0.48).contains(&removed), "half a second without the margin: {removed}");
        assert!(sound.iter().rev().take(samples(RATE, 0.25)).all(|sample| *sample == 0.0));
    }

    #[test]
    fn silence_stays_silence() {
        assert!(finish(&[0.0; 1_000], RATE, 0.0).is_empty());
        assert!(finish(&[], RATE, 0.1).iter().all(|sample| *sample == 0.0));
    }

    #[test]
    fn sound_in_parts_keeps_its_silence_and_comes_to_the_same_level() {
        let sound = [tone(0.3), tone(0.3)].concat();
        let (removed, whole) = levelled(&sound, usize::MAX, 0.25);
        for part in [1_000, 11_025, 30_000] {
            let (removed_in_parts, parts) = levelled(&sound, part, 0.25);
            assert_eq!((removed_in_parts, parts.len()), (removed, whole.len()), "{part}");
            let apart = whole.iter().zip(&parts).map(|(whole, part)| (whole - part).abs()).fold(0.0, f32::max);
            assert!(apart < 0.02, "{part}: {apart}");
        }
    }

    #[test]
    fn a_loud_part_behind_a_quiet_one_does_not_clip_and_does_not_jump() {
        let sound = [tone(0.05), tone(0.8)].concat();
        let (_, parts) = levelled(&sound, 22_050, 0.0);
        assert!(peak(&parts) <= PEAK);
        let jump = parts.windows(2).map(|pair| (pair[1] - pair[0]).abs()).fold(0.0, f32::max);
        assert!(jump < 0.1, "{jump}");
    }
}
