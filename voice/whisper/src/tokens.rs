//! The tokens of a model: their text, and those with a meaning of their own.

use std::ops::Range;

use azera_voice_api::Error;

use crate::weights::Weights;

/// The most tokens of a model file; Whisper has 51,866.
const MAX_TOKENS: usize = 1 << 20;
/// The number of tokens of the models that know other languages than English; English models have fewer.
const MULTILINGUAL_TOKENS: usize = 51_865;

/// The vocabulary.
pub(crate) struct Tokens {
    table: Vec<u8>,
    /// Where the text of each token is in `table`.
    texts: Vec<Range<usize>>,
    /// Ends a transcript. All later tokens are special.
    pub(crate) end: usize,
    /// Begins the prompt.
    pub(crate) start: usize,
    /// Asks for a transcript in the spoken language.
    transcribe: usize,
    no_timestamps: usize,
    /// Likely after `start` if nobody speaks.
    pub(crate) no_speech: usize,
    /// The languages; empty for an English model.
    pub(crate) languages: Range<usize>,
    /// Tokens that are never picked: notes on sounds, brackets and the like.
    suppressed: Vec<usize>,
    /// Tokens that are not picked first.
    suppressed_at_start: Vec<usize>,
}

impl Tokens {
    /// Reads the vocabulary of a model that computes `count` tokens.
    pub(crate) fn read(weights: &Weights, count: usize) -> Result<Self, Error> {
        let id = |key: &str| weights.number(&format!("whisper.token.{key}"), count.min(MAX_TOKENS));
        let table = weights.bytes("tokens")?;
        let mut texts = Vec::new();
        let mut at = 0;
        while let Some(length) = table.get(at) {
            let text = at + 1..at + 1 + usize::from(*length);
            at = text.end;
            texts.push(text);
        }
        if at != table.len() || texts.len() > count {
            return Err(weights.wrong("the token texts do not fit the model"));
        }
        let languages = if count >= MULTILINGUAL_TOKENS { id("first_language")?..id("after_languages")? } else { 0..0 };
        Ok(Self {
            table,
            texts,
            end: id("end")?,
            start: id("start")?,
            transcribe: id("transcribe")?,
            no_timestamps: id("no_timestamps")?,
            no_speech: id("no_speech")?,
            languages,
            suppressed: weights.integers("suppressed")?,
            suppressed_at_start: weights.integers("suppressed_at_start")?,
        })
    }

    /// Returns the bytes of a token, which may be a part of a character.
    pub(crate) fn bytes(&self, token: usize) -> &[u8] {
        self.texts.get(token).and_then(|range| self.table.get(range.clone())).unwrap_or(&[])
    }

    /// Returns the token of a language by its code, such as `de`.
    pub(crate) fn language(&self, code: &str) -> Option<usize> {
        let spelt = format!("<|{code}|>");
        self.languages.clone().find(|token| self.bytes(*token) == spelt.as_bytes())
    }

    /// Returns the codes of the known languages; empty for an English model.
    pub(crate) fn language_codes(&self) -> Vec<String> {
        let spelt = self.languages.clone().map(|token| String::from_utf8_lossy(self.bytes(token)).into_owned());
        spelt.map(|spelt| spelt.trim_matches(['<', '|', '>']).to_owned()).collect()
    }

    /// Returns the prompt after `start`.
    pub(crate) fn prompt(&self, language: Option<usize>) -> Vec<usize> {
        match language {
            Some(language) => vec![language, self.transcribe, self.no_timestamps],
            None => vec![self.no_timestamps],
        }
    }

    /// Makes tokens that must not be picked impossible.
    pub(crate) fn mask(&self, logits: &mut [f32], is_first: bool) {
        let mut forbid = |token: usize| {
            if let Some(logit) = logits.get_mut(token) {
                *logit = f32::NEG_INFINITY;
            }
        };
        self.suppressed.iter().for_each(|token| forbid(*token));
        if is_first {
            self.suppressed_at_start.iter().for_each(|token| forbid(*token));
        }
        if let Some(special) = logits.get_mut(self.end + 1..) {
            special.fill(f32::NEG_INFINITY);
        }
    }

    /// Returns the text of several tokens.
    pub(crate) fn text(&self, tokens: &[usize]) -> String {
        let bytes: Vec<u8> = tokens.iter().flat_map(|token| self.bytes(*token)).copied().collect();
        String::from_utf8_lossy(&bytes).trim().to_owned()
    }

    /// Returns the ranges of tokens that make a word each. A word begins with a space.
    pub(crate) fn words(&self, tokens: &[usize]) -> Vec<Range<usize>> {
        let mut words: Vec<Range<usize>> = Vec::new();
        for (index, token) in tokens.iter().enumerate() {
            match words.last_mut() {
                Some(word) if !self.bytes(*token).starts_with(b" ") => word.end = index + 1,
                _ => words.push(index..index + 1),
            }
        }
        words
    }
}
