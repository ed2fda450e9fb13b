//! The score of one candidate.

/// Largest score BM25 gives one word of a text, before idf: `k1 + 1` for tantivy's `k1` of 1.2.
const BM25_CEILING: f32 = 2.2;

const SPEAKER_WEIGHT: f32 = 0.4;
const DATE_WEIGHT: f32 = 0.8;
const QUESTION_WEIGHT: f32 = -0.2;

/// What is known of a candidate.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Features {
    /// BM25 over the most a text with all the words could get; 0 to about 1.
    pub(super) lexical: f32,
    /// Cosine similarity of the turn.
    pub(super) own: f32,
    /// Cosine similarity of the turn with the one before it.
    pub(super) window: f32,
    /// Said by the one speaker the question names.
    pub(super) speaker: bool,
    /// Nearness to the time the question names, 0 to 1.
    pub(super) date: f32,
    /// A question itself: those seldom hold an answer.
    pub(super) question: bool,
}

impl Features {
    /// The sum of the signals. Scores are used as they are, not by rank: when the rare words of a question stand
    /// nowhere, the lexical signal is small and meaning decides.
    pub(super) fn score(&self) -> f32 {
        let flag = |flag: bool| if flag { 1.0 } else { 0.0 };
        self.lexical
            + self.own
            + self.window
            + SPEAKER_WEIGHT * flag(self.speaker)
            + DATE_WEIGHT * self.date
            + QUESTION_WEIGHT * flag(self.question)
    }
}

/// Makes BM25 sums comparable between questions: the factor that relates a sum to what the words' summed idf could give.
pub(super) fn lexical_norm(idf: f32) -> f32 {
    if idf > 0.0 { 1.0 / (BM25_CEILING * idf) } else { 0.0 }
}

/// The cosine of two vectors of length 1.
pub(super) fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_add_up_and_a_question_counts_less() {
        let plain = Features { lexical: 0.5, own: 0.4, window: 0.3, ..Features::default() };
        assert!((plain.score() - 1.2).abs() < 1e-6);
        assert!(Features { speaker: true, ..plain }.score() > plain.score());
        assert!(Features { date: 1.0, ..plain }.score() > plain.score());
        assert!(Features { question: true, ..plain }.score() < plain.score());
        assert_eq!(lexical_norm(0.0), 0.0);
    }
}
