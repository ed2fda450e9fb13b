//! A made-up community that talks in a realm's public channels and in DMs. Its words follow Zipf's law, like those of
//! real languages. The same seed gives the same community.

use azera_types::{ChatId, IdError, MessageId, PersonId, PersonaId, Place, PlaceKind, RealmId, Timestamp};

/// Number of people.
pub const PEOPLE: usize = 100;

/// Number of public channels in the realm.
pub const CHANNELS: usize = 20;

/// Out of ten messages, the number in public channels; the others are DMs.
const PUBLIC_OF_TEN: usize = 6;

/// Number of words in the language.
const VOCABULARY: usize = 20_000;

/// Number of words in a message.
const WORDS: std::ops::RangeInclusive<usize> = 6..=25;

/// Number of messages in a chat between two silences.
const CONVERSATION_MESSAGES: usize = 20;

/// Rows of the table of word vectors.
const WORD_VECTORS: usize = 4_096;

const ONSETS: [&str; 16] = ["b", "br", "d", "dr", "f", "g", "gl", "k", "l", "m", "n", "p", "r", "s", "t", "v"];
const VOWELS: [&str; 6] = ["a", "e", "i", "o", "u", "ai"];
const CODAS: [&str; 6] = ["", "n", "r", "s", "l", "k"];

/// The community and its language.
pub struct Crowd {
    random: fastrand::Rng,
    /// Cumulative word frequencies, ascending to 1.
    frequency: Vec<f64>,
    word_vectors: Vec<Vec<f32>>,
}

/// Where a message is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spot {
    /// A channel, by number.
    Channel(usize),
    /// A DM with the speaker.
    Dm,
}

/// One message of the community.
pub struct MadeUpMessage {
    pub id: MessageId,
    pub spot: Spot,
    pub person: usize,
    pub text: String,
    pub at: Timestamp,
}

impl Crowd {
    /// Creates a community from a seed; its vectors have `dimension` numbers.
    pub fn new(seed: u64, dimension: usize) -> Self {
        let weights = (1..=VOCABULARY).map(|rank| 1.0 / rank as f64);
        let all: f64 = weights.clone().sum();
        let frequency = weights.scan(0.0, |sum, weight| {
            *sum += weight / all;
            Some(*sum)
        });
        // The word vectors do not depend on the seed.
        let mut fixed = fastrand::Rng::with_seed(1);
        let word_vectors = (0..WORD_VECTORS).map(|_| (0..dimension).map(|_| fixed.f32() - 0.5).collect()).collect();
        Self { random: fastrand::Rng::with_seed(seed), frequency: frequency.collect(), word_vectors }
    }

    fn word(&mut self) -> String {
        let at = self.random.f64();
        spelled(self.frequency.partition_point(|sum| *sum < at).min(VOCABULARY - 1))
    }

    fn words(&mut self, count: usize) -> String {
        (0..count).map(|_| self.word()).collect::<Vec<_>>().join(" ")
    }

    /// Returns message number `index`. Time advances with the number.
    pub fn message(&mut self, index: usize, start: Timestamp) -> Result<MadeUpMessage, IdError> {
        let person = self.random.usize(..PEOPLE);
        let public = self.random.usize(..10) < PUBLIC_OF_TEN;
        let spot = if public { Spot::Channel(self.random.usize(..CHANNELS)) } else { Spot::Dm };
        let count = self.random.usize(WORDS);
        let text = format!("{}.", self.words(count));
        // Every place is silent for a day after each conversation.
        let silences = index / (CONVERSATION_MESSAGES * (CHANNELS + PEOPLE));
        let seconds = i64::try_from(index * 5 + silences * 86_400).unwrap_or(i64::MAX);
        let at = start.checked_add(jiff::SignedDuration::from_secs(seconds)).unwrap_or(start);
        Ok(MadeUpMessage { id: MessageId::new(format!("made-up-{index}"))?, spot, person, text, at })
    }

    /// Returns a new question.
    pub fn question(&mut self) -> String {
        let count = self.random.usize(3..=8);
        format!("What did I say about {}?", self.words(count))
    }

