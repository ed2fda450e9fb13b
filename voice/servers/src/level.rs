//! Brings the voices of a server to one loudness, by EBU R128, while their sound arrives.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use azera_voice_api::SampleRate;
use ebur128::{EbuR128, Mode};

/// The loudness of speech, in LUFS. The voices on this machine speak at it, too.
const TARGET_LUFS: f64 = -20.0;
/// The highest sample: 1 dB below full scale.
const PEAK: f32 = 0.89;
/// The least and the greatest gain. Sound beyond them is no speech at a sane level.
const GAIN: std::ops::RangeInclusive<f64> = 0.1..=8.0;
/// Seconds of sound by which a voice that was never heard is measured before it sounds: one block of R128.
const FIRST_S: f32 = 0.4;
/// The share of the newest sentence in what is known of a voice.
const NEWEST: f64 = 0.3;
/// The most voices whose loudness is remembered.
const MAX_VOICES: usize = 1_000;

/// The loudness of each voice, as its sentences so far had it.
#[derive(Debug, Default)]
pub(crate) struct KnownLevels(Mutex<BTreeMap<String, f64>>);

impl KnownLevels {
    fn of(&self, voice: &str) -> Option<f64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(voice).copied()
    }

    fn learn(&self, voice: &str, lufs: f64) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MAX_VOICES && !known.contains_key(voice) {
            known.clear();
        }
        let level = known.entry(voice.to_owned()).or_insert(lufs);
        *level += (lufs - *level) * NEWEST;
    }
}

/// Levels the sound of one sentence.
pub(crate) struct Level<'a> {
    known: &'a KnownLevels,
    voice: &'a str,
    rate: SampleRate,
    meter: Option<EbuR128>,
    /// `None` until the voice is measured.
    gain: Option<f32>,
    /// What came before it was measured.
    held: Vec<f32>,
}

impl<'a> Level<'a> {
    pub(crate) fn new(known: &'a KnownLevels, voice: &'a str, rate: SampleRate) -> Self {
        let meter = EbuR128::new(1, rate.0, Mode::I).ok();
        let gain = known.of(voice).map(gain_of);
        Self { known, voice, rate, meter, gain, held: Vec::new() }
    }

    /// Takes the next samples and returns those that can sound.
    pub(crate) fn push(&mut self, samples: Vec<f32>) -> Vec<f32> {
        if let Some(meter) = &mut self.meter {
            meter.add_frames_f32(&samples).ok();
        }
        if self.gain.is_none() {
            self.held.extend(samples);
            let is_enough = self.held.len() >= (FIRST_S * self.rate.0 as f32) as usize;
            // Silence alone tells nothing.
            self.gain = if is_enough { self.measured().map(gain_of) } else { None };
            if self.gain.is_none() {
                return Vec::new();
            }
            let held = std::mem::take(&mut self.held);
            return self.leveled(held);
        }
        self.leveled(samples)
    }

    /// Returns what was held back, and remembers how loud the voice is.
    pub(crate) fn finish(mut self) -> Vec<f32> {
        if let Some(lufs) = self.measured() {
            self.known.learn(self.voice, lufs);
            self.gain.get_or_insert_with(|| gain_of(lufs));
        }
        let held = std::mem::take(&mut self.held);
        self.leveled(held)
    }

    fn measured(&self) -> Option<f64> {
        let lufs = self.meter.as_ref()?.loudness_global().ok()?;
        lufs.is_finite().then_some(lufs)
    }

    /// Applies the gain. It falls within a sentence where a peak would go beyond full scale, and does not rise again.
    fn leveled(&mut self, mut samples: Vec<f32>) -> Vec<f32> {
        let peak = samples.iter().fold(0.0_f32, |peak, sample| peak.max(sample.abs()));
        let gain = self.gain.unwrap_or(1.0).min(PEAK / peak.max(f32::MIN_POSITIVE));
        if self.gain.is_some() {
            self.gain = Some(gain);
        }
        samples.iter_mut().for_each(|sample| *sample *= gain);
        samples
    }
}

fn gain_of(lufs: f64) -> f32 {
    10_f64.powf((TARGET_LUFS - lufs) / 20.0).clamp(*GAIN.start(), *GAIN.end()) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: SampleRate = SampleRate(24_000);

    /// Returns so many seconds of a tone of 1 kHz with this level.
    fn tone(seconds: f32, rms: f32) -> Vec<f32> {
        let step = std::f32::consts::TAU * 1_000.0 / 24_000.0;
        (0..(seconds * 24_000.0) as usize).map(|n| (n as f32 * step).sin() * rms * 2.0_f32.sqrt()).collect()
    }

    /// Returns the sound in pieces as it can sound.
    fn leveled(known: &KnownLevels, voice: &str, sound: &[f32]) -> Vec<f32> {
        let mut level = Level::new(known, voice, RATE);
        let mut out: Vec<f32> = sound.chunks(1_200).flat_map(|piece| level.push(piece.to_vec())).collect();
        out.extend(level.finish());
        out
    }

    fn decibels(sound: &[f32]) -> f32 {
        10.0 * (sound.iter().map(|sample| sample * sample).sum::<f32>() / sound.len() as f32).log10()
    }

    #[test]
    fn quiet_and_loud_voices_come_to_one_level() {
        let known = KnownLevels::default();
        for (voice, rms) in [("quiet", 0.02), ("loud", 0.6), ("quiet", 0.02), ("short", 0.03)] {
            let sound = tone(if voice == "short" { 0.3 } else { 2.0 }, rms);
            let out = leveled(&known, voice, &sound);
            assert_eq!(out.len(), sound.len());
            if voice != "short" {
                assert!((decibels(&out) + 20.0).abs() < 1.0, "{voice}: {}", decibels(&out));
            }
        }
    }

    #[test]
    fn nothing_clips_and_silence_stays_silence() {
        let known = KnownLevels::default();
        leveled(&known, "v", &tone(2.0, 0.02));
        let out = leveled(&known, "v", &tone(1.0, 0.5));
        assert!(out.iter().all(|sample| sample.abs() <= PEAK + 1e-4));
        assert!(leveled(&known, "silent", &[0.0; 48_000]).iter().all(|sample| *sample == 0.0));
        assert!(leveled(&known, "empty", &[]).is_empty());
    }

    #[test]
    fn a_known_voice_sounds_at_once() {
        let known = KnownLevels::default();
        let sound = tone(1.0, 0.1);
        let begin = sound.get(..2_400).unwrap_or_default().to_vec();
        assert!(Level::new(&known, "v", RATE).push(begin.clone()).is_empty());
        leveled(&known, "v", &sound);
        assert_eq!(Level::new(&known, "v", RATE).push(begin).len(), 2_400);
    }
}
