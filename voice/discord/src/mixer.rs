//! Mixes what people in a call say, and what the bot says, into one sound by the clock.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use azera_voice_api::Audio;
use azera_voice_opus::NOTE_RATE;
use azera_voice_recordings::Resampler;
use azera_voice_room::{Frame, JitterBuffer, Sound, StreamId};
use opus2::{Channels, Decoder};

use crate::garble::Garble;

/// How long sound waits for other sound of the same moment, which a network may bring later.
const DELAY: Duration = Duration::from_millis(300);

/// How far the sound of one stream may lie before the clock. Senders send no faster than they speak.
const FARTHEST: u64 = 48_000;

/// Samples of 20 ms.
const STEP: usize = 960;

/// Samples of the longest packet, 120 ms.
const LONGEST: usize = 5_760;

/// The longest loss that is concealed, in steps. What is beyond it becomes silence.
const CONCEALED: usize = 5;

/// Most streams that are mixed.
const MAX_STREAMS: usize = 100;

/// What happens to the bot's own sound.
pub(crate) enum OwnEvent {
    /// A piece begins to play.
    Play(Audio),
    /// The piece pauses.
    Hold,
    /// It goes on.
    GoOn,
    /// It ends before its end.
    Stop,
}

/// Mixes sound. Times are those of one clock; positions are samples at [`NOTE_RATE`] since the stretch began.
#[derive(Default)]
pub(crate) struct Mixer {
    began: Duration,
    /// Samples of the stretch that were taken.
    taken: u64,
    /// The sound after these.
    ahead: VecDeque<f32>,
    streams: HashMap<StreamId, Stream>,
    own: OwnVoice,
}

impl Mixer {
    /// Begins a stretch at a time, and drops what was not taken of the one before.
    pub(crate) fn begin(at: Duration) -> Self {
        Self { began: at, ..Self::default() }
    }

    fn position(&self, at: Duration) -> u64 {
        NOTE_RATE.samples(at.saturating_sub(self.began)) as u64
    }

    /// Adds a packet of somebody, which came at a time.
    pub(crate) fn sound(&mut self, id: StreamId, sound: Sound, at: Duration) {
        if self.streams.len() >= MAX_STREAMS && !self.streams.contains_key(&id) {
            return;
        }
        let stream = match self.streams.entry(id) {
            std::collections::hash_map::Entry::Occupied(known) => known.into_mut(),
            std::collections::hash_map::Entry::Vacant(new) => match Stream::new() {
                Ok(stream) => new.insert(stream),
                Err(error) => return tracing::error!(%error, "cannot decode a stream for a recording"),
            },
        };
        if stream.garble.look(sound.payload()) {
            return;
        }
        stream.buffer.push(sound, at);
        self.decode(at);
    }

    /// Takes in what happens to the bot's own sound at a time.
    pub(crate) fn own(&mut self, event: OwnEvent, at: Duration) {
        self.own.events.push_back((self.position(at), event));
    }

    /// Decodes what can be decoded by now.
    fn decode(&mut self, at: Duration) {
        let (now, taken) = (self.position(at), self.taken);
        for stream in self.streams.values_mut() {
            while let Some(frame) = stream.buffer.pop(at) {
                let Some((start, samples)) = stream.decode(frame, now, taken) else { continue };
                let first = usize::try_from(start - taken).unwrap_or_default();
                let needed = first + samples.len();
                if self.ahead.len() < needed {
                    self.ahead.resize(needed, 0.0);
                }
                for (mixed, sample) in self.ahead.range_mut(first..needed).zip(samples) {
                    *mixed += sample;
                }
            }
        }
    }

    /// Returns the sound that is whole at a time: nothing can be added to it any more.
    pub(crate) fn take(&mut self, at: Duration) -> Vec<f32> {
        self.decode(at);
        let until = self.position(at.saturating_sub(DELAY));
        self.take_until(until)
    }

    /// Returns all sound up to a time. The stretch is over then.
    pub(crate) fn finish(mut self, at: Duration) -> Vec<f32> {
        self.decode(at);
        let until = self.position(at);
        self.take_until(until)
    }

    fn take_until(&mut self, until: u64) -> Vec<f32> {
        let count = usize::try_from(until.saturating_sub(self.taken)).unwrap_or_default();
        let mut samples: Vec<f32> = self.ahead.drain(..count.min(self.ahead.len())).collect();
        samples.resize(count, 0.0);
        self.own.add_to(&mut samples, self.taken);
        self.taken += count as u64;
        samples
    }
}

