//! Tells transcripts of speech from those that Whisper makes up for silence and noise.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::ZlibEncoder;

use crate::greedy::Decoded;

/// From this probability of no speech on, an unsure transcript is made up.
const NO_SPEECH: f32 = 0.6;
/// Below this mean logarithm of its tokens' probabilities, a transcript is unsure.
const UNSURE: f32 = -1.0;
/// From this compression ratio on, a transcript repeats itself.
const REPETITIVE: f32 = 2.4;
/// From this probability of no speech on, a phrase that Whisper likes to make up is made up.
const PHRASE_NO_SPEECH: f32 = 0.2;
/// Below this mean logarithm, such a phrase is made up.
const PHRASE_UNSURE: f32 = -0.5;

/// What Whisper writes for silence and noise, as it does under the films that it learnt from. In lower case, without
/// punctuation.
const PHRASES: &[&str] = &[
    "you",
    "thank you",
    "thank you very much",
    "thank you for watching",
    "thank you so much for watching",
    "thanks for watching",
    "thanks for listening",
    "please subscribe",
    "please subscribe to my channel",
    "like and subscribe",
    "subtitles by the amaraorg community",
    "ill see you next time",
    "see you next time",
    "see you in the next video",
    "bye",
    "bye bye",
    "the end",
    "so",
    "oh",
    "okay",
    "music",
    "applause",
    "silence",
    "beep",
    "bell",
];

/// What speaks for and against a transcript.
pub struct Evidence {
    /// Mean probability of the tokens.
    pub(crate) confidence: f32,
    /// Mean natural logarithm of the tokens' probabilities.
    mean_log: f32,
    no_speech: f32,
    /// Bytes of the text for one byte of its compressed form.
    compression_ratio: f32,
}

impl Evidence {
    /// Weighs a transcript by what another engine reports: the mean natural logarithm of its tokens' probabilities, and
    /// the probability of no speech.
    pub fn reported(text: &str, mean_log: f32, no_speech: f32) -> Self {
        Self { confidence: mean_log.exp().min(1.0), mean_log, no_speech, compression_ratio: compression_ratio(text) }
    }

    /// Weighs a transcript.
    pub(crate) fn of(text: &str, decoded: &Decoded) -> Self {
        let count = decoded.probabilities.len().max(1) as f32;
        let logs = decoded.probabilities.iter().map(|probability| probability.max(f32::MIN_POSITIVE).ln());
        Self {
            confidence: decoded.probabilities.iter().sum::<f32>() / count,
            mean_log: logs.sum::<f32>() / count,
            no_speech: decoded.no_speech,
            compression_ratio: compression_ratio(text),
        }
    }
}

/// Returns true if a transcript tells what somebody said.
pub fn is_speech(text: &str, evidence: &Evidence) -> bool {
    let plain: String =
        text.chars().filter(|c| c.is_alphanumeric() || *c == ' ').flat_map(char::to_lowercase).collect();
    let plain = plain.trim();
    let is_made_up = evidence.no_speech >= NO_SPEECH && evidence.mean_log < UNSURE;
    let is_weak = evidence.no_speech >= PHRASE_NO_SPEECH || evidence.mean_log < PHRASE_UNSURE;
    let is_repetitive = evidence.compression_ratio >= REPETITIVE;
    let is_usual_phrase = is_weak && PHRASES.contains(&plain);
    !(plain.is_empty() || is_made_up || is_repetitive || is_usual_phrase)
}

fn compression_ratio(text: &str) -> f32 {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    // Writing to memory cannot fail; a failure would count as an incompressible text.
    let compressed = encoder.write_all(text.as_bytes()).and_then(|()| encoder.finish());
    compressed.map_or(1.0, |compressed| text.len() as f32 / compressed.len().max(1) as f32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evidence(no_speech: f32, probability: f32, text: &str) -> Evidence {
        let probabilities = vec![probability; 5];
        Evidence::of(text, &Decoded { tokens: vec![0; 5], probabilities, attention: vec![], no_speech })
    }

    #[test]
    fn made_up_transcripts_are_dropped() {
        fn check(text: &str, no_speech: f32, probability: f32, expected: bool) {
            assert_eq!(is_speech(text, &evidence(no_speech, probability, text)), expected, "{text}");
        }
        check("The boat leaves at nine.", 0.1, 0.9, true);
        check("The boat leaves at nine.", 0.7, 0.9, true);
        check("The boat leaves at nine.", 0.7, 0.2, false);
        check("Thank you.", 0.02, 0.9, true);
        check("Thank you.", 0.3, 0.9, false);
        check("Thanks for watching!", 0.1, 0.4, false);
        check(" ... ", 0.0, 0.9, false);
        check("", 0.0, 0.9, false);
        check(&"and then ".repeat(30), 0.0, 0.9, false);
    }
}
