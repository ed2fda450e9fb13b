//! The Silero voice activity detector.

use std::path::Path;

use azera_voice_api::{Error, FRAME_SAMPLES, RECOGNITION_RATE, VoiceActivity};
use rten_tensor::prelude::*;
use rten_tensor::{NdTensor, Tensor};

use crate::graph::Graph;

/// The engine's name in errors.
const ENGINE: &str = "the voice activity detector";
/// How many samples before a frame the model hears again with it.
const CONTEXT: usize = 64;
/// The shape of what the model keeps between frames.
const STATE: [usize; 3] = [2, 1, 128];

/// A detector for one stream.
pub struct SileroVad {
    graph: std::sync::Arc<Graph>,
    state: Tensor<f32>,
    context: [f32; CONTEXT],
}

impl SileroVad {
    /// Loads the model.
    ///
    /// # Errors
    /// [`Error::Model`] if the file cannot be read.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let model = |why: String| Error::Model { file: path.display().to_string(), why };
        // A frame is too little work for a second thread.
        let graph = Graph::open(path, 1).map_err(model)?;
        if !["input", "state", "sr"].iter().all(|name| graph.has(name)) {
            return Err(model("it is not the Silero model for 16 kHz".to_owned()));
        }
        Ok(Self { graph: std::sync::Arc::new(graph), state: Tensor::zeros(&STATE), context: [0.0; CONTEXT] })
    }

    /// Returns a detector for another stream, which shares the model.
    #[must_use]
    pub fn for_another_stream(&self) -> Self {
        Self { graph: std::sync::Arc::clone(&self.graph), state: Tensor::zeros(&STATE), context: [0.0; CONTEXT] }
    }
}

impl VoiceActivity for SileroVad {
    fn probability(&mut self, frame: &[f32; FRAME_SAMPLES]) -> Result<f32, Error> {
        let failed = |why: String| Error::Engine { engine: ENGINE.to_owned(), why };
        let heard: Vec<f32> = self.context.iter().chain(frame).copied().collect();
        let input = NdTensor::from_data([1, heard.len()], heard);
        let inputs = vec![
            ("input", input.into()),
            ("state", self.state.view().into()),
            ("sr", Tensor::from(RECOGNITION_RATE.0 as i32).into()),
        ];
        let [output, state] = self.graph.run(inputs, ["output", "stateN"]).map_err(failed)?;
        let output: Tensor<f32> = output.try_into().map_err(|_| failed("its output is no number".to_owned()))?;
        let probability = output.iter().next().copied().filter(|p| p.is_finite());
        let state: Tensor<f32> = state.try_into().map_err(|_| failed("its state has another type".to_owned()))?;
        self.state = state;
        if let Some(last) = frame.last_chunk() {
            self.context = *last;
        }
        probability.ok_or_else(|| failed("its output is no number".to_owned()))
    }

    fn reset(&mut self) {
        self.state = Tensor::zeros(&STATE);
        self.context = [0.0; CONTEXT];
    }
}
