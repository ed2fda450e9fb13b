//! Voices of Piper: VITS models that make sound from phonemes.

mod settings;

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use azera_voice_api::{Error, Piece, Style, TextToSpeech, Voice};
use azera_voice_recordings::Pitch;
use rten_tensor::NdTensor;
use rten_tensor::Tensor;
use rten_tensor::prelude::*;

use crate::graph::Graph;
use crate::pieces::Phonemes;
use crate::pronounce::{Accent, Pronouncer, Symbols};
use crate::sentence::{self, MAX_PACE, MIN_PACE, Made, pace};
use settings::Settings;

/// The engine's name.
pub(crate) const ENGINE: &str = "piper";
/// The metadata of the model file in which the model registry keeps the voice's settings.
const SETTINGS: &str = "piper_settings";
/// The value of the model that says how many frames of sound each id lasts. Voices that another program exported may have
/// none of this name.
const LENGTHS: &str = "/Ceil_output_0";
/// The greatest liveliness; above, words are slurred.
const MAX_LIVELINESS: f32 = 1.5;

/// One voice.
pub struct PiperVoice {
    graph: Graph,
    settings: Settings,
    pronouncer: Arc<Pronouncer>,
    voices: [Voice; 1],
}

impl PiperVoice {
    /// Loads a voice under an id, to run on this many threads.
    ///
    /// # Errors
    /// [`Error::Model`] if the file cannot be read, or speaks a language other than English.
    pub fn open(path: &Path, id: &str, threads: usize) -> Result<Self, Error> {
        Self::open_with(path, id, threads, Arc::new(Pronouncer::new(Accent::American)))
    }

    /// Loads a voice that shares its lexicon with others.
    pub(crate) fn open_with(path: &Path, id: &str, threads: usize, pronouncer: Arc<Pronouncer>) -> Result<Self, Error> {
        let model = |why: String| Error::Model { file: path.display().to_string(), why };
        let graph = Graph::open(path, threads).map_err(model)?;
        let text = graph.metadata(SETTINGS).ok_or_else(|| model("it has no settings of a Piper voice".to_owned()))?;
        let settings = Settings::parse(text).map_err(model)?;
        let language = settings.language();
        if !language.starts_with("en") {
            return Err(model(format!("it speaks {language}, and only English can be pronounced")));
        }
        let voice = Voice { id: id.to_owned(), language, rate: settings.rate(), engine: ENGINE.to_owned() };
        Ok(Self { graph, settings, pronouncer, voices: [voice] })
    }

    /// Makes the sound of one piece.
    fn piece(&self, phonemes: &Phonemes, style: &Style) -> Result<Piece, Error> {
        let failed = |why: String| Error::Engine { engine: ENGINE.to_owned(), why };
        let (ids, symbol_ends) = self.settings.ids(&phonemes.text);
        let length = ids.len();
        let (pitch, made_at) = Pitch::at_pace(style.pitch, pace(style), &(MIN_PACE..=MAX_PACE));
        let scales = self.settings.scales(made_at, liveliness(style));
        let mut inputs = vec![
            ("input", NdTensor::from_data([1, length], ids).into()),
            ("input_lengths", NdTensor::from_data([1], vec![length as i32]).into()),
            ("scales", NdTensor::from_data([3], scales.to_vec()).into()),
        ];
        if self.graph.has("sid") {
            inputs.push(("sid", NdTensor::from_data([1], vec![0_i32]).into()));
        }
        // One length for each id; else the value means something else.
        let as_lengths = |value| Tensor::<f32>::try_from(value).ok().filter(|lengths| lengths.len() == length);
        let (output, lengths) = if self.graph.has(LENGTHS) {
            let [output, lengths] = self.graph.run(inputs, ["output", LENGTHS]).map_err(failed)?;
            (output, as_lengths(lengths))
        } else {
            let [output] = self.graph.run(inputs, ["output"]).map_err(failed)?;
            (output, None)
        };
        let samples = Tensor::<f32>::try_from(output).map_err(|_| sentence::no_sound(ENGINE))?.to_vec();
        let ends = lengths.and_then(|lengths| sentence::shares(&lengths.to_vec(), &symbol_ends, &phonemes.word_ends));
        let [Voice { rate, .. }] = self.voices;
        Made { samples, rate, word_ends: ends.unwrap_or_default(), pitch }.finished(ENGINE, phonemes, style)
    }
}

impl TextToSpeech for PiperVoice {
    fn voices(&self) -> Vec<Voice> {
        self.voices.to_vec()
    }

    fn speak(
        &self,
        sentence: &str,
        style: &Style,
        take: &mut dyn FnMut(Piece) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        let [voice] = &self.voices;
        if style.voice != voice.id {
            return Err(Error::UnknownVoice { voice: style.voice.clone(), known: vec![voice.id.clone()] });
        }
        let words = |part: &str| self.pronouncer.words(part, Symbols::Espeak);
        sentence::speak(sentence, &words, &|piece| self.piece(piece, style), take)
    }
}

fn liveliness(style: &Style) -> f32 {
    if style.liveliness.is_finite() { style.liveliness.clamp(0.0, MAX_LIVELINESS) } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_liveliness_beyond_measure_is_brought_back() {
        let liveliness = |liveliness| super::liveliness(&Style { liveliness, ..Style::of("v") });
        assert_eq!((liveliness(-1.0), liveliness(9.0), liveliness(f32::INFINITY)), (0.0, 1.5, 1.0));
    }
}