    /// Returns text of `words` words.
    pub fn prose(&mut self, words: usize) -> String {
        self.words(words)
    }

    /// Returns a random person.
    pub fn any_person(&mut self) -> usize {
        self.random.usize(..PEOPLE)
    }

    /// Returns a random channel.
    pub fn any_channel(&mut self) -> usize {
        self.random.usize(..CHANNELS)
    }

    /// Returns the vector of a text: the normalised sum of its word vectors. Texts that share words are close, as with
    /// a real model, at a millionth of the cost.
    pub fn vector(&self, text: &str) -> Vec<f32> {
        let mut sum = vec![0.0_f32; self.word_vectors.first().map_or(0, Vec::len)];
        for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
            let hash = word.bytes().fold(14_695_981_039_346_656_037_u64, |hash, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(1_099_511_628_211)
            });
            let row = usize::try_from(hash % WORD_VECTORS as u64).unwrap_or(0);
            if let Some(vector) = self.word_vectors.get(row) {
                sum.iter_mut().zip(vector).for_each(|(sum, value)| *sum += value);
            }
        }
        let length = sum.iter().map(|value| value * value).sum::<f32>().sqrt();
        if length > 0.0 {
            sum.iter_mut().for_each(|value| *value /= length);
        }
        sum
    }
}

/// Spells the word of a rank. Common words are short.
fn spelled(rank: usize) -> String {
    let mut word = String::new();
    let mut rest = rank;
    loop {
        let syllables = ONSETS.len() * VOWELS.len() * CODAS.len();
        let (syllable, more) = (rest % syllables, rest / syllables);
        word.push_str(ONSETS[syllable % ONSETS.len()]);
        word.push_str(VOWELS[syllable / ONSETS.len() % VOWELS.len()]);
        word.push_str(CODAS[syllable / (ONSETS.len() * VOWELS.len()) % CODAS.len()]);
        if more == 0 {
            return word;
        }
        rest = more - 1;
    }
}

/// Returns the persona that everyone talks to.
pub fn persona() -> Result<PersonaId, IdError> {
    PersonaId::new("azera")
}

/// Returns the realm of the public channels.
pub fn realm() -> Result<RealmId, IdError> {
    RealmId::new("made-up")
}

/// Returns a person's id.
pub fn person(number: usize) -> Result<PersonId, IdError> {
    PersonId::new(format!("person-{number}"))
}

/// Returns a person's display name.
pub fn name(number: usize) -> String {
    let mut name = spelled(200 + number);
    if let Some(first) = name.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    name
}

/// Returns the chat of a spot.
pub fn chat(spot: Spot, person: usize) -> Result<ChatId, IdError> {
    match spot {
        Spot::Channel(number) => ChatId::new(format!("channel-{number}")),
        Spot::Dm => ChatId::new(format!("dm-{person}")),
    }
}

/// Returns the place of a spot, which says who can read it.
pub fn place(spot: Spot, who: usize) -> Result<Place, IdError> {
    let kind = match spot {
        Spot::Channel(_) => PlaceKind::Public(realm()?),
        Spot::Dm => PlaceKind::Dm(person(who)?),
    };
    Ok(Place { chat: chat(spot, who)?, kind, since: None })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_two_words_have_the_same_spelling() {
        let words: HashSet<String> = (0..VOCABULARY).map(spelled).collect();
        assert_eq!(words.len(), VOCABULARY);
    }

    #[test]
    fn a_seed_fixes_the_messages_and_shared_words_mean_near_vectors() {
        let (mut one, mut two) = (Crowd::new(7, 64), Crowd::new(7, 64));
        let start = Timestamp::UNIX_EPOCH;
        assert_eq!(one.message(3, start).unwrap().text, two.message(3, start).unwrap().text);
        let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
        let here = one.vector("bal dor mun");
        assert!((dot(&here, &here) - 1.0).abs() < 1e-5);
        assert!(dot(&here, &one.vector("bal dor pin")) > dot(&here, &one.vector("kes tol vir")));
    }
}
