//! Picks the likeliest token again and again, and stops when the utterance is told.

use azera_voice_api::Error;

use crate::decoder::{Cache, Decoder};
use crate::linear::{Gemm, failed, softmax};
use crate::steps::Steps;
use crate::tokens::Tokens;

/// The most tokens for one second of speech, and the tokens besides. Fast speakers reach five a second.
const TOKENS_PER_SECOND: f32 = 8.0;
const TOKENS_BESIDES: usize = 16;
/// The shortest block of tokens whose repetition is not the speaker's.
const REPEATED_BLOCK: usize = 4;
/// How many times more likely the expected language counts than it sounds.
const EXPECTED_WEIGHT: f32 = 10.0;
/// The longest utterance, in seconds, that ends when it begins again. In a longer one, a speaker may well begin two
/// sentences alike.
const SHORT_SECONDS: f32 = 10.0;

/// The tokens of an utterance, with what speaks for and against them.
pub(crate) struct Decoded {
    /// Tokens of text.
    pub(crate) tokens: Vec<usize>,
    /// The probability of each token.
    pub(crate) probabilities: Vec<f32>,
    /// For each token and each alignment head, how much it looked at each of the encoder's vectors.
    pub(crate) attention: Vec<Vec<Vec<f32>>>,
    /// The probability that nobody speaks.
    pub(crate) no_speech: f32,
}

/// Everything that decoding needs to know.
pub(crate) struct Decoding<'a> {
    pub(crate) decoder: &'a Decoder,
    pub(crate) tokens: &'a Tokens,
    pub(crate) gemm: &'a Gemm,
    /// The language's token, if the caller chose one.
    pub(crate) language: Option<usize>,
    /// The token of the language that is probably spoken.
    pub(crate) expected: Option<usize>,
    /// Length of the speech.
    pub(crate) seconds: f32,
}

/// The token that comes next.
struct Next {
    token: usize,
    probability: f32,
    /// See [`Decoded::attention`].
    attention: Vec<Vec<f32>>,
}

impl Decoding<'_> {
    /// Decodes an utterance from the encoder's vectors.
    pub(crate) fn run(&self, vectors: &[f32], steps: &Steps<'_>) -> Result<Decoded, Error> {
        let mut cache = steps.run(|| self.decoder.begin(vectors, self.gemm))?;
        let mut first = steps.run(|| {
            let step = self.decoder.step(&mut cache, self.tokens.start)?;
            Ok(self.decoder.logits(&step))
        })?;
        let language = self.language.or_else(|| spoken_language(&first, self.tokens.languages.clone(), self.expected));
        softmax(&mut first);
        let mut decoded = Decoded {
            tokens: Vec::new(),
            probabilities: Vec::new(),
            attention: Vec::new(),
            no_speech: first.get(self.tokens.no_speech).copied().unwrap_or(0.0),
        };
        let prompt = self.tokens.prompt(language);
        let Some((last, before)) = prompt.split_last() else { return Err(failed("the prompt has no token")) };
        for token in before {
            steps.run(|| self.decoder.step(&mut cache, *token))?;
        }
        let mut next = steps.run(|| self.next(&mut cache, *last, true))?;
        let room = self.decoder.max_tokens().saturating_sub(prompt.len() + 2);
        let most = room.min((self.seconds * TOKENS_PER_SECOND) as usize + TOKENS_BESIDES);
        while decoded.tokens.len() < most {
            let Next { token, probability, attention } = next;
            if token == self.tokens.end {
                return Ok(self.whole(decoded));
            }
            decoded.tokens.push(token);
            decoded.probabilities.push(probability);
            decoded.attention.push(attention);
            if let Some(kept) = before_repetition(&decoded.tokens, self.seconds <= SHORT_SECONDS) {
                decoded.truncate(kept);
                return Ok(self.whole(decoded));
            }
            next = steps.run(|| self.next(&mut cache, token, false))?;
        }
        let kept = before_new_beginning(&decoded.tokens);
        decoded.truncate(kept);
        Ok(self.whole(decoded))
    }

    /// Takes a fragment off the end of what was decoded. What is left of a repetition may end in one, too.
    fn whole(&self, mut decoded: Decoded) -> Decoded {
        let kept = before_fragment(&decoded.tokens, |tokens| self.tokens.text(tokens));
        decoded.truncate(kept);
        decoded
    }

    /// Appends a token, and picks the likeliest one after it among those that may be picked.
    fn next(&self, cache: &mut Cache, token: usize, is_first: bool) -> Result<Next, Error> {
        let step = self.decoder.step(cache, token)?;
        let mut logits = self.decoder.logits(&step);
        self.tokens.mask(&mut logits, is_first);
        let token = likeliest(&logits, 0..logits.len()).unwrap_or(self.tokens.end);
        softmax(&mut logits);
        let probability = logits.get(token).copied().unwrap_or(0.0);
        Ok(Next { token, probability, attention: step.attention })
    }
}

impl Decoded {
    fn truncate(&mut self, length: usize) {
        self.tokens.truncate(length);
        self.probabilities.truncate(length);
        self.attention.truncate(length);
    }
}