/// A stream of somebody.
struct Stream {
    buffer: JitterBuffer,
    decoder: Decoder,
    garble: Garble,
    /// Where its next sound lies, if it follows the sound before without a pause.
    next: Option<u64>,
}

impl Stream {
    fn new() -> Result<Self, opus2::Error> {
        let decoder = Decoder::new(NOTE_RATE.0, Channels::Mono)?;
        Ok(Self { buffer: JitterBuffer::default(), decoder, garble: Garble::default(), next: None })
    }

    /// Decodes a frame, and returns where its samples lie. `now` is where sound lies that comes now, and everything
    /// before `taken` was taken already.
    fn decode(&mut self, frame: Frame, now: u64, taken: u64) -> Option<(u64, Vec<f32>)> {
        let samples = match frame {
            Frame::Pause(_) => {
                self.next = None;
                return None;
            }
            Frame::Sound(sound) => self.packet(sound.payload(), LONGEST),
            Frame::Lost(lost) => {
                let steps = (lost as usize).div_ceil(STEP).min(CONCEALED);
                (0..steps).flat_map(|_| self.packet(&[], STEP)).collect()
            }
        };
        let follows = self.next.filter(|next| *next >= taken);
        let start = follows.unwrap_or_else(|| now.max(taken));
        if start > now + FARTHEST {
            return None;
        }
        self.next = Some(start + samples.len() as u64);
        Some((start, samples))
    }

    /// Decodes a packet; an empty one goes on as the sound before did. A damaged one is silent.
    fn packet(&mut self, payload: &[u8], longest: usize) -> Vec<f32> {
        let mut samples = vec![0.0; longest];
        let count = self.decoder.decode_float(payload, &mut samples, false).unwrap_or_else(|error| {
            tracing::debug!(%error, "a packet of a recording cannot be decoded");
            samples.fill(0.0);
            STEP
        });
        samples.truncate(count);
        samples
    }
}

/// The bot's own sound.
#[derive(Default)]
struct OwnVoice {
    /// What is left of the piece that plays.
    piece: VecDeque<f32>,
    is_held: bool,
    /// What happens next, and where.
    events: VecDeque<(u64, OwnEvent)>,
}

impl OwnVoice {
    /// Adds it to sound that begins at a position.
    fn add_to(&mut self, samples: &mut [f32], from: u64) {
        let (mut done, end) = (0, from + samples.len() as u64);
        while let Some((at, event)) = self.events.pop_front_if(|(at, _)| *at < end) {
            let until = usize::try_from(at.saturating_sub(from)).unwrap_or_default();
            self.play(samples.get_mut(done..until).unwrap_or_default());
            done = done.max(until);
            self.on(event);
        }
        self.play(samples.get_mut(done..).unwrap_or_default());
    }

    fn play(&mut self, samples: &mut [f32]) {
        if self.is_held {
            return;
        }
        let count = samples.len().min(self.piece.len());
        for (mixed, sample) in samples.iter_mut().zip(self.piece.drain(..count)) {
            *mixed += sample;
        }
    }

