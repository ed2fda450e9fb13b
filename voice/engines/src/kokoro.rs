//! Voices of Kokoro: one model that makes sound from phonemes with many voices.
//!
//! The model registry prepares the file: it holds the voices as a table, and the model's input `style_row` is a row of it.

mod symbols;

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use azera_voice_api::{Error, Piece, SampleRate, Style, TextToSpeech, Voice};
use azera_voice_recordings::Pitch;
use rten_tensor::NdTensor;
use rten_tensor::Tensor;
use rten_tensor::prelude::*;

use crate::graph::Graph;
use crate::pieces::{MOST_SYMBOLS, Phonemes};
use crate::pronounce::{Accent, Pronouncer, Symbols};
use crate::sentence::{self, Finisher, MAX_PACE, MIN_PACE, Take, pace};

/// The engine's name.
const ENGINE: &str = "kokoro";
/// The metadata of the model file with the names of its voices, a JSON list.
const VOICES: &str = "kokoro_voices";
/// The rate of the model's sound.
const RATE: SampleRate = SampleRate(24_000);
/// The most phonemes in a piece, and the rows of a voice: one for each number of phonemes.
const ROWS: usize = 510;
/// The value of the model that says how many frames of sound each id lasts.
const LENGTHS: &str = "/encoder/Clip_output_0";

// The model takes no longer ones.
const _: () = assert!(MOST_SYMBOLS <= ROWS);

/// A model with all its voices.
pub struct KokoroModel {
    graph: Graph,
    voices: Vec<String>,
    file: String,
}

impl KokoroModel {
    /// Loads a model, to run on this many threads.
    ///
    /// # Errors
    /// [`Error::Model`] if the file cannot be read, or has no voices of Kokoro.
    pub fn open(path: &Path, threads: usize) -> Result<Self, Error> {
        let file = path.display().to_string();
        let model = |why: String| Error::Model { file: file.clone(), why };
        let graph = Graph::open(path, threads).map_err(model)?;
        let names = graph.metadata(VOICES).ok_or_else(|| model("it has no voices of Kokoro".to_owned()))?;
        let voices = serde_json::from_str(names).map_err(|error| model(format!("its voices: {error}")))?;
        Ok(Self { graph, voices, file })
    }
}

/// One voice of a model.
pub struct KokoroVoice {
    model: Arc<KokoroModel>,
    /// The place of the voice in the model.
    place: usize,
    pronouncer: Arc<Pronouncer>,
    voices: [Voice; 1],
}

impl KokoroVoice {
    /// Returns a voice of a model by its name there, under an id.
    ///
    /// # Errors
    /// [`Error::Model`] if the model has no such voice.
    pub fn new(model: Arc<KokoroModel>, name: &str, id: &str, pronouncer: Arc<Pronouncer>) -> Result<Self, Error> {
        let no_voice = || Error::Model { file: model.file.clone(), why: format!("it has no voice {name}") };
        let place = model.voices.iter().position(|voice| voice == name).ok_or_else(no_voice)?;
        Ok(Self { model, place, pronouncer, voices: [described(name, id)] })
    }

    /// Makes the sound of one piece.
    fn piece(&self, phonemes: &Phonemes, style: &Style, take: &mut Take<'_>) -> Result<ControlFlow<()>, Error> {
        let failed = |why: String| Error::Engine { engine: ENGINE.to_owned(), why };
        let (ids, symbol_ends) = symbols::ids(&phonemes.text);
        let (length, row) = (ids.len(), self.place * ROWS + row(ids.len()));
        let (pitch, made_at) = Pitch::at_pace(style.pitch, pace(style), &(MIN_PACE..=MAX_PACE));
        let row = i32::try_from(row).map_err(|error| failed(error.to_string()))?;
        let inputs = vec![
            ("tokens", NdTensor::from_data([1, length], ids).into()),
            ("style_row", NdTensor::from_data([1], vec![row]).into()),
            ("speed", NdTensor::from_data([1], vec![made_at]).into()),
        ];
        let [sound, lengths] = self.model.graph.run(inputs, ["audio", LENGTHS]).map_err(failed)?;
        let samples = Tensor::<f32>::try_from(sound).map_err(|_| sentence::no_sound(ENGINE))?.to_vec();
        let lengths = Tensor::<f32>::try_from(lengths).ok().filter(|lengths| lengths.len() == length);
        let ends = lengths.and_then(|lengths| sentence::shares(&lengths.to_vec(), &symbol_ends, &phonemes.word_ends));
        let made = (samples.len(), RATE);
        let mut finisher = Finisher::new(ENGINE, (phonemes, style), made, pitch, &ends.unwrap_or_default());
        finisher.push(&samples)?;
        Ok(take(finisher.finish()))
    }
}

impl TextToSpeech for KokoroVoice {
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
        let words = |part: &str| self.pronouncer.words(part, Symbols::Misaki);
        sentence::speak(sentence, &words, &|piece, _, take| self.piece(piece, style, take), take)
    }
}

/// Returns what is known of a voice by its name: the first letter is its accent.
pub fn described(name: &str, id: &str) -> Voice {
    let language = match accent(name) {
        Accent::American => "en-US",
        Accent::British => "en-GB",
    };
    Voice { id: id.to_owned(), language: language.to_owned(), rate: RATE, engine: ENGINE.to_owned() }
}

/// Returns the accent of a voice, such as `bf_emma`.
pub fn accent(name: &str) -> Accent {
    if name.starts_with('b') { Accent::British } else { Accent::American }
}

/// Returns the row of a voice for this many ids. The first and the last one are no phonemes, and the first row is for one
/// phoneme.
fn row(ids: usize) -> usize {
    ids.saturating_sub(symbols::ENDS + 1).min(ROWS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_of_phonemes_has_a_row() {
        assert_eq!([2, 3, 4, 511, 512, 513].map(row), [0, 0, 1, 508, 509, 509]);
    }

    #[test]
    fn the_name_of_a_voice_tells_its_accent() {
        let language = |name| described(name, "v").language;
        assert_eq!((language("bf_emma"), language("am_adam")), ("en-GB".to_owned(), "en-US".to_owned()));
    }
}
