//! Voices of Piper: VITS models that make sound from phonemes.

mod settings;

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use azera_voice_api::{Audio, Error, Style, TextToSpeech, Voice};
use azera_voice_recordings::Pitch;
use rten_tensor::NdTensor;
use rten_tensor::Tensor;
use rten_tensor::prelude::*;

use crate::graph::Graph;
use crate::level;
use crate::pieces::pieces;
use crate::pronounce::Pronouncer;
use settings::Settings;

/// The engine's name.
pub(crate) const ENGINE: &str = "piper";
/// The metadata of the model file in which the model registry keeps the voice's settings.
const SETTINGS: &str = "piper_settings";
/// The slowest and the fastest pace at which a voice is understood.
pub const MIN_PACE: f32 = 0.5;
/// See [`MIN_PACE`].
pub const MAX_PACE: f32 = 2.0;
/// The greatest liveliness; above, words are slurred.
const MAX_LIVELINESS: f32 = 1.5;
/// The most characters whose phonemes are found at once.
const MOST_CHARACTERS: usize = 600;

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
        Self::open_with(path, id, threads, Arc::new(Pronouncer::new()))
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

    /// Returns the id.
    pub(crate) fn id(&self) -> &str {
        let [voice] = &self.voices;
        &voice.id
    }

    /// Makes the sound of one piece.
    fn sound(&self, phonemes: &str, style: &Style) -> Result<Vec<f32>, Error> {
        let failed = |why: String| Error::Engine { engine: ENGINE.to_owned(), why };
        let ids = self.settings.ids(phonemes);
        let length = ids.len();
        let (pitch, pace) = Pitch::at_pace(style.pitch, pace(style), &(MIN_PACE..=MAX_PACE));
        let scales = self.settings.scales(pace, liveliness(style));
        let mut inputs = vec![
            ("input", NdTensor::from_data([1, length], ids).into()),
            ("input_lengths", NdTensor::from_data([1], vec![length as i32]).into()),
            ("scales", NdTensor::from_data([3], scales.to_vec()).into()),
        ];
        if self.graph.has("sid") {
            inputs.push(("sid", NdTensor::from_data([1], vec![0_i32]).into()));
        }
        let [output] = self.graph.run(inputs, ["output"]).map_err(failed)?;
        let output: Tensor<f32> = output.try_into().map_err(|_| failed("its output is no sound".to_owned()))?;
        let sound = output.to_vec();
        if sound.iter().all(|sample| sample.is_finite()) {
            let [voice] = &self.voices;
            Ok(pitch.raised(sound, voice.rate))
        } else {
            Err(failed("its output is no sound".to_owned()))
        }
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
        take: &mut dyn FnMut(Audio) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        let [voice] = &self.voices;
        if style.voice != voice.id {
            return Err(Error::UnknownVoice { voice: style.voice.clone(), known: vec![voice.id.clone()] });
        }
        for part in parts(sentence) {
            for piece in pieces(&self.pronouncer.words(&part)) {
                let sound = self.sound(&piece, style)?;
                let pause_s = pause_s(&piece) / pace(style);
                let samples = level::finish(&sound, voice.rate, pause_s);
                if take(Audio { rate: voice.rate, samples }).is_break() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

pub(crate) fn pace(style: &Style) -> f32 {
    if style.pace.is_finite() { style.pace.clamp(MIN_PACE, MAX_PACE) } else { 1.0 }
}

fn liveliness(style: &Style) -> f32 {
    if style.liveliness.is_finite() { style.liveliness.clamp(0.0, MAX_LIVELINESS) } else { 1.0 }
}

/// Returns how long a speaker pauses after a piece, in seconds.
fn pause_s(piece: &str) -> f32 {
    match piece.chars().next_back() {
        Some('.' | '!' | '?') => 0.35,
        Some(';' | ':') => 0.22,
        Some(',') => 0.14,
        _ => 0.02,
    }
}

/// Splits a text between words into parts of at most [`MOST_CHARACTERS`], and longer words anywhere.
fn parts(text: &str) -> Vec<String> {
    let mut parts = Vec::new();
    let mut part = String::new();
    let mut length = 0;
    for word in text.split_whitespace() {
        let word: Vec<char> = word.chars().collect();
        for bit in word.chunks(MOST_CHARACTERS) {
            if length + bit.len() > MOST_CHARACTERS && length > 0 {
                parts.push(std::mem::take(&mut part));
                length = 0;
            }
            part.extend(bit);
            part.push(' ');
            length += bit.len() + 1;
        }
    }
    parts.push(part);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_split_between_words() {
        assert_eq!(parts("one  two\nthree"), ["one two three "]);
        let long = "word ".repeat(500);
        let found = parts(&long);
        assert!(found.len() > 1 && found.iter().all(|part| part.chars().count() <= MOST_CHARACTERS + 1));
        assert_eq!(found.concat(), long);
        assert_eq!(parts(&"é".repeat(1_500)).len(), 3);
    }

    #[test]
    fn a_style_beyond_measure_is_brought_back() {
        let style = |pace, liveliness| Style { pace, liveliness, ..Style::of("v") };
        assert_eq!((pace(&style(0.0, 0.0)), pace(&style(9.0, 0.0)), pace(&style(f32::NAN, 0.0))), (0.5, 2.0, 1.0));
        assert_eq!((liveliness(&style(1.0, -1.0)), liveliness(&style(1.0, f32::INFINITY))), (0.0, 1.0));
    }
}
