//! Decodes one track of a sound file.

use std::io;

use azera_voice_api::{Audio, RECOGNITION_RATE, SampleRate};
use azera_voice_opus::{NOTE_RATE, PacketDecoder};
use symphonia::core::audio::SampleBuffer;
use symphonia::core::codecs::{CODEC_TYPE_OPUS, Decoder, DecoderOptions};
use symphonia::core::errors::Error as SymphoniaError;
use symphonia::core::formats::{FormatReader, Packet, Track};

use crate::read::ReadError;
use crate::resample::Resampler;

/// The highest sample rate, in samples a second.
pub const MAX_RATE: u32 = 384_000;

/// The lowest rate that is read. Speech needs more, and a file of few bytes must not become hours of sound.
const MIN_RATE: u32 = 4_000;
/// The most packets in a row that may be broken before the whole file counts as broken.
const MAX_BROKEN_PACKETS: usize = 100;

/// A decoder of one codec.
enum TrackDecoder {
    Opus(Box<PacketDecoder>),
    Other(Box<dyn Decoder>),
}

/// Why a packet gives no sound.
enum PacketError {
    /// Later packets may.
    Broken(String),
    /// No packet of this file will.
    Final(ReadError),
}

impl TrackDecoder {
    fn new(track: &Track) -> Result<Self, ReadError> {
        let parameters = &track.codec_params;
        if parameters.codec == CODEC_TYPE_OPUS {
            let header = parameters.extra_data.as_deref().unwrap_or_default();
            let decoder = PacketDecoder::new(header).map_err(|error| ReadError::Damaged(error.to_string()))?;
            return Ok(Self::Opus(Box::new(decoder)));
        }
        let decoder = symphonia::default::get_codecs().make(parameters, &DecoderOptions::default());
        Ok(Self::Other(decoder.map_err(damaged)?))
    }

    /// Returns the sound of a packet, mixed to one channel, and its rate.
    fn decode(&mut self, packet: &Packet) -> Result<(Vec<f32>, SampleRate), PacketError> {
        match self {
            Self::Opus(decoder) => {
                let mut mono = Vec::new();
                decoder.push(&packet.data, &mut mono).map_err(|error| PacketError::Broken(error.to_string()))?;
                Ok((mono, NOTE_RATE))
            }
            Self::Other(decoder) => {
                let decoded = decoder.decode(packet).map_err(|error| match error {
                    SymphoniaError::DecodeError(_) | SymphoniaError::IoError(_) => {
                        PacketError::Broken(error.to_string())
                    }
                    error => PacketError::Final(damaged(error)),
                })?;
                let spec = *decoded.spec();
                if !(MIN_RATE..=MAX_RATE).contains(&spec.rate) {
                    let why = format!("it has {} samples a second", spec.rate);
                    return Err(PacketError::Final(ReadError::Damaged(why)));
                }
                let mut buffer = SampleBuffer::<f32>::new(decoded.capacity() as u64, spec);
                buffer.copy_interleaved_ref(decoded);
                Ok((mix(buffer.samples(), spec.channels.count()), SampleRate(spec.rate)))
            }
        }
    }
}

/// Decodes all packets of a track, and resamples to this rate on the way. Without one, the first packet's counts.
pub fn decode(
    format: &mut dyn FormatReader,
    track: &Track,
    rate: Option<SampleRate>,
    most_seconds: usize,
) -> Result<Audio, ReadError> {
    let mut target = rate;
    let mut decoder = TrackDecoder::new(track)?;
    let mut out = Vec::new();
    let mut resampler: Option<Resampler> = None;
    let mut broken = 0;
    loop {
        let packet = match format.next_packet() {
            Ok(packet) if packet.track_id() == track.id => packet,
            Ok(_) => continue,
            Err(SymphoniaError::IoError(error)) if error.kind() == io::ErrorKind::UnexpectedEof => break,
            // A cut file ends in the middle of something. What came before it is sound.
            Err(_) if !out.is_empty() => break,
            Err(error) => return Err(damaged(error)),
        };
        let (mono, rate) = match decoder.decode(&packet) {
            Ok(decoded) => decoded,
            Err(PacketError::Broken(_)) if broken < MAX_BROKEN_PACKETS => {
                broken += 1;
                continue;
            }
            Err(PacketError::Broken(why)) => return Err(ReadError::Damaged(why)),
            Err(PacketError::Final(error)) => return Err(error),
        };
        broken = 0;
        let target = *target.get_or_insert(rate);
        let resampler = resampler.get_or_insert_with(|| Resampler::new(rate, target));
        // Asked before the samples are made: a small packet may hold hours of silence.
        let more = rate.duration(mono.len()).as_secs_f64() * f64::from(target.0);
        if out.len() as f64 + more > (most_seconds * target.0 as usize) as f64 {
            return Err(ReadError::TooLong(most_seconds));
        }
        resampler.push(&mono, &mut out);
    }
    if let Some(resampler) = resampler {
        resampler.finish(&mut out);
    } else if broken > 0 {
        return Err(ReadError::Damaged("none of its packets can be decoded".into()));
    }
    Ok(Audio { rate: target.unwrap_or(RECOGNITION_RATE), samples: out })
}

/// Returns the mean of all channels. Numbers that are none count as silence.
fn mix(interleaved: &[f32], channels: usize) -> Vec<f32> {
    let channels = channels.max(1);
    let mean = |frame: &[f32]| {
        let mean = frame.iter().sum::<f32>() / channels as f32;
        if mean.is_finite() { mean.clamp(-1.0, 1.0) } else { 0.0 }
    };
    interleaved.chunks_exact(channels).map(mean).collect()
}

fn damaged(error: SymphoniaError) -> ReadError {
    ReadError::Damaged(error.to_string())
}
