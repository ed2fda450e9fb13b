//! Decodes one stream, and finds speech in it.

use std::time::Duration;

use azera_voice_api::{FRAME_SAMPLES, VoiceActivity};
use azera_voice_room::{Frame, JitterBuffer, Sound};
use opus2::{Channels, Decoder};

use crate::garble::Garble;

/// The rate of recognition; Opus decodes to it directly.
const RATE: u32 = 16_000;

/// Samples at 48 kHz for one at [`RATE`].
const PER_SAMPLE: usize = 3;

/// Samples of the longest packet, 120 ms.
const LONGEST: usize = 1_920;

/// Samples of 20 ms.
const STEP: usize = 320;

/// The longest loss that is concealed. What is beyond it becomes silence.
const CONCEALED: usize = 5 * STEP;

/// The longest silence that the detector hears at a pause.
const PAUSE: usize = 15 * STEP;

/// One stream of a person who consented.
pub(crate) struct Ear {
    buffer: JitterBuffer,
    decoder: Decoder,
    activity: Box<dyn VoiceActivity>,
    /// Decoded samples that do not fill a frame yet.
    rest: Vec<f32>,
    pub(crate) decoded: u64,
    garble: Garble,
    /// True if the packets cannot be decrypted.
    pub(crate) is_garbled: bool,
}

/// 32 ms of sound, and the probability that it is speech.
pub(crate) type Heard = (Box<[f32; FRAME_SAMPLES]>, f32);

impl Ear {
    pub(crate) fn new(activity: Box<dyn VoiceActivity>) -> Result<Self, opus2::Error> {
        let decoder = Decoder::new(RATE, Channels::Mono)?;
        Ok(Self {
            buffer: JitterBuffer::default(),
            decoder,
            activity,
            rest: Vec::new(),
            decoded: 0,
            garble: Garble::default(),
            is_garbled: false,
        })
    }

    /// Takes in a packet.
    pub(crate) fn push(&mut self, sound: Sound, at: Duration) {
        self.is_garbled = self.garble.look(sound.payload());
        if !self.is_garbled {
            self.buffer.push(sound, at);
        }
    }

    /// Returns when the ear must be asked again for packets that wait.
    pub(crate) fn deadline(&self) -> Option<Duration> {
        self.buffer.deadline()
    }

    /// Returns what can be heard by now.
    pub(crate) fn hear(&mut self, at: Duration) -> Vec<Heard> {
        while let Some(frame) = self.buffer.pop(at) {
            match frame {
                Frame::Sound(sound) => self.decode(&sound),
                Frame::Lost(samples) => self.conceal(samples as usize / PER_SAMPLE),
                Frame::Pause(samples) => self.silence((samples as usize / PER_SAMPLE).min(PAUSE)),
            }
        }
        let mut heard = Vec::new();
        while let Some(frame) = self.rest.first_chunk::<FRAME_SAMPLES>() {
            let frame = Box::new(*frame);
            self.rest.drain(..FRAME_SAMPLES);
            // Without a verdict nothing counts as speech.
            let probability = self.activity.probability(&frame).unwrap_or_else(|error| {
                tracing::error!(%error, "cannot tell speech from other sounds");
                0.0
            });
            heard.push((frame, probability));
        }
        heard
    }

    fn decode(&mut self, sound: &Sound) {
        let mut samples = [0.0; LONGEST];
        match self.decoder.decode_float(sound.payload(), &mut samples, false) {
            Ok(count) => {
                self.decoded += 1;
                self.rest.extend(samples.iter().take(count));
            }
            Err(error) => {
                tracing::debug!(%error, "a packet cannot be decoded");
                self.conceal(STEP);
            }
        }
    }

    /// Goes on as the sound before did.
    fn conceal(&mut self, lost: usize) {
        for _ in 0..lost.min(CONCEALED).div_ceil(STEP) {
            let mut samples = [0.0; STEP];
            match self.decoder.decode_float(&[], &mut samples, false) {
                Ok(count) => self.rest.extend(samples.iter().take(count)),
                Err(_) => self.silence(STEP),
            }
        }
        self.silence(lost.saturating_sub(CONCEALED).min(PAUSE));
    }

    fn silence(&mut self, samples: usize) {
        self.rest.extend(std::iter::repeat_n(0.0, samples));
    }
}

