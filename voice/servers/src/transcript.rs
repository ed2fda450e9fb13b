//! Reads the transcripts of servers: plain ones, OpenAI's verbose form, and whisper.cpp's.

use std::time::Duration;

use azera_voice_api::{SpokenWord, Transcript};
use azera_voice_whisper::{Evidence, is_speech};
use serde::Deserialize;
use serde_json::Value;

/// An answer with a transcript.
#[derive(Deserialize)]
pub(crate) struct Answer {
    text: Option<String>,
    #[serde(default)]
    segments: Option<Vec<Segment>>,
    #[serde(default)]
    words: Option<Vec<Word>>,
    /// whisper.cpp's server reports some errors with status 200.
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Segment {
    #[serde(default)]
    text: String,
    #[serde(default)]
    start: f64,
    #[serde(default)]
    end: f64,
    avg_logprob: Option<f32>,
    no_speech_prob: Option<f32>,
    #[serde(default)]
    words: Option<Vec<Word>>,
}

#[derive(Deserialize)]
struct Word {
    word: String,
    #[serde(default)]
    start: f64,
    #[serde(default)]
    end: f64,
    probability: Option<f32>,
}

/// The reasons why an answer is no transcript.
pub(crate) enum NoTranscript {
    /// The server reports an error.
    Error(Value),
    /// The answer has no text.
    NoText,
}

impl Answer {
    /// Returns what was said in an utterance of this length. Segments that Whisper makes up for silence and noise are
    /// left out.
    pub(crate) fn transcript(self, length: Duration) -> Result<Transcript, NoTranscript> {
        if let Some(error) = self.error.filter(|error| !error.is_null()) {
            return Err(NoTranscript::Error(serde_json::json!({ "error": error })));
        }
        let text = self.text.ok_or(NoTranscript::NoText)?;
        let segments = self.segments.unwrap_or_default();
        // Without segments, only the text itself speaks for or against the transcript.
        if segments.is_empty() {
            let words = self.words.unwrap_or_default();
            let segment =
                Segment { text, start: f64::MIN, end: f64::MAX, avg_logprob: None, no_speech_prob: None, words: None };
            return Ok(joined(vec![segment], &words, length));
        }
        Ok(joined(segments, &self.words.unwrap_or_default(), length))
    }
}

fn joined(segments: Vec<Segment>, words: &[Word], length: Duration) -> Transcript {
    let no_speech = mean(segments.iter().map(|segment| (segment.no_speech_prob, segment.weight())));
    let spoken: Vec<&Segment> = segments.iter().filter(|segment| segment.is_spoken()).collect();
    let text: Vec<&str> = spoken.iter().map(|segment| segment.text.trim()).collect();
    let words = if words.is_empty() {
        spoken.iter().flat_map(|segment| whole_words(segment.words.as_deref().unwrap_or_default(), length)).collect()
    } else {
        let is_spoken = |word: &&Word| spoken.iter().any(|segment| (segment.start..=segment.end).contains(&word.start));
        words
            .iter()
            .filter(is_spoken)
            .filter_map(|word| spoken_word(&word.word, word.start, word.end, length))
            .collect()
    };
    // An answer without numbers is trusted; nothing is no transcript to trust.
    let unknown = if spoken.is_empty() { 0.0 } else { 1.0 };
    Transcript {
        text: text.join(" ").into(),
        words,
        confidence: mean(spoken.iter().map(|segment| (segment.confidence(), segment.weight()))).unwrap_or(unknown),
        no_speech: no_speech.unwrap_or(0.0).clamp(0.0, 1.0),
    }
}

impl Segment {
    /// Returns false for what is no speech: made-up sentences, and names of sounds, such as `[BLANK_AUDIO]`.
    fn is_spoken(&self) -> bool {
        let text = self.text.trim();
        let is_label = [('[', ']'), ('(', ')'), ('*', '*'), ('♪', '♪')]
            .into_iter()
            .any(|(open, close)| text.strip_prefix(open).is_some_and(|rest| rest.ends_with(close)));
        let mean_log = self.avg_logprob.unwrap_or(0.0);
        !is_label && is_speech(text, &Evidence::reported(text, mean_log, self.no_speech_prob.unwrap_or(0.0)))
    }

    fn confidence(&self) -> Option<f32> {
        let words = self.words.as_deref().unwrap_or_default();
        let of_words = mean(words.iter().map(|word| (word.probability, 1.0)));
        of_words.or_else(|| self.avg_logprob.map(f32::exp)).map(|confidence| confidence.clamp(0.0, 1.0))
    }

