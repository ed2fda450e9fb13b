//! Voices of Piper: VITS models that make sound from phonemes.

mod decoder;
mod settings;

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use azera_voice_api::{Error, Piece, Style, TextToSpeech, Voice};
use azera_voice_recordings::Pitch;
use rten::Value;
use rten_tensor::NdTensor;
use rten_tensor::Tensor;
use rten_tensor::prelude::*;

use crate::graph::Graph;
use crate::pieces::Phonemes;
use crate::pronounce::{Accent, Pronouncer, Symbols};
use crate::sentence::{self, Finisher, IsFirst, MAX_PACE, MIN_PACE, Take, pace};
use decoder::{Decoder, Frames};
use settings::Settings;

/// The engine's name.
pub(crate) const ENGINE: &str = "piper";
/// The metadata of the model file in which the model registry keeps the voice's settings.
const SETTINGS: &str = "piper_settings";
/// The value of the model that says how many frames of sound each id lasts. Voices that another program exported may have
/// none of this name.
const LENGTHS: &str = "/Ceil_output_0";
/// The input of a model with several speakers.
const SPEAKER: &str = "sid";
/// The greatest liveliness; above, words are slurred.
const MAX_LIVELINESS: f32 = 1.5;

/// One voice.
pub struct PiperVoice {
    graph: Graph,
    /// Makes sound in parts. Unset until the first piece, and `None` if this model cannot.
    decoder: OnceLock<Option<Decoder>>,
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
        Ok(Self { graph, decoder: OnceLock::new(), settings, pronouncer, voices: [voice] })
    }

    /// Makes the sound of one piece, the first one of a sentence in parts.
    fn piece(
        &self,
        phonemes: &Phonemes,
        style: &Style,
        IsFirst(is_first): IsFirst,
        take: &mut Take<'_>,
    ) -> Result<ControlFlow<()>, Error> {
        let failed = |why: String| Error::Engine { engine: ENGINE.to_owned(), why };
        let (ids, symbol_ends) = self.settings.ids(&phonemes.text);
        let (pitch, made_at) = Pitch::at_pace(style.pitch, pace(style), &(MIN_PACE..=MAX_PACE));
        let scales = self.settings.scales(made_at, liveliness(style));
        let [Voice { rate, .. }] = self.voices;
        let ends = |lengths: Option<Tensor<f32>>| {
            // One length for each id; else the value means something else.
            let lengths = lengths.filter(|lengths| lengths.len() == ids.len());
            let shares = |lengths: Tensor<f32>| sentence::shares(&lengths.to_vec(), &symbol_ends, &phonemes.word_ends);
            lengths.and_then(shares).unwrap_or_default()
        };
        if is_first && let Some((decoder, frames, lengths)) = self.frames(&ids, scales).map_err(failed)? {
            let made = (decoder.samples(&frames), rate);
            let finisher = Finisher::new(ENGINE, (phonemes, style), made, pitch, &ends(lengths));
            return self.in_parts(decoder, &frames, finisher, &is_ahead, take);
        }
        let (output, lengths) = self.run(&ids, scales, "output").map_err(failed)?;
        let samples = Tensor::<f32>::try_from(output).map_err(|_| sentence::no_sound(ENGINE))?.to_vec();
        let made = (samples.len(), rate);
        let mut finisher = Finisher::new(ENGINE, (phonemes, style), made, pitch, &ends(lengths));
        finisher.push(&samples)?;
        Ok(take(finisher.finish()))
    }

    /// Computes a value of the model, and how long each id lasts if the model says so.
    fn run(&self, ids: &[i32], scales: [f32; 3], output: &str) -> Result<(Value, Option<Tensor<f32>>), String> {
        let mut inputs = vec![
            ("input", NdTensor::from_data([1, ids.len()], ids.to_vec()).into()),
            ("input_lengths", NdTensor::from_data([1], vec![ids.len() as i32]).into()),
            ("scales", NdTensor::from_data([3], scales.to_vec()).into()),
        ];
        if self.graph.has(SPEAKER) {
            inputs.push((SPEAKER, NdTensor::from_data([1], vec![0_i32]).into()));
        }
        if self.graph.has(LENGTHS) {
            let [output, lengths] = self.graph.run(inputs, [output, LENGTHS])?;
            return Ok((output, Tensor::try_from(lengths).ok()));
        }
        let [output] = self.graph.run(inputs, [output])?;
        Ok((output, None))
    }

    /// Computes the frames of a piece, from which its sound can be made in parts, and how long each id lasts. `None` if this
    /// model cannot do so.
    fn frames(&self, ids: &[i32], scales: [f32; 3]) -> Result<Option<FramesOfPiece<'_>>, String> {
        if !self.graph.has(decoder::FRAMES) || matches!(self.decoder.get(), Some(None)) {
            return Ok(None);
        }
        let (frames, lengths) = self.run(ids, scales, decoder::FRAMES)?;
        let Some(frames) = Frames::new(frames) else { return Ok(None) };
        let decoder = self.decoder.get_or_init(|| Decoder::of(&self.graph, &frames));
        Ok(decoder.as_ref().map(|decoder| (decoder, frames, lengths)))
    }

    /// Makes the sound of frames in parts, and hands over each while `is_ahead` says so, by how long it took and how long it
    /// lasts. What is left is handed over together in the end.
    fn in_parts(
        &self,
        decoder: &Decoder,
        frames: &Frames,
        mut finisher: Finisher,
        is_ahead: &dyn Fn(Duration, Duration) -> bool,
        take: &mut Take<'_>,
    ) -> Result<ControlFlow<()>, Error> {
        let failed = |why: String| Error::Engine { engine: ENGINE.to_owned(), why };
        let [Voice { rate, .. }] = self.voices;
        let mut goes_ahead = true;
        for part in decoder::parts(frames.count()) {
            let (is_last, began) = (part.end == frames.count(), Instant::now());
            let sound = decoder.sound(&self.graph, frames, part).map_err(failed)?;
            finisher.push(&sound)?;
            goes_ahead &= is_ahead(began.elapsed(), rate.duration(sound.len()));
            if goes_ahead
                && !is_last
                && let Some(piece) = finisher.take()
                && take(piece).is_break()
            {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(take(finisher.finish()))
    }
}

/// Whether the next part of the sound will be made before a part has been heard that lasts so long and took so long to make.
/// Else the voice would fall silent within a word, which is worse than a later beginning.
fn is_ahead(took: Duration, lasts: Duration) -> bool {
    took * (decoder::GROWTH + 1) <= lasts
}

/// What sound is made from in parts.
type FramesOfPiece<'a> = (&'a Decoder, Frames, Option<Tensor<f32>>);

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
        sentence::speak(sentence, &words, &|piece, is_first, take| self.piece(piece, style, is_first, take), take)
    }
}

