//! espeak-ng, a program beside this process: the last resort where no other voice is there. It speaks about a hundred
//! languages, and sounds like a machine.
//!
//! The text goes to its standard input and never into an argument. Its WAV file comes from its standard output.

mod list;
mod program;
mod wav;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use azera_voice_api::{Audio, Error, Piece, SampleRate, Style, TextToSpeech, Voice};
use azera_voice_recordings::{Pitch, Resampler};

use crate::level;
use crate::sentence::pace;

/// The engine's name, and the program's.
pub const ESPEAK: &str = "espeak-ng";
/// The rate of the voices. What the program sends says its own.
const RATE: SampleRate = SampleRate(22_050);
/// Words of a minute at the voices' own pace.
const WORDS_PER_MINUTE: f32 = 175.0;
/// The words of a minute that the program takes.
const PACES: std::ops::RangeInclusive<f32> = 80.0..=450.0;
/// The pause after a sentence.
const PAUSE_S: f32 = 0.35;
/// The most bytes of a text; a sentence has a tenth of it.
const MAX_TEXT_BYTES: usize = 16 << 10;

/// What the program may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EspeakLimits {
    /// How long it may work on a sentence or on the list of its voices.
    pub time: Duration,
    /// The most bytes that it may send.
    pub bytes: usize,
}

impl Default for EspeakLimits {
    /// Twenty seconds, and five minutes of sound.
    fn default() -> Self {
        Self { time: Duration::from_secs(20), bytes: 300 * 2 * RATE.0 as usize }
    }
}

/// The voices of espeak-ng.
#[derive(Debug)]
pub struct Espeak {
    program: PathBuf,
    limits: EspeakLimits,
    /// The usual one first.
    voices: Vec<Voice>,
}

impl Espeak {
    /// Asks the program for its voices. A bare name is looked for on the PATH. Returns `None` if it is not there.
    ///
    /// # Errors
    /// [`Error::Engine`] if it does not list any voice in time.
    pub fn open(program: &Path, limits: EspeakLimits) -> Result<Option<Self>, Error> {
        let Some(listed) = program::run(program, &["--voices"], "", limits).map_err(failed)? else { return Ok(None) };
        let mut voices = list::voices(&String::from_utf8_lossy(&listed), RATE);
        // English is usual, as with the other voices of this machine.
        let usual = |language: &str| voices.iter().position(|voice| voice.language == language);
        let at = usual("en-us").or_else(|| usual("en-gb")).or_else(|| usual("en")).unwrap_or_default();
        if voices.is_empty() {
            return Err(failed("it lists no voice".to_owned()));
        }
        voices.swap(0, at);
        Ok(Some(Self { program: program.to_owned(), limits, voices }))
    }

    /// Returns the voices with other limits for what they speak.
    pub fn within(self, limits: EspeakLimits) -> Self {
        Self { limits, ..self }
    }

    /// Returns the sound of a sentence.
    fn sound(&self, sentence: &str, voice: &Voice, style: &Style) -> Result<Vec<f32>, String> {
        let pace = WORDS_PER_MINUTE * pace(style);
        let (pitch, pace) = Pitch::at_pace(style.pitch, pace, &PACES);
        let pace = pace.round().to_string();
        // UTF-8, whatever the locale of this process is.
        let arguments = ["-v", &voice.language, "-s", &pace, "-b", "1", "--stdin", "--stdout"];
        let wav = program::run(&self.program, &arguments, sentence, self.limits)?.ok_or("it is gone")?;
        let (rate, samples) = wav::samples(&wav).ok_or("it sent no sound")?;
        let mut sound = Vec::new();
        let mut resampler = Resampler::new(pitch.rate(rate), RATE);
        resampler.push(&samples, &mut sound);
        resampler.finish(&mut sound);
        Ok(sound)
    }
}

impl TextToSpeech for Espeak {
    fn voices(&self) -> Vec<Voice> {
        self.voices.clone()
    }

    fn speak(
        &self,
        sentence: &str,
        style: &Style,
        take: &mut dyn FnMut(Piece) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        let Some(voice) = self.voices.iter().find(|voice| voice.id == style.voice) else {
            let known = self.voices.iter().map(|voice| voice.id.clone()).collect();
            return Err(Error::UnknownVoice { voice: style.voice.clone(), known });
        };
        let sentence = plain(sentence);
        if !sentence.contains(char::is_alphanumeric) {
            return Ok(());
        }
        let sound = self.sound(&sentence, voice, style).map_err(failed)?;
        let samples = level::finish(&sound, RATE, PAUSE_S / pace(style));
        // It is the whole sentence in any case.
        let _wish = take(Audio { rate: RATE, samples }.into());
        Ok(())
    }
}

/// Returns a sentence as plain text: the program reads what stands in double brackets as phonemes.
fn plain(sentence: &str) -> String {
    let mut plain = sentence.replace('[', "(").replace(']', ")").replace(char::is_control, " ");
    plain.truncate(plain.floor_char_boundary(MAX_TEXT_BYTES));
    plain
}

fn failed(why: impl Into<String>) -> Error {
    Error::Engine { engine: ESPEAK.to_owned(), why: why.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_holds_no_phonemes_and_has_an_end() {
        assert_eq!(plain("a [[b]]\u{7}c"), "a ((b)) c");
        assert_eq!(plain(&"é".repeat(10_000)).len(), MAX_TEXT_BYTES);
    }
}
