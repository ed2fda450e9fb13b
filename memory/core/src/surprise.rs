//! Surprise: how far what somebody said was from what the model that answers expected. A loss alone says little: some people, and
//! some matters, are never easy to foresee. So it is held against what is usual for that person in that place; what they say
//! elsewhere changes nothing here.

use azera_types::{PersonId, PersonaId, Scope};
use serde::{Deserialize, Serialize};

use crate::rows::{Kind, MemoryRow, MessageRow};
use crate::{Batch, Durability, Error, Memory, Table, codec, keys};

/// What a key of what is usual begins with; behind it come person, place, persona.
pub(crate) const USUAL: &str = "usual";

/// Exchanges before which nothing is usual; a choice of our own.
const FEW: u32 = 5;

/// Exchanges that what is usual is made of, the newer the more; a choice of our own.
const MANY: u32 = 30;

/// The smallest standard deviation that counts, in nats a token.
const LEAST_SPREAD: f64 = 0.1;

/// Standard deviations beyond which nothing is any more surprising.
const MOST: f64 = 4.0;

/// How surprising something said was.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Surprise {
    /// Cross-entropy of the person's words behind all that stood before them, in nats a token.
    pub words: f32,
    /// The same of the words and their answer together.
    pub exchange: f32,
    /// Standard deviations above what is usual for them, the mean of both; 0 as long as nothing is.
    pub score: f32,
}

impl Surprise {
    /// The score as a share from 0 to 1, by the logistic function: 0.5 is usual.
    pub fn share(&self) -> f32 {
        1.0 / (1.0 + (-self.score).exp())
    }
}

/// Mean and variance of losses, the newer the more (Finch 2009, *Incremental calculation of weighted mean and variance*).
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
struct Running {
    mean: f64,
    variance: f64,
}

impl Running {
    /// How far a loss lies above what is usual, in standard deviations.
    fn score(&self, loss: f64) -> f64 {
        ((loss - self.mean) / self.variance.sqrt().max(LEAST_SPREAD)).clamp(-MOST, MOST)
    }

    fn take(&mut self, loss: f64, weight: f64) {
        let difference = loss - self.mean;
        self.mean += weight * difference;
        self.variance = (1.0 - weight) * (self.variance + weight * difference * difference);
    }
}

/// What is usual for a person in a place.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
struct Usual {
    words: Running,
    exchange: Running,
    seen: u32,
}

impl Usual {
    /// How surprising an exchange was by what was usual before it; it counts from then on.
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

impl Memory {
    /// Whether a message is still what it was.
    pub fn stands_as(&self, said: &MessageRow) -> Result<bool, Error> {
        let now = self.raw_message(&said.id)?;
        Ok(now.is_some_and(|now| now.text == said.text && now.author == said.author && now.scope == said.scope))
    }

    /// Keeps how surprising a message was, by its losses in nats a token; gives it, unless the message changed or was forgotten since
    /// they were measured. What is worth keeping of it matters as much at least.
    pub fn note_surprise(&self, said: &MessageRow, words: f64, exchange: f64) -> Result<Option<Surprise>, Error> {
        let _writing = self.writing(&said.chat)?;
        let Some(person) = said.author.person() else { return Ok(None) };
        if !self.stands_as(said)? {
            return Ok(None);
        }
        if !(words.is_finite() && exchange.is_finite()) {
            return Err(Error::Invalid("a loss is no number".into()));
        }
        let memories = self.memories_of(&said.id)?;
        let Some(memory) = memories.into_iter().find(|memory| memory.kind == Kind::Message) else { return Ok(None) };
        let key = usual_key(person, &said.scope, &said.persona);
        let mut usual: Usual = codec::get(self.store.as_ref(), Table::Settings, &key)?.unwrap_or_default();
        let surprise = usual.take(words, exchange);
        let mut batch = Batch::new();
        codec::put(&mut batch, Table::Settings, key, &usual)?;
        let memory = MemoryRow { surprise: Some(surprise), ..memory }.weighed();
        codec::put(&mut batch, Table::Memories, keys::memory(memory.id), &memory)?;
        self.store.commit(batch, Durability::Soon)?;
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
    fn what_is_usual_is_learned_and_what_is_not_stands_out() {
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
        // Somebody else for whom that is usual surprises nobody by it.
        let mut wordy = Usual::default();
        for _ in 0..40 {
            wordy.take(6.0, 4.5);
        }
        assert!(wordy.take(6.0, 4.5).score.abs() < 0.1);
    }

    #[test]
    fn shares_lie_between_nothing_and_all() {
        let of = |score| Surprise { words: 1.0, exchange: 1.0, score }.share();
        assert!((of(0.0) - 0.5).abs() < 1e-6 && of(-4.0) > 0.0 && of(4.0) < 1.0);
    }
}
