//! Pictures that people uploaded to start drawings from. They stay in memory, each for its person alone and for a day at
//! most, so nothing of them is in the record, in backups or on disk.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use azera_types::{PersonId, Span, Timestamp};

/// The most uploaded pictures of one person. A further one takes the place of the oldest.
const MAX_OF_PERSON: usize = 4;

/// The most bytes of all uploaded pictures together. The oldest go first.
const MAX_BYTES: usize = 64 << 20;

/// Hours for which an uploaded picture is kept.
const KEPT_HOURS: i64 = 24;

/// Random bytes of an id.
const ID_BYTES: usize = 16;

/// One uploaded picture.
struct Reference {
    id: String,
    person: PersonId,
    png: Vec<u8>,
    at: Timestamp,
}

/// The uploaded pictures, oldest first.
#[derive(Default)]
pub(crate) struct References(Mutex<VecDeque<Reference>>);

impl References {
    /// Keeps a picture. Returns its id; `None` if the system gives no random bytes.
    pub(crate) fn keep(&self, person: &PersonId, png: Vec<u8>, now: Timestamp) -> Option<String> {
        let mut random = [0; ID_BYTES];
        getrandom::fill(&mut random).ok()?;
        let id = data_encoding::HEXLOWER.encode(&random);
        let mut kept = self.kept(now);
        while kept.iter().filter(|one| one.person == *person).count() >= MAX_OF_PERSON {
            let oldest = kept.iter().position(|one| one.person == *person)?;
            kept.remove(oldest);
        }
        while kept.iter().map(|one| one.png.len()).sum::<usize>() + png.len() > MAX_BYTES && kept.pop_front().is_some()
        {
        }
        kept.push_back(Reference { id: id.clone(), person: person.clone(), png, at: now });
        Some(id)
    }

    /// Returns a picture that this person uploaded.
    pub(crate) fn get(&self, person: &PersonId, id: &str, now: Timestamp) -> Option<Vec<u8>> {
        let kept = self.kept(now);
        kept.iter().find(|one| one.id == id && one.person == *person).map(|one| one.png.clone())
    }

    /// Drops everything that a person uploaded.
    pub(crate) fn forget(&self, person: &PersonId) {
        self.lock().retain(|one| one.person != *person);
    }

    /// Drops what is too old.
    fn kept(&self, now: Timestamp) -> MutexGuard<'_, VecDeque<Reference>> {
        let mut kept = self.lock();
        kept.retain(|one| now < one.at.checked_add(Span::new().hours(KEPT_HOURS)).unwrap_or(Timestamp::MAX));
        kept
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Reference>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn person(name: &str) -> PersonId {
        PersonId::new(name).unwrap()
    }

    fn at(hour: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + hour * 3_600).unwrap()
    }

    #[test]
    fn a_picture_is_for_its_person_and_for_a_day() {
        let (references, ann, bob) = (References::default(), person("ann"), person("bob"));
        let id = references.keep(&ann, vec![1], at(0)).unwrap();
        assert_eq!(references.get(&ann, &id, at(23)), Some(vec![1]));
        assert_eq!(references.get(&bob, &id, at(0)), None);
        assert_eq!(references.get(&ann, &id, at(24)), None);
        let id = references.keep(&ann, vec![2], at(25)).unwrap();
        references.forget(&bob);
        assert!(references.get(&ann, &id, at(25)).is_some());
        references.forget(&ann);
        assert_eq!(references.get(&ann, &id, at(25)), None);
    }

    #[test]
    fn the_oldest_goes_first() {
        let (references, ann, bob) = (References::default(), person("ann"), person("bob"));
        let first = references.keep(&ann, vec![0], at(0)).unwrap();
        let bobs = references.keep(&bob, vec![0], at(0)).unwrap();
        for _ in 0..MAX_OF_PERSON {
            references.keep(&ann, vec![0], at(0)).unwrap();
        }
        assert_eq!(references.get(&ann, &first, at(0)), None);
        assert!(references.get(&bob, &bobs, at(0)).is_some(), "what others upload counts for them");
        references.keep(&person("cid"), vec![0; MAX_BYTES], at(0)).unwrap();
        assert_eq!(references.get(&bob, &bobs, at(0)), None, "all together have one bound");
    }
}
