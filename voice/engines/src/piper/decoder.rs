//! The last part of a Piper model, which turns frames into sound. It can make the sound of some frames before that of the
//! others: it consists of convolutions, so a sample depends on frames near it alone.

use std::ops::Range;

use rten::Value;
use rten_tensor::prelude::*;
use rten_tensor::{NdTensor, Tensor};

use super::SPEAKER;
use crate::graph::Graph;

/// The value of the model that the last part takes: channels by frames. Voices that another program exported may have none
/// of this name.
pub const FRAMES: &str = "/Mul_7_output_0";
/// Frames on each side that the sound of a frame depends on. With as many, parts differ from the whole by rounding alone
/// (tested with the default voice).
const CONTEXT: usize = 12;
/// Frames of the first part: half a second.
const FIRST: usize = 48;
/// How many times as long each part may be as the one before.
pub const GROWTH: u32 = 4;

/// What the model knows of a text's sound before the last part.
pub struct Frames {
    /// One channel after the other.
    values: Vec<f32>,
    channels: usize,
    count: usize,
}

impl Frames {
    /// Returns the frames in a value of the model; `None` if it holds something else.
    pub fn new(value: Value) -> Option<Self> {
        let values = Tensor::<f32>::try_from(value).ok()?;
        let [1, channels, count] = *values.shape() else { return None };
        (channels > 0 && count > 0).then(|| Self { values: values.to_vec(), channels, count })
    }

    /// Returns the number of frames.
    pub fn count(&self) -> usize {
        self.count
    }

    fn range(&self, range: Range<usize>) -> NdTensor<f32, 3> {
        let length = range.len();
        let channels = self.values.chunks(self.count);
        let values = channels.flat_map(|channel| channel.get(range.clone()).unwrap_or_default().iter().copied());
        NdTensor::from_data([1, self.channels, length], values.collect::<Vec<_>>())
    }
}

/// The last part of a model that can make sound in parts.
pub struct Decoder {
    /// Samples of one frame.
    frame_samples: usize,
}

impl Decoder {
    /// Returns the decoder of a model. `None` if it cannot make the sound of one frame from `frames` alone.
    pub fn of(graph: &Graph, frames: &Frames) -> Option<Self> {
        let frame_samples = decode(graph, frames.range(0..1)).ok()?.len();
        (frame_samples > 0).then_some(Self { frame_samples })
    }

    /// Returns how many samples the sound of all these frames has.
    pub fn samples(&self, frames: &Frames) -> usize {
        frames.count * self.frame_samples
    }

    /// Makes the sound of some frames.
    pub fn sound(&self, graph: &Graph, frames: &Frames, wanted: Range<usize>) -> Result<Vec<f32>, String> {
        let from = wanted.start.saturating_sub(CONTEXT);
        let until = (wanted.end + CONTEXT).min(frames.count);
        let sound = decode(graph, frames.range(from..until))?;
        let kept = (wanted.start - from) * self.frame_samples..(wanted.end - from) * self.frame_samples;
        sound.get(kept).map(<[f32]>::to_vec).ok_or_else(|| "the sound has another length than its frames".to_owned())
    }
}

/// Returns the parts in which the sound of this many frames is made.
pub fn parts(count: usize) -> Vec<Range<usize>> {
    let (mut parts, mut from, mut length) = (Vec::new(), 0, FIRST);
    while from < count {
        // What is left would be a short part, of which most is context.
        let until = if from + length + FIRST > count { count } else { from + length };
        parts.push(from..until);
        from = until;
        length *= GROWTH as usize;
    }
    parts
}

fn decode(graph: &Graph, frames: NdTensor<f32, 3>) -> Result<Vec<f32>, String> {
    let mut inputs = vec![(FRAMES, frames.into())];
    if graph.has(SPEAKER) {
        inputs.push((SPEAKER, NdTensor::from_data([1], vec![0_i32]).into()));
    }
    let [sound] = graph.run(inputs, ["output"])?;
    Tensor::<f32>::try_from(sound).map(|sound| sound.to_vec()).map_err(|_| "its output is no sound".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_cover_all_frames_once_and_none_is_short() {
        let ends = |count| parts(count).iter().map(|part| part.end).collect::<Vec<_>>();
        assert!(ends(0).is_empty());
        assert_eq!((ends(1), ends(95), ends(96)), (vec![1], vec![95], vec![48, 96]));
        assert_eq!(ends(1_400), [48, 240, 1_008, 1_400]);
        for count in 1..3_000 {
            let parts = parts(count);
            assert!(parts.iter().all(|part| part.len() >= FIRST.min(count)), "{count}");
            let covered: Vec<usize> = parts.into_iter().flatten().collect();
            assert!(covered.into_iter().eq(0..count), "{count}");
        }
    }
}