/// Returns the token of the language that the sound is in. The expected one counts [`EXPECTED_WEIGHT`] times, so that it
/// decides where the sound does not.
fn spoken_language(logits: &[f32], languages: std::ops::Range<usize>, expected: Option<usize>) -> Option<usize> {
    let heard = likeliest(logits, languages)?;
    let logit = |token: usize| logits.get(token).copied().unwrap_or(f32::NEG_INFINITY);
    let expected = expected.filter(|expected| logit(*expected) + EXPECTED_WEIGHT.ln() > logit(heard));
    Some(expected.unwrap_or(heard))
}

/// Returns the token in `range` with the highest number.
fn likeliest(logits: &[f32], range: std::ops::Range<usize>) -> Option<usize> {
    range.max_by(|a, b| {
        let logit = |token: &usize| logits.get(*token).copied().unwrap_or(f32::NEG_INFINITY);
        logit(a).total_cmp(&logit(b))
    })
}

/// Returns how many tokens to keep if the last ones repeat earlier ones: the block before them, or in a short utterance
/// its beginning.
fn before_repetition(tokens: &[usize], is_short: bool) -> Option<usize> {
    let begins_again = is_short
        && tokens.len() >= 2 * REPEATED_BLOCK
        && tokens[tokens.len() - REPEATED_BLOCK..] == tokens[..REPEATED_BLOCK];
    if begins_again {
        return Some(tokens.len() - REPEATED_BLOCK);
    }
    let repeats = |block: &usize| {
        let (earlier, last) = tokens.split_at(tokens.len() - block);
        earlier.ends_with(last)
    };
    (REPEATED_BLOCK..=tokens.len() / 2).find(repeats).map(|block| tokens.len() - block)
}

/// Returns how many tokens to keep of a transcript that ran out of room: all before its beginning came again.
fn before_new_beginning(tokens: &[usize]) -> usize {
    let comes_again = |length: &usize| tokens[tokens.len() - length..] == tokens[..*length];
    (REPEATED_BLOCK..=tokens.len() / 2).rev().find(comes_again).map_or(tokens.len(), |length| tokens.len() - length)
}

/// Returns how many tokens to keep if the transcript ends in a fragment: after its last sentence, a part of its
/// beginning comes again and breaks off.
fn before_fragment(tokens: &[usize], text: impl Fn(&[usize]) -> String) -> usize {
    let ends_sentence = |token: &usize| matches!(text(&[*token]).as_str(), "." | "?" | "!");
    let fragment = tokens.iter().rposition(ends_sentence).map_or(0, |last| last + 1);
    if fragment == 0 || fragment == tokens.len() {
        return tokens.len();
    }
    let (whole, tail) = tokens.split_at(fragment);
    let comes_again = text(whole).to_lowercase().starts_with(&text(tail).to_lowercase());
    if comes_again { fragment } else { tokens.len() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_expected_language_decides_where_the_sound_does_not() {
        // The logits of a text token and of three languages.
        let logits = [9.0, 1.0, 2.5, -4.0];
        assert_eq!(spoken_language(&logits, 1..4, None), Some(2));
        assert_eq!(spoken_language(&logits, 1..4, Some(1)), Some(1), "it is nearly as likely");
        assert_eq!(spoken_language(&logits, 1..4, Some(3)), Some(2), "the sound speaks against it");
        assert_eq!(spoken_language(&logits, 0..0, Some(1)), None, "an English model has no languages");
    }

    #[test]
    fn a_repeated_block_ends_the_transcript() {
        fn check(tokens: &[usize], is_short: bool, kept: Option<usize>) {
            assert_eq!(before_repetition(tokens, is_short), kept, "{tokens:?}");
        }
        check(&[], true, None);
        check(&[1, 1, 1, 1, 1, 1, 1], true, None);
        check(&[1, 2, 3, 4, 1, 2, 3, 4], false, Some(4));
        check(&[9, 1, 2, 3, 4, 1, 2, 3, 4], false, Some(5));
        check(&[1, 2, 3, 4, 5, 1, 2, 3, 4], true, Some(5));
        check(&[1, 2, 3, 4, 5, 1, 2, 3, 4], false, None);
        check(&[1, 2, 3, 4, 5, 1, 2, 3, 4, 5], false, Some(5));
        check(&[1, 2, 3, 1, 2, 3], true, None);
    }

    #[test]
    fn a_transcript_without_room_loses_its_second_beginning() {
        fn check(tokens: &[usize], kept: usize) {
            assert_eq!(before_new_beginning(tokens), kept, "{tokens:?}");
        }
        check(&[1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5], 6);
        check(&[1, 2, 3, 4, 5, 6, 7, 8], 8);
        check(&[], 0);
    }

    #[test]
    fn a_fragment_at_the_end_that_is_the_beginning_again_goes() {
        const WORDS: [&str; 6] = ["the", " The", " bakery", " closes", ".", " But"];
        let text = |tokens: &[usize]| tokens.iter().map(|token| WORDS[*token]).collect::<String>().trim().to_owned();
        let check = |tokens: &[usize], kept: usize| assert_eq!(before_fragment(tokens, text), kept, "{tokens:?}");
        check(&[0, 2, 3, 4, 1], 4);
        check(&[0, 2, 3, 4, 1, 2], 4);
        check(&[0, 2, 3, 4, 5], 5);
        check(&[0, 2, 3, 4], 4);
        check(&[0, 2], 2);
        // What is left if "The bakery closes." is decoded over and over, with another first token from the second time on.
        let again = [0, 2, 3, 4, 1, 2, 3, 4, 1];
        assert_eq!(before_repetition(&again, true), Some(5));
        check(&again[..5], 4);
    }
}
