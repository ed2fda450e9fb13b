//! Voices of Piper: VITS models that make sound from phonemes.

mod settings;

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use azera_voice_api::{Audio, Error, Piece, Style, TextToSpeech, Voice};
use azera_voice_recordings::Pitch;
use rten_tensor::NdTensor;
use rten_tensor::Tensor;
use rten_tensor::prelude::*;

use crate::graph::Graph;
use crate::level;
use crate::pieces::{Phonemes, pieces};
use crate::pronounce::Pronouncer;
use settings::Settings;

/// The engine's name.
pub(crate) const ENGINE: &str = "piper";
/// The metadata of the model file in which the model registry keeps the voice's settings.
const SETTINGS: &str = "piper_settings";
/// The value of the model that says how many frames of sound each id lasts. Voices that another program exported may have
/// none of this name.
const LENGTHS: &str = "/Ceil_output_0";
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
        let no_sound = || failed("its output is no sound".to_owned());
        // One length for each id; else the value means something else.
        let as_lengths = |value| Tensor::<f32>::try_from(value).ok().filter(|lengths| lengths.len() == length);
        let (output, lengths) = if self.graph.has(LENGTHS) {
            let [output, lengths] = self.graph.run(inputs, ["output", LENGTHS]).map_err(failed)?;
            (output, as_lengths(lengths))
        } else {
            let [output] = self.graph.run(inputs, ["output"]).map_err(failed)?;
            (output, None)
        };
        let sound = Tensor::<f32>::try_from(output).map_err(|_| no_sound())?.to_vec();
        if !sound.iter().all(|sample| sample.is_finite()) {
            return Err(no_sound());
        }
        let ends = lengths.and_then(|lengths| shares(&lengths.to_vec(), &symbol_ends, &phonemes.word_ends));
        Ok(self.finished(sound, &ends.unwrap_or_default(), pitch, pause_s(&phonemes.text) / pace(style)))
    }

    /// Returns a piece with its pitch, level and pause. Its words end at these shares of the sound.
    fn finished(&self, sound: Vec<f32>, word_ends: &[f32], pitch: Pitch, pause_s: f32) -> Piece {
        let [Voice { rate, .. }] = &self.voices;
        let sound = pitch.raised(sound, *rate);
        let (removed, samples) = level::finish(&sound, *rate, pause_s);
        let end = |share: &f32| ((share * sound.len() as f32) as usize).saturating_sub(removed).min(samples.len());
        let word_ends = word_ends.iter().map(|share| rate.duration(end(share))).collect();
        Piece { audio: Audio { rate: *rate, samples }, word_ends }
    }
}

/// Returns at which share of a sound each word ends. `lengths` says how long each id lasts, and `symbol_ends` how many ids
/// stand before the end of each symbol. `None` if they do not fit.
fn shares(lengths: &[f32], symbol_ends: &[usize], word_ends: &[usize]) -> Option<Vec<f32>> {
    let whole: f32 = lengths.iter().sum();
    let share = |symbols: &usize| {
        let ids = symbols.checked_sub(1).map_or(Some(&0), |last| symbol_ends.get(last))?;
        Some(lengths.get(..*ids)?.iter().sum::<f32>() / whole)
    };
    let shares: Option<Vec<f32>> = word_ends.iter().map(share).collect();
    shares.filter(|shares| shares.iter().all(|share| share.is_finite()))
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
        for part in parts(sentence) {
            for piece in pieces(&self.pronouncer.words(&part)) {
                if take(self.piece(&piece, style)?).is_break() {
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
    fn words_end_where_their_last_symbol_does() {
        // Two symbols of the first word, a space, and one of the second: two ids before them and one after.
        let (lengths, symbol_ends) = ([1.0, 0.0, 2.0, 0.0, 3.0, 0.0, 1.0, 0.0, 2.0, 0.0, 1.0], [3, 5, 7, 9]);
        assert_eq!(shares(&lengths, &symbol_ends, &[2, 4]), Some(vec![0.6, 0.9]));
        assert_eq!(shares(&lengths, &symbol_ends, &[0]), Some(vec![0.0]), "a mark before the first word");
        assert_eq!(shares(&lengths, &symbol_ends, &[5]), None);
        assert_eq!(shares(&[0.0; 11], &symbol_ends, &[2]), None);
        assert_eq!(shares(&lengths[..4], &symbol_ends, &[4]), None);
    }

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