    fn on(&mut self, event: OwnEvent) {
        match event {
            OwnEvent::Play(audio) => {
                let mut resampled = Vec::new();
                let mut resampler = Resampler::new(audio.rate, NOTE_RATE);
                resampler.push(&audio.samples, &mut resampled);
                resampler.finish(&mut resampled);
                self.is_held = false;
                // The end of the piece before may still be due.
                self.piece.extend(resampled);
            }
            OwnEvent::Hold => self.is_held = true,
            OwnEvent::GoOn => self.is_held = false,
            OwnEvent::Stop => {
                self.piece.clear();
                self.is_held = false;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use azera_types::PersonId;
    use azera_voice_api::SampleRate;
    use azera_voice_room::{Gate, SealedPacket};
    use opus2::{Application, Encoder};

    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// Returns packets of 20 ms of a tone.
    fn tone(hertz: f32, packets: u16) -> Vec<Sound> {
        let ann = PersonId::new("ann").unwrap();
        let mut gate = Gate::default();
        gate.decide(ann.clone(), Some(true));
        let mut encoder = Encoder::new(48_000, Channels::Mono, Application::Audio).unwrap();
        let sample = |at: usize| (at as f32 * hertz / 48_000.0 * std::f32::consts::TAU).sin() * 0.3;
        let mut packet = |number: u16| {
            let start = usize::from(number) * STEP;
            let samples: Vec<f32> = (start..start + STEP).map(sample).collect();
            let payload = encoder.encode_vec_float(&samples, 4_000).unwrap();
            gate.admit(Some(&ann), SealedPacket::new(number, u32::from(number) * 960, payload)).unwrap()
        };
        (0..packets).map(&mut packet).collect()
    }

    /// Returns how strong a tone is in some sound.
    fn strength(sound: &[f32], hertz: f32) -> f32 {
        let turn = |at: usize| at as f32 * hertz / 48_000.0 * std::f32::consts::TAU;
        let sum = |wave: fn(f32) -> f32| sound.iter().enumerate().map(|(at, s)| s * wave(turn(at))).sum::<f32>();
        sum(f32::sin).hypot(sum(f32::cos)) * 2.0 / sound.len() as f32
    }

    /// Feeds streams of packets, each from a moment on, and returns the sound of `until` milliseconds.
    fn mixed(streams: Vec<(u64, Vec<Sound>)>, own: Vec<(u64, OwnEvent)>, until: u64) -> Vec<f32> {
        let mut mixer = Mixer::begin(ms(1_000));
        let mut waiting: Vec<_> = streams.into_iter().map(|(from, sounds)| (from, VecDeque::from(sounds))).collect();
        let mut own = VecDeque::from(own);
        let mut sound = Vec::new();
        for at in (0..until).step_by(10) {
            for (number, (from, sounds)) in waiting.iter_mut().enumerate() {
                if at >= *from
                    && (at - *from).is_multiple_of(20)
                    && let Some(packet) = sounds.pop_front()
                {
                    mixer.sound(StreamId(number as u64), packet, ms(1_000 + at));
                }
            }
            while let Some((_, event)) = own.pop_front_if(|(when, _)| *when <= at) {
                mixer.own(event, ms(1_000 + at));
            }
            sound.extend(mixer.take(ms(1_000 + at)));
        }
        sound.extend(mixer.finish(ms(1_000 + until)));
        sound
    }

    #[test]
    fn people_who_talk_at_the_same_time_are_both_there() {
        let sound = mixed(vec![(0, tone(440.0, 100)), (500, tone(1_000.0, 50))], Vec::new(), 2_500);
        assert_eq!(sound.len(), 120_000);
        let second = |from: usize| &sound[from * 480..(from + 30) * 480];
        assert!(strength(second(10), 440.0) > 0.2 && strength(second(10), 1_000.0) < 0.02);
        assert!(strength(second(80), 440.0) > 0.2 && strength(second(80), 1_000.0) > 0.2);
        assert!(strength(second(215), 440.0) < 0.02, "both fell silent");
    }

    #[test]
    fn a_silence_of_the_sender_stays_as_long_as_it_was() {
        let mut first = tone(440.0, 100);
        let second = first.split_off(50);
        let mut mixer = Mixer::begin(Duration::ZERO);
        let mut sound = Vec::new();
        for (from, packets) in [(0, first), (3_000, second)] {
            for (number, packet) in packets.into_iter().enumerate() {
                let at = ms(from + number as u64 * 20);
                mixer.sound(StreamId(1), packet, at);
                sound.extend(mixer.take(at));
            }
        }
        sound.extend(mixer.finish(ms(4_000)));
        let part = |from: usize| &sound[from * 48..(from + 500) * 48];
        assert!(strength(part(200), 440.0) > 0.2);
        assert!(strength(part(1_500), 440.0) < 0.02);
        assert!(strength(part(3_300), 440.0) > 0.2);
    }

    #[test]
    fn the_bots_own_sound_is_there_as_far_as_it_was_played() {
        let sample = |at: usize| (at as f32 * 600.0 / 24_000.0 * std::f32::consts::TAU).sin() * 0.3;
        let audio = Audio { rate: SampleRate(24_000), samples: (0..48_000).map(sample).collect() };
        let own = vec![
            (500, OwnEvent::Play(audio)),
            (1_000, OwnEvent::Hold),
            (1_500, OwnEvent::GoOn),
            (2_000, OwnEvent::Stop),
        ];
        let sound = mixed(Vec::new(), own, 3_000);
        let part = |from: usize| strength(&sound[from * 48..(from + 300) * 48], 600.0);
        assert!(part(100) < 0.01 && part(600) > 0.25, "{} {}", part(100), part(600));
        assert!(part(1_100) < 0.01 && part(1_600) > 0.25, "{} {}", part(1_100), part(1_600));
        assert!(part(2_100) < 0.01, "{}", part(2_100));
    }

    #[test]
    fn a_sender_that_is_too_fast_takes_no_memory() {
        let mut mixer = Mixer::begin(Duration::ZERO);
        for packet in tone(440.0, 2_000) {
            mixer.sound(StreamId(1), packet, ms(100));
        }
        assert!(mixer.ahead.len() < 2 * 48_000 + LONGEST, "{}", mixer.ahead.len());
    }
}
