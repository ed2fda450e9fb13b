//! What a model that reads question and text together thinks of the best hits, and how that is mixed with the score
//! of the signals. The model is asked outside of this crate.

use std::collections::HashMap;

use azera_types::MemoryId;

use super::Hit;
use super::deeper::NOT_REACHED;
use super::time::AskedTime;
use crate::Stored;

/// Name of the signal of a hit on whose place the model had a say.
const SIGNAL: &str = "reranked";

/// The best hits before their last order. All of them may be shown under the read scope that they were chosen for. `Debug`
/// shows no contents.
pub struct Shortlist {
    pub(super) hits: Vec<Hit>,
    pub(super) stored: HashMap<MemoryId, Stored>,
    pub(super) time: Option<AskedTime>,
    pub(super) rated: HashMap<MemoryId, f32>,
    pub(super) missing: Vec<&'static str>,
}

impl std::fmt::Debug for Shortlist {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Shortlist[{}]", self.hits.len())
    }
}

impl Shortlist {
    /// Returns the texts of the first `most` hits, with their ids: of long ones, the parts that answer the question.
    pub fn texts(&self, most: usize) -> impl Iterator<Item = (MemoryId, &str)> {
        self.hits.iter().take(most).map(|hit| (hit.memory.id, hit.snippet.as_str()))
    }

    /// Returns the indexes that failed. A search that did not reach all older memories is no failure.
    pub fn failed(&self) -> impl Iterator<Item = &'static str> {
        self.missing.iter().copied().filter(|name| *name != NOT_REACHED)
    }
}

/// Scores of a model for hits. Higher is better; they compare only with each other.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Opinion {
    /// Finite scores of the hits that the model read.
    pub scores: HashMap<MemoryId, f32>,
    /// The share of the model in the mixture, 0 to 1.
    pub weight: f32,
}

impl Opinion {
    /// Mixes the scores into those of the hits that the model read, and orders these anew. Both kinds of score are scaled
    /// to 0 to 1 among these hits first, because a model's scores may have any range. The mixture is scaled back, so that
    /// it compares with the scores of other hits. Nothing changes if all scores of the model are equal.
    pub(super) fn mix(&self, hits: &mut [Hit]) {
        let is_read = |hit: &Hit| self.scores.contains_key(&hit.memory.id);
        let read = hits.iter().take_while(|hit| is_read(hit)).count();
        let (hits, _) = hits.split_at_mut(read);
        let opinion = |hit: &Hit| self.scores.get(&hit.memory.id).copied().unwrap_or_default();
        if self.weight <= 0.0 {
            return;
        }
        let Some(said) = Range::of(hits.iter().map(opinion)).filter(|said| said.width() > 0.0) else { return };
        // The signals' score of a hit may exceed that of one before it: its place counts.
        let mut least = f32::INFINITY;
        for hit in &mut *hits {
            least = least.min(hit.score);
            hit.score = least;
        }
        let Some(scored) = Range::of(hits.iter().map(|hit| hit.score)) else { return };
        let weight = f64::from(self.weight);
        for hit in &mut *hits {
            let mixed = weight * said.share(opinion(hit)) + (1.0 - weight) * scored.share(hit.score);
            hit.score = (scored.least + mixed * scored.width()) as f32;
            hit.signals.push(SIGNAL);
        }
        if scored.width() <= 0.0 {
            // The signals find all of them equal, so the model alone decides.
            hits.sort_by(|one, other| opinion(other).total_cmp(&opinion(one)));
        } else {
            hits.sort_by(|one, other| other.score.total_cmp(&one.score));
        }
    }
}

/// The least and the greatest of some scores. Their difference may exceed an `f32`.
#[derive(Clone, Copy)]
struct Range {
    least: f64,
    greatest: f64,
}

impl Range {
    fn of(scores: impl Iterator<Item = f32>) -> Option<Self> {
        scores.map(f64::from).fold(None, |range, score| {
            let Self { least, greatest } = range.unwrap_or(Self { least: score, greatest: score });
            Some(Self { least: least.min(score), greatest: greatest.max(score) })
        })
    }

