//! What the voices of this machine have in common: how a sentence becomes pieces of sound.

use std::ops::ControlFlow;

use azera_voice_api::{Audio, Error, Piece, SampleRate, Style};
use azera_voice_recordings::{Pitch, Resampler};

use crate::level::Leveller;
use crate::pieces::{Phonemes, pieces};
use crate::pronounce::Word;

/// The slowest and the fastest pace at which a voice is understood.
pub const MIN_PACE: f32 = 0.5;
/// See [`MIN_PACE`].
pub const MAX_PACE: f32 = 2.0;
/// The most characters whose phonemes are found at once.
const MOST_CHARACTERS: usize = 600;

/// Takes in pieces of sound as they are made. It says whether more are wanted.
pub type Take<'a> = dyn FnMut(Piece) -> ControlFlow<()> + 'a;

/// Makes the sound of a piece, and hands it over. It says whether more is wanted.
pub type Speak<'a> = dyn Fn(&Phonemes, IsFirst, &mut Take<'_>) -> Result<ControlFlow<()>, Error> + 'a;

/// Speaks a sentence piece by piece: `words` pronounces a part of it, and `speak` makes the sound of a piece. The sound of
/// the first one is awaited.
pub fn speak(
    sentence: &str,
    words: &dyn Fn(&str) -> Vec<Word>,
    speak: &Speak<'_>,
    take: &mut Take<'_>,
) -> Result<(), Error> {
    let mut is_first = IsFirst(true);
    for part in parts(sentence) {
        for piece in pieces(&words(&part)) {
            if speak(&piece, is_first, take)?.is_break() {
                return Ok(());
            }
            is_first = IsFirst(false);
        }
    }
    Ok(())
}

/// Whether a piece is the first one of its sentence.
#[derive(Debug, Clone, Copy)]
pub struct IsFirst(pub bool);

/// Returns the pace of a style as a voice can speak.
pub fn pace(style: &Style) -> f32 {
    if style.pace.is_finite() { style.pace.clamp(MIN_PACE, MAX_PACE) } else { 1.0 }
}

/// Makes what is heard of the sound that a model makes of one piece, all at once or in parts: gives it its pitch and level,
/// and adds the pause behind it.
pub struct Finisher {
    engine: &'static str,
    rate: SampleRate,
    resampler: Option<Resampler>,
    level: Leveller,
    pause_s: f32,
    /// The ends of the words that end in no piece so far, as samples from the beginning, the last one first.
    word_ends: Vec<usize>,
    /// How many samples were handed over.
    passed: usize,
    /// Samples that can be handed over.
    ready: Vec<f32>,
}

impl Finisher {
    /// Returns a finisher for these phonemes. `samples` is how many samples the model makes of them at its `rate`, and
    /// `word_ends` at which share of them each word ends; it is empty if that is unknown.
    pub fn new(
        engine: &'static str,
        (phonemes, style): (&Phonemes, &Style),
        (samples, rate): (usize, SampleRate),
        pitch: Pitch,
        word_ends: &[f32],
    ) -> Self {
        let end = |share: &f32| (share * samples as f32 / pitch.factor()) as usize;
        Self {
            engine,
            rate,
            resampler: pitch.resampler(rate),
            level: Leveller::new(rate),
            pause_s: pause_s(&phonemes.text) / pace(style),
            word_ends: word_ends.iter().rev().map(end).collect(),
            passed: 0,
            ready: Vec::new(),
        }
    }

    /// Takes in the next part of the sound.
    ///
    /// # Errors
    /// What the model of this engine made is no sound.
    pub fn push(&mut self, samples: &[f32]) -> Result<(), Error> {
        if !samples.iter().all(|sample| sample.is_finite()) {
            return Err(no_sound(self.engine));
        }
        match &mut self.resampler {
            None => self.ready.extend(self.level.push(samples)),
            Some(resampler) => {
                let mut raised = Vec::new();
                resampler.push(samples, &mut raised);
                self.ready.extend(self.level.push(&raised));
            }
        }
        Ok(())
    }

    /// Returns what was made since the last call, if anything.
    pub fn take(&mut self) -> Option<Piece> {
        let samples = std::mem::take(&mut self.ready);
        if samples.is_empty() {
            return None;
        }
        let from = self.level.removed() + self.passed;
        let until = from + samples.len();
        let mut word_ends = Vec::new();
        while let Some(end) = self.word_ends.pop_if(|end| *end <= until) {
            word_ends.push(self.rate.duration(end.saturating_sub(from)));
        }
        self.passed += samples.len();
        Some(Piece { audio: Audio { rate: self.rate, samples }, word_ends })
    }

    /// Returns the last piece.
    pub fn finish(mut self) -> Piece {
        if let Some(resampler) = self.resampler.take() {
            let mut raised = Vec::new();
            resampler.finish(&mut raised);
            self.ready.extend(self.level.push(&raised));
        }
        let from = self.level.removed() + self.passed;
        let mut samples = self.ready;
        samples.extend(self.level.finish(self.pause_s));
        let end = |end: &usize| self.rate.duration(end.saturating_sub(from).min(samples.len()));
        let word_ends = self.word_ends.iter().rev().map(end).collect();
        Piece { audio: Audio { rate: self.rate, samples }, word_ends }
    }
}

/// Says that a model made no sound.
pub fn no_sound(engine: &str) -> Error {
    Error::Engine { engine: engine.to_owned(), why: "its output is no sound".to_owned() }
}

/// Returns at which share of a sound each word ends. `lengths` says how long each id lasts, and `symbol_ends` how many ids
/// stand before the end of each symbol. `None` if they do not fit.
pub fn shares(lengths: &[f32], symbol_ends: &[usize], word_ends: &[usize]) -> Option<Vec<f32>> {
    let whole: f32 = lengths.iter().sum();
    let share = |symbols: &usize| {
        let ids = symbols.checked_sub(1).map_or(Some(&0), |last| symbol_ends.get(last))?;
        Some(lengths.get(..*ids)?.iter().sum::<f32>() / whole)
    };
    let shares: Option<Vec<f32>> = word_ends.iter().map(share).collect();
    shares.filter(|shares| shares.iter().all(|share| share.is_finite()))
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
    fn a_pace_beyond_measure_is_brought_back() {
        let pace = |pace| super::pace(&Style { pace, ..Style::of("v") });
        assert_eq!((pace(0.0), pace(9.0), pace(f32::NAN)), (0.5, 2.0, 1.0));
    }
}