    /// Returns how much the segment counts in a mean: longer ones more.
    fn weight(&self) -> f32 {
        self.text.len().max(1) as f32
    }
}

/// Returns the weighted mean of the values that are there.
fn mean(values: impl Iterator<Item = (Option<f32>, f32)>) -> Option<f32> {
    let known = values.filter_map(|(value, weight)| Some((value.filter(|value| value.is_finite())?, weight)));
    let (sum, weights) =
        known.fold((0.0, 0.0), |(sum, weights), (value, weight)| (sum + value * weight, weights + weight));
    (weights > 0.0).then(|| sum / weights)
}

/// Joins the pieces of whisper.cpp's words, which are tokens: a token that begins with a space begins a word.
fn whole_words(tokens: &[Word], length: Duration) -> Vec<SpokenWord> {
    let mut words: Vec<(String, f64, f64)> = Vec::new();
    for token in tokens {
        match words.last_mut() {
            Some((word, _, end)) if !token.word.starts_with(' ') => {
                word.push_str(&token.word);
                *end = token.end;
            }
            _ => words.push((token.word.clone(), token.start, token.end)),
        }
    }
    words.iter().filter_map(|(word, start, end)| spoken_word(word, *start, *end, length)).collect()
}

/// Returns a word whose times lie within the utterance, or `None` for nothing but punctuation.
fn spoken_word(word: &str, start: f64, end: f64, length: Duration) -> Option<SpokenWord> {
    let word = word.trim();
    let at = |seconds: f64| Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(length).min(length);
    let (start, end) = (at(start), at(end));
    word.contains(char::is_alphanumeric).then(|| SpokenWord { text: word.into(), start, end: end.max(start) })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const LENGTH: Duration = Duration::from_secs(3);

    fn read(value: Value) -> Transcript {
        let answer: Answer = serde_json::from_value(value).unwrap();
        answer.transcript(LENGTH).ok().unwrap()
    }

    fn words(transcript: &Transcript) -> Vec<(&str, u128, u128)> {
        let times = |word: &SpokenWord| (word.start.as_millis(), word.end.as_millis());
        transcript.words.iter().map(|word| (&*word.text, times(word).0, times(word).1)).collect()
    }

    #[test]
    fn a_plain_transcript_is_trusted() {
        let read = read(json!({"text": " The boat leaves. "}));
        assert_eq!((&*read.text, read.words.len(), read.confidence, read.no_speech), ("The boat leaves.", 0, 1.0, 0.0));
    }

    #[test]
    fn a_verbose_transcript_has_words_and_confidence() {
        let read = read(json!({
            "task": "transcribe", "language": "english", "duration": 3.0, "text": "The boat leaves.",
            "segments": [{"id": 0, "start": 0.0, "end": 2.0, "text": " The boat leaves.", "tokens": [1],
                          "avg_logprob": -0.25, "compression_ratio": 0.8, "no_speech_prob": 0.125}],
            "words": [{"word": "The", "start": 0.1, "end": 0.3}, {"word": "boat", "start": 0.3, "end": 0.6},
                      {"word": "leaves", "start": 0.6, "end": 9.0}],
        }));
        assert_eq!(&*read.text, "The boat leaves.");
        assert_eq!(words(&read), [("The", 100, 300), ("boat", 300, 600), ("leaves", 600, 3_000)]);
        assert!((read.confidence - (-0.25_f32).exp()).abs() < 1e-6);
        assert_eq!(read.no_speech, 0.125);
    }

    #[test]
    fn tokens_of_whisper_cpp_become_words() {
        let read = read(json!({
            "text": " Leave the harbour.\n",
            "segments": [{"id": 0, "text": " Leave the harbour.", "start": 0.0, "end": 2.0, "avg_logprob": -0.2,
                          "no_speech_prob": 0.01, "words": [
                {"word": " Leave", "start": 0.0, "end": 0.4, "probability": 0.9},
                {"word": " the", "start": 0.4, "end": 0.5, "probability": 0.8},
                {"word": " har", "start": 0.5, "end": 0.7, "probability": 0.7},
                {"word": "bour", "start": 0.7, "end": 0.9, "probability": 0.6},
                {"word": ".", "start": 0.9, "end": 1.0, "probability": 0.5}]}],
        }));
        assert_eq!(&*read.text, "Leave the harbour.");
        assert_eq!(words(&read), [("Leave", 0, 400), ("the", 400, 500), ("harbour.", 500, 1_000)]);
        assert!((read.confidence - 0.7).abs() < 1e-6);
    }

    #[test]
    fn made_up_segments_and_names_of_sounds_are_left_out() {
        let segment = |text: &str, start: f64, log: f32, no_speech: f32| json!({"text": text, "start": start, "end": start + 1.0, "avg_logprob": log, "no_speech_prob": no_speech});
        let read = read(json!({
            "text": "ignored", "words": [{"word": "Hello", "start": 0.1, "end": 0.2}, {"word": "Thank", "start": 1.5, "end": 1.7}],
            "segments": [segment(" Hello there.", 0.0, -0.2, 0.1), segment(" Thank you.", 1.2, -0.2, 0.5),
                         segment(" [BLANK_AUDIO]", 2.4, -0.2, 0.1), segment(" I saw a ghost.", 2.4, -1.5, 0.8)],
        }));
        assert_eq!((&*read.text, words(&read)), ("Hello there.", vec![("Hello", 100, 200)]));
        let nothing = self::read(json!({"text": " (music) ", "segments": []}));
        assert!(nothing.text.is_empty() && nothing.words.is_empty());
    }

    #[test]
    fn an_answer_without_a_text_is_no_transcript() {
        let answer: Answer = serde_json::from_value(json!({"error": "failed to read audio data"})).unwrap();
        assert!(matches!(answer.transcript(LENGTH), Err(NoTranscript::Error(_))));
        let answer: Answer = serde_json::from_value(json!({})).unwrap();
        assert!(matches!(answer.transcript(LENGTH), Err(NoTranscript::NoText)));
        let strange = json!({"text": "a b", "words": [{"word": "a", "start": -4.0, "end": 1e300}]});
        assert_eq!(words(&read(strange)), [("a", 0, 3_000)]);
    }
}