fn liveliness(style: &Style) -> f32 {
    if style.liveliness.is_finite() { style.liveliness.clamp(0.0, MAX_LIVELINESS) } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use azera_voice_api::SampleRate;

    use super::*;
    use crate::pieces::pieces;

    /// Opens the voice in the folder that `make test` names.
    #[expect(clippy::disallowed_methods, reason = "the tests' own setting, not the product's")]
    fn joe() -> PiperVoice {
        let dir = std::env::var_os("AZERA_TEST_MODELS");
        let dir = dir.expect("AZERA_TEST_MODELS names the folder of the test models; run `make test`");
        let file = PathBuf::from(dir).join("piper-en-us-joe").join("model.onnx");
        PiperVoice::open(&file, "joe", 1).unwrap()
    }

    const TEXT: &str =
        "Nobody but the baker whose lamps burn along the quay hears how the engine of the ferry coughs and fades.";

    fn phonemes(voice: &PiperVoice) -> Phonemes {
        let mut pieces = pieces(&voice.pronouncer.words(TEXT, Symbols::Espeak));
        assert_eq!(pieces.len(), 1);
        pieces.remove(0)
    }

    #[test]
    fn the_sound_of_the_parts_is_that_of_the_whole() {
        let voice = joe();
        let phonemes = phonemes(&voice);
        let ((ids, _), scales) = (voice.settings.ids(&phonemes.text), voice.settings.scales(1.0, 0.0));
        let (decoder, frames, lengths) = voice.frames(&ids, scales).unwrap().expect("this voice can");
        let (whole, whole_lengths) = voice.run(&ids, scales, "output").unwrap();
        let whole = Tensor::<f32>::try_from(whole).unwrap().to_vec();
        assert_eq!((lengths, decoder.samples(&frames)), (whole_lengths, whole.len()));
        let parts = decoder::parts(frames.count());
        assert!(parts.len() >= 3, "{parts:?}");
        let sound = |part| decoder.sound(&voice.graph, &frames, part).unwrap();
        let in_parts: Vec<f32> = parts.into_iter().flat_map(sound).collect();
        assert_eq!(in_parts.len(), whole.len());
        let apart = whole.iter().zip(&in_parts).map(|(whole, part)| (whole - part).abs()).fold(0.0, f32::max);
        assert!(apart < 1e-4, "{apart}");
    }

    /// Returns what is handed over if each part is ahead, or none.
    fn handed_over(voice: &PiperVoice, style: &Style, goes_ahead: bool) -> Vec<Piece> {
        let phonemes = phonemes(voice);
        let ((ids, symbol_ends), (pitch, pace)) =
            (voice.settings.ids(&phonemes.text), Pitch::at_pace(style.pitch, style.pace, &(MIN_PACE..=MAX_PACE)));
        let (decoder, frames, lengths) = voice.frames(&ids, voice.settings.scales(pace, 0.0)).unwrap().unwrap();
        let ends = sentence::shares(&lengths.unwrap().to_vec(), &symbol_ends, &phonemes.word_ends).unwrap();
        let made = (decoder.samples(&frames), SampleRate(22_050));
        let finisher = Finisher::new(ENGINE, (&phonemes, style), made, pitch, &ends);
        let mut pieces = Vec::new();
        let mut take = |piece| {
            pieces.push(piece);
            ControlFlow::Continue(())
        };
        assert!(voice.in_parts(decoder, &frames, finisher, &|_, _| goes_ahead, &mut take).unwrap().is_continue());
        pieces
    }

    #[test]
    fn the_first_part_is_handed_over_before_the_rest_on_a_machine_that_stays_ahead() {
        let voice = joe();
        for style in [Style::of("joe"), Style { pitch: 1.2, pace: 0.8, ..Style::of("joe") }] {
            let parts = handed_over(&voice, &style, true);
            let [whole] = &handed_over(&voice, &style, false)[..] else { panic!("one piece") };
            assert!(parts.len() >= 3, "{}", parts.len());
            let first = parts[0].audio.duration();
            assert!((300..600).contains(&first.as_millis()), "{first:?}");
            let (mut before, mut samples, mut word_ends) = (Duration::ZERO, Vec::new(), Vec::new());
            for part in parts {
                word_ends.extend(part.word_ends.iter().map(|end| before + *end));
                before += part.audio.duration();
                samples.extend(part.audio.samples);
            }
            assert_eq!(samples, whole.audio.samples);
            assert_eq!(word_ends.len(), TEXT.split(' ').count());
            let apart = word_ends.iter().zip(&whole.word_ends).map(|(part, whole)| part.abs_diff(*whole));
            assert!(apart.max() < Some(Duration::from_micros(100)), "{word_ends:?} and {:?}", whole.word_ends);
        }
    }

    #[test]
    fn a_part_is_ahead_if_the_next_one_is_made_while_it_is_heard() {
        let lasts = Duration::from_millis(500);
        assert!(is_ahead(Duration::from_millis(100), lasts) && !is_ahead(Duration::from_millis(101), lasts));
    }

    #[test]
    fn a_liveliness_beyond_measure_is_brought_back() {
        let liveliness = |liveliness| super::liveliness(&Style { liveliness, ..Style::of("v") });
        assert_eq!((liveliness(-1.0), liveliness(9.0), liveliness(f32::INFINITY)), (0.0, 1.5, 1.0));
    }
}
