//! The score of one candidate.

/// Largest BM25 score of one word in a text, before idf: `k1 + 1` for tantivy's `k1` of 1.2.
const BM25_CEILING: f32 = 2.2;

const SPEAKER_WEIGHT: f32 = 0.4;
const DATE_WEIGHT: f32 = 0.8;
const QUESTION_WEIGHT: f32 = -0.2;

// Weights of the order among the best hits, next to those above. They decide which of them comes first, and never which
// hits are among the best: a time is soft evidence, and people mention events long after them.

/// Weight of a date there.
const FIRST_DATE_WEIGHT: f32 = 0.9;
/// Weight of a time that a question names by an event. The event may not have been found.
const EVENT_DATE_WEIGHT: f32 = 0.5;
/// Idf that a time stands for, next to the words of its question.
const TIME_IDF: f32 = 2.0;
const OTHER_WEIGHT: f32 = -0.3;
const EVENT_WEIGHT: f32 = -0.6;

/// The signals of a candidate.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Features {
    /// BM25 divided by the most that a text with all the words could get; 0 to about 1.
    pub(super) lexical: f32,
    /// The same, where the time of the question counts as one of its words.
    pub(super) lexical_beside_time: f32,
    /// Cosine similarity of the turn.
    pub(super) own: f32,
    /// Cosine similarity of the turn together with the one before it.
    pub(super) window: f32,
    /// True if the speaker that the question names said it.
    pub(super) speaker: bool,
    /// Closeness to the time that the question names, 0 to 1.
    pub(super) date: f32,
    /// The same by when it was said, whatever time it speaks of.
    pub(super) said_then: f32,
    /// By how much ratings of this place change the score.
    pub(super) rated: f32,
    /// True if the question names an event in place of a date.
    pub(super) by_event: bool,
    /// True if the time counts from now or from an event.
    pub(super) is_relative: bool,
    /// True for the event before or after which the question asks; it is seldom the answer.
    pub(super) event: bool,
    /// True if somebody else than the named speaker speaks of themselves.
    pub(super) of_another: bool,
    /// True for a question; questions seldom contain an answer.
    pub(super) question: bool,
}

impl Features {
    /// Returns the weighted sum of the signals. It uses scores, not ranks: when no text contains the rare words of a
    /// question, the lexical signal is small and the meaning decides.
    pub(super) fn score(&self) -> f32 {
        let date = if self.is_relative { 0.0 } else { DATE_WEIGHT * self.date.max(self.said_then) };
        self.lexical + date + self.apart_from_time()
    }

    /// Returns the score by which the best hits are ordered. It differs from [`Features::score`] only for questions that
    /// name a time or an event, or that ask for what holds now or held before.
    pub(super) fn order(&self) -> f32 {
        let date_weight = if self.by_event { EVENT_DATE_WEIGHT } else { FIRST_DATE_WEIGHT };
        self.lexical_beside_time
            + date_weight * self.date
            + EVENT_WEIGHT * flag(self.event)
            + OTHER_WEIGHT * flag(self.of_another)
            + self.apart_from_time()
    }

    fn apart_from_time(&self) -> f32 {
        self.own
            + self.window
            + self.rated
            + SPEAKER_WEIGHT * flag(self.speaker)
            + QUESTION_WEIGHT * flag(self.question)
    }
}

fn flag(flag: bool) -> f32 {
    if flag { 1.0 } else { 0.0 }
}

/// Returns the factor that makes BM25 sums comparable between questions: it relates a sum to the largest one that the
/// words' idf allows. If the question names a time, its words are only a part of what is asked for.
pub(super) fn lexical_norm(idf: f32, has_time: bool) -> f32 {
    let idf = if has_time && idf > 0.0 { idf + TIME_IDF } else { idf };
    if idf > 0.0 { 1.0 / (BM25_CEILING * idf) } else { 0.0 }
}

/// Returns the cosine of two unit vectors. Eight sums side by side let the processor add eight numbers at once.
pub(crate) fn dot(one: &[f32], other: &[f32]) -> f32 {
    let ((one, one_rest), (other, other_rest)) = (one.as_chunks::<8>(), other.as_chunks::<8>());
    let mut sums = [0.0_f32; 8];
    for (a, b) in one.iter().zip(other) {
        for ((sum, a), b) in sums.iter_mut().zip(a).zip(b) {
            *sum += a * b;
        }
    }
    let rest: f32 = one_rest.iter().zip(other_rest).map(|(a, b)| a * b).sum();
    sums.iter().sum::<f32>() + rest
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
        assert_eq!(lexical_norm(0.0, false), 0.0);
        assert!(lexical_norm(2.0, true) < lexical_norm(2.0, false));
        let by_event = Features { date: 1.0, by_event: true, is_relative: true, ..plain };
        assert_eq!(by_event.score(), plain.score());
        assert!(plain.order() < by_event.order() && by_event.order() < Features { date: 1.0, ..plain }.order());
        assert!(Features { event: true, ..by_event }.order() < by_event.order());
    }
}