#[cfg(test)]
mod tests {
    use azera_types::PersonId;
    use azera_voice_api::Error;
    use azera_voice_room::{Gate, SealedPacket};
    use opus2::{Application, Encoder};

    use super::*;

    /// Takes loud frames for speech.
    struct Loud;

    impl VoiceActivity for Loud {
        fn probability(&mut self, frame: &[f32; FRAME_SAMPLES]) -> Result<f32, Error> {
            Ok(level(frame).min(1.0))
        }

        fn reset(&mut self) {}
    }

    fn level(samples: &[f32]) -> f32 {
        (samples.iter().map(|sample| sample * sample).sum::<f32>() / samples.len() as f32).sqrt()
    }

    /// Encodes a tone as packets of 20 ms, as Discord's clients do.
    fn tone(packets: u16) -> Vec<SealedPacket> {
        let mut encoder = Encoder::new(48_000, Channels::Stereo, Application::Voip).unwrap();
        let encode = |number: u16| {
            let sample = |at: u32| (at as f32 * 440.0 * std::f32::consts::TAU / 48_000.0).sin() * 0.5;
            let start = u32::from(number) * 960;
            let samples: Vec<f32> = (start..start + 960).flat_map(|at| [sample(at); 2]).collect();
            SealedPacket::new(number, start, encoder.encode_vec_float(&samples, 4_000).unwrap())
        };
        (0..packets).map(encode).collect()
    }

    fn hear(packets: Vec<SealedPacket>) -> (Ear, Vec<f32>) {
        let ann = PersonId::new("ann").unwrap();
        let mut gate = Gate::default();
        gate.decide(ann.clone(), Some(true));
        let mut ear = Ear::new(Box::new(Loud)).unwrap();
        let mut samples = Vec::new();
        for (number, packet) in packets.into_iter().enumerate() {
            let at = Duration::from_millis(20 * number as u64);
            ear.push(gate.admit(Some(&ann), packet).unwrap(), at);
            samples.extend(ear.hear(at).into_iter().flat_map(|(frame, _)| *frame));
        }
        (ear, samples)
    }

    #[test]
    fn a_tone_keeps_its_level() {
        let (ear, samples) = hear(tone(100));
        assert_eq!(ear.decoded, 100);
        assert_eq!(samples.len() / FRAME_SAMPLES, 62, "two seconds");
        let level = level(&samples[8_000..]);
        assert!((level - 0.354).abs() < 0.01, "a sine of half the scale: {level}");
    }

    #[test]
    fn hours_of_talk_with_losses_keep_the_clock() {
        let hours = 2;
        let packets = hours * 3_600 * 50_u32;
        let payload = tone(2).remove(1);
        let ann = PersonId::new("ann").unwrap();
        let mut gate = Gate::default();
        gate.decide(ann.clone(), Some(true));
        let payload = gate.admit(Some(&ann), payload).unwrap().payload().to_vec();
        let mut ear = Ear::new(Box::new(Loud)).unwrap();
        let mut frames = 0_u64;
        for number in 0..packets {
            // The last packet comes, so that the end is known.
            if number % 97 == 13 && number + 1 < packets {
                continue;
            }
            let at = Duration::from_millis(20 * u64::from(number));
            let packet = SealedPacket::new(number as u16, number.wrapping_mul(960), payload.clone());
            ear.push(gate.admit(Some(&ann), packet).unwrap(), at);
            frames += ear.hear(at).len() as u64;
        }
        let samples = frames * FRAME_SAMPLES as u64 + ear.rest.len() as u64;
        let heard = Duration::from_secs_f64(samples as f64 / f64::from(RATE));
        let drift = Duration::from_secs(u64::from(hours) * 3_600).abs_diff(heard);
        println!("{hours} hours: the audio is off by {drift:?}");
        assert!(drift < Duration::from_millis(20), "{drift:?}");
    }

    #[test]
    fn losses_are_concealed_and_the_clock_is_kept() {
        let mut packets = tone(100);
        for lost in [90, 61, 60, 30] {
            packets.remove(lost);
        }
        let (ear, samples) = hear(packets);
        assert_eq!(ear.decoded, 96);
        assert_eq!(samples.len() / FRAME_SAMPLES, 62);
        assert!(samples[8_000..].chunks(FRAME_SAMPLES).all(|frame| level(frame) > 0.1), "no hole");
    }
}
