//! The score of one candidate.

/// Largest BM25 score of one word in a text, before idf: `k1 + 1` for tantivy's `k1` of 1.2.
const BM25_CEILING: f32 = 2.2;

const SPEAKER_WEIGHT: f32 = 0.4;
const DATE_WEIGHT: f32 = 0.8;
const QUESTION_WEIGHT: f32 = -0.2;

/// The signals of a candidate.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Features {
    /// BM25 divided by the most that a text with all the words could get; 0 to about 1.
    pub(super) lexical: f32,
    /// Cosine similarity of the turn.
    pub(super) own: f32,
    /// Cosine similarity of the turn together with the one before it.
    pub(super) window: f32,
    /// True if the speaker that the question names said it.
    pub(super) speaker: bool,
    /// Closeness to the date that the question names, 0 to 1.
    pub(super) date: f32,
    /// True for a question; questions seldom contain an answer.
    pub(super) question: bool,
}

impl Features {
    /// Returns the weighted sum of the signals. It uses scores, not ranks: when no text contains the rare words of a
    /// question, the lexical signal is small and the meaning decides.
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

/// Returns the factor that makes BM25 sums comparable between questions: it relates a sum to the largest one that the
/// words' idf allows.
pub(super) fn lexical_norm(idf: f32) -> f32 {
    if idf > 0.0 { 1.0 / (BM25_CEILING * idf) } else { 0.0 }
}

/// Returns the cosine of two unit vectors.
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