    fn width(self) -> f64 {
        self.greatest - self.least
    }

    /// Returns where a score stands between the least (0) and the greatest (1).
    fn share(self, score: f32) -> f64 {
        if self.width() > 0.0 { (f64::from(score) - self.least) / self.width() } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use azera_types::{Author, PersonId, PersonaId, Scope, Text};

    use super::*;
    use crate::rows::{Kind, MemoryRow};
    use crate::{Shown, Validity};

    fn memory(id: u64) -> MemoryRow {
        let person = PersonId::new("ann").unwrap();
        MemoryRow {
            salience: None,
            surprise: None,
            apart: false,
            replaced: None,
            id: MemoryId(id),
            persona: PersonaId::new("azera").unwrap(),
            kind: Kind::Message,
            scope: Scope::Dm(person.clone()),
            source_scopes: Vec::new(),
            chat: None,
            session: 0,
            author: Author::Person { id: person, name: "Ann".into() },
            sources: Vec::new(),
            text: Text::default(),
            at: "2026-01-01T00:00:00Z".parse().unwrap(),
        }
    }

    /// Mixes scores into hits with falling scores 1.0, 0.9 ... and returns the new order by number and score.
    fn mixed(hits: usize, scores: &[f32], weight: f32) -> Vec<(u64, f32)> {
        let hit = |number: usize| Hit {
            memory: memory(number as u64),
            snippet: Default::default(),
            shown: Shown::new(),
            score: 1.0 - 0.1 * number as f32,
            signals: Vec::new(),
            validity: Validity::default(),
            again: Vec::new(),
        };
        let mut hits: Vec<Hit> = (0..hits).map(hit).collect();
        let scores = scores.iter().enumerate().map(|(number, score)| (MemoryId(number as u64), *score)).collect();
        Opinion { scores, weight }.mix(&mut hits);
        hits.iter().map(|hit| (hit.memory.id.0, (hit.score * 100.0).round() / 100.0)).collect()
    }

    fn order(mixed: &[(u64, f32)]) -> Vec<u64> {
        mixed.iter().map(|(number, _)| *number).collect()
    }

    #[test]
    fn a_search_that_did_not_reach_everything_did_not_fail() {
        let (stored, rated) = (HashMap::new(), HashMap::new());
        let missing = vec![NOT_REACHED, "semantic"];
        let shortlist = Shortlist { hits: Vec::new(), stored, time: None, rated, missing };
        assert_eq!(shortlist.failed().collect::<Vec<_>>(), ["semantic"]);
    }

    #[test]
    fn both_scores_count_by_their_weight_whatever_their_range() {
        assert_eq!(order(&mixed(3, &[-9.0, -2.0, -8.5], 1.0)), [1, 2, 0], "the model alone");
        assert_eq!(order(&mixed(3, &[-9.0, -2.0, -8.5], 0.0)), [0, 1, 2], "the signals alone");
        assert_eq!(mixed(3, &[0.0, 0.9, 0.8], 0.5), [(1, 0.95), (0, 0.9), (2, 0.89)]);
        assert_eq!(mixed(3, &[-9.0, 891.0, 791.0], 0.5), [(1, 0.95), (0, 0.9), (2, 0.89)]);
    }

    #[test]
    fn what_the_model_did_not_read_stays_behind_and_a_model_without_opinion_changes_nothing() {
        assert_eq!(mixed(4, &[0.0, 1.0], 1.0), [(1, 1.0), (0, 0.9), (2, 0.8), (3, 0.7)]);
        assert_eq!(order(&mixed(3, &[0.5, 0.5, 0.5], 1.0)), [0, 1, 2]);
        assert_eq!(order(&mixed(3, &[f32::MIN, f32::MAX, 0.0], 1.0)), [1, 2, 0]);
        assert_eq!(order(&mixed(1, &[0.5], 1.0)), [0]);
        assert_eq!(order(&mixed(0, &[], 1.0)), [0; 0]);
    }
}
