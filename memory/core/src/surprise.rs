//! Surprise: how far a message differs from what the answering model expected. The loss alone says little, because some
//! people and topics are always hard to predict. So the loss is compared with the usual losses of that person in that
//! place. Messages in other places do not count.

use azera_types::{PersonId, PersonaId, Scope};
use serde::{Deserialize, Serialize};

use crate::domains::Training;
use crate::rows::{Kind, MemoryRow, MessageRow};
use crate::{Batch, Durability, Error, Table, codec, keys};

/// First part of the keys of usual losses; person, place and persona follow.
pub(crate) const USUAL: &str = "usual";

/// Exchanges before the first score; our own choice.
const FEW: u32 = 5;

/// Exchanges that the running mean covers; newer ones weigh more; our own choice.
const MANY: u32 = 30;

/// Smallest standard deviation used, in nats per token.
const LEAST_SPREAD: f64 = 0.1;

/// Largest score, in standard deviations.
const MOST: f64 = 4.0;

/// The surprise of a message.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Surprise {
    /// Cross-entropy of the person's words after everything before them, in nats per token.
    pub words: f32,
    /// Cross-entropy of the words and the reply together, in nats per token.
    pub exchange: f32,
    /// Standard deviations above the usual loss, the mean of both; 0 until enough exchanges are known.
    pub score: f32,
}

impl Surprise {
    /// Returns the score as a share from 0 to 1 (logistic function); 0.5 is usual.
    pub fn share(&self) -> f32 {
        1.0 / (1.0 + (-self.score).exp())
    }
}

/// Exponentially weighted mean and variance of losses (Finch 2009, *Incremental calculation of weighted mean and
/// variance*).
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
struct Running {
    mean: f64,
    variance: f64,
}

impl Running {
    /// Returns how far a loss lies above the usual one, in standard deviations.
    fn score(&self, loss: f64) -> f64 {
        ((loss - self.mean) / self.variance.sqrt().max(LEAST_SPREAD)).clamp(-MOST, MOST)
    }

    fn take(&mut self, loss: f64, weight: f64) {
        let difference = loss - self.mean;
        self.mean += weight * difference;
        self.variance = (1.0 - weight) * (self.variance + weight * difference * difference);
    }
}

/// Usual losses of a person in a place.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
struct Usual {
    words: Running,
    exchange: Running,
    seen: u32,
}

impl Usual {
    /// Returns the surprise of an exchange compared with earlier ones, then adds it to them.
    fn take(&mut self, words: f64, exchange: f64) -> Surprise {
        let score = match self.seen {
            0..FEW => 0.0,
            _ => (self.words.score(words) + self.exchange.score(exchange)) / 2.0,
        };
        self.seen = self.seen.saturating_add(1);
        let weight = 1.0 / f64::from(self.seen.min(MANY));
        self.words.take(words, weight);
        self.exchange.take(exchange, weight);
        Surprise { words: words as f32, exchange: exchange as f32, score: score as f32 }
    }
}

impl Training<'_> {
    /// Returns true if a message is unchanged.
    pub fn stands_as(self, said: &MessageRow) -> Result<bool, Error> {
        let now = self.0.messages().raw_message(&said.id)?;
        Ok(now.is_some_and(|now| now.text == said.text && now.author == said.author && now.scope == said.scope))
    }

    /// Stores the surprise of a message from its losses in nats per token, and returns it. Returns `None` if the
    /// message changed or was forgotten since the measurement. A mark of the message becomes at least as important as
    /// the surprise.
    pub fn note_surprise(self, said: &MessageRow, words: f64, exchange: f64) -> Result<Option<Surprise>, Error> {
        let _writing = self.0.writing(&said.chat)?;
        let Some(person) = said.author.person() else { return Ok(None) };
        if !self.stands_as(said)? {
            return Ok(None);
        }
        if !(words.is_finite() && exchange.is_finite()) {
            return Err(Error::Invalid("a loss is no number".into()));
        }
        let memories = self.0.turns().memories_of(&said.id)?;
        let Some(memory) = memories.into_iter().find(|memory| memory.kind == Kind::Message) else { return Ok(None) };
        let key = usual_key(person, &said.scope, &said.persona);
        let mut usual: Usual = codec::get(self.0.store.as_ref(), Table::Settings, &key)?.unwrap_or_default();
        let surprise = usual.take(words, exchange);
        let mut batch = Batch::new();
        codec::put(&mut batch, Table::Settings, key, &usual)?;
        let memory = MemoryRow { surprise: Some(surprise), ..memory }.weighed();
        codec::put(&mut batch, Table::Memories, keys::memory(memory.id), &memory)?;
        self.0.store.commit(batch, Durability::Soon)?;
        Ok(Some(surprise))
    }
}

fn usual_key(person: &PersonId, place: &Scope, persona: &PersonaId) -> Vec<u8> {
    keys::prefix(&[USUAL, person.as_str(), &place.to_string(), persona.as_str()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unusual_loss_scores_high_after_many_usual_ones() {
        let mut usual = Usual::default();
        for round in 0..40 {
            let loss = 3.0 + f64::from(round % 3) * 0.3;
            let surprise = usual.take(loss, loss - 1.0);
            assert!(surprise.score.abs() < 2.0, "{surprise:?} in round {round}");
            assert!(round >= 5 || surprise.score == 0.0, "nothing is usual yet: {surprise:?}");
        }
        let before = usual;
        let surprise = usual.take(6.0, 4.5);
        assert!(surprise.score > 3.0 && surprise.share() > 0.95, "{surprise:?}");
        assert!(usual.words.mean > before.words.mean && usual.words.mean < 3.6, "{usual:?}");
        // The same losses are no surprise from a person for whom they are usual.
        let mut wordy = Usual::default();
        for _ in 0..40 {
            wordy.take(6.0, 4.5);
        }
        assert!(wordy.take(6.0, 4.5).score.abs() < 0.1);
    }

    #[test]
    fn shares_lie_between_zero_and_one() {
        let of = |score| Surprise { words: 1.0, exchange: 1.0, score }.share();
        assert!((of(0.0) - 0.5).abs() < 1e-6 && of(-4.0) > 0.0 && of(4.0) < 1.0);
    }
}
