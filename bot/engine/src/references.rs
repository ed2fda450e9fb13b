//! Pictures that people uploaded to start drawings from. They stay in memory, each for its person alone and for a day at
//! most. A request that waits has a copy of its own in the record, until it ends.

use std::collections::{HashSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use azera_types::{PersonId, Span, Timestamp};

/// The most uploaded pictures of one person. A further one takes the place of the oldest.
const MAX_OF_PERSON: usize = 4;

/// The most bytes of all uploaded pictures together. The oldest go first.
const MAX_BYTES: usize = 64 << 20;

/// Hours for which an uploaded picture is kept.
pub(crate) const KEPT_HOURS: i64 = 24;

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
    /// Keeps a picture and returns its id. The oldest others make room, except those of `needed`, which waiting drawings
    /// start from. The error says why it is not kept.
    pub(crate) fn keep(
        &self,
        person: &PersonId,
        png: Vec<u8>,
        now: Timestamp,
        needed: &HashSet<String>,
    ) -> Result<String, &'static str> {
        let mut random = [0; ID_BYTES];
        getrandom::fill(&mut random).map_err(|_| "the system gives no random bytes")?;
        let id = data_encoding::HEXLOWER.encode(&random);
        let mut kept = self.kept(now);
        let gone = making_room(&kept, person, png.len(), needed)
            .ok_or("drawings that wait start from too many others; send it again when some are drawn")?;
        kept.retain(|one| !gone.contains(&one.id));
        kept.push_back(Reference { id: id.clone(), person: person.clone(), png, at: now });
        Ok(id)
    }

    /// Drops a picture.
    pub(crate) fn remove(&self, id: &str) {
        self.lock().retain(|one| one.id != id);
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

/// Returns the ids of those that make room for `size` bytes of a person; `None` if too many are needed.
fn making_room(
    kept: &VecDeque<Reference>,
    person: &PersonId,
    size: usize,
    needed: &HashSet<String>,
) -> Option<HashSet<String>> {
    let idle = || kept.iter().filter(|one| !needed.contains(&one.id));
    let surplus = (kept.iter().filter(|one| one.person == *person).count() + 1).saturating_sub(MAX_OF_PERSON);
    let mut gone: HashSet<String> =
        idle().filter(|one| one.person == *person).take(surplus).map(|one| one.id.clone()).collect();
    if gone.len() < surplus {
        return None;
    }
    let left = kept.iter().filter(|one| !gone.contains(&one.id));
    let mut bytes = size + left.map(|one| one.png.len()).sum::<usize>();
    for one in idle() {
        if bytes <= MAX_BYTES {
            break;
        }
        if gone.insert(one.id.clone()) {
            bytes -= one.png.len();
        }
    }
    (bytes <= MAX_BYTES).then_some(gone)
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
        let id = references.keep(&ann, vec![1], at(0), &HashSet::new()).unwrap();
        assert_eq!(references.get(&ann, &id, at(23)), Some(vec![1]));
        assert_eq!(references.get(&bob, &id, at(0)), None);
        assert_eq!(references.get(&ann, &id, at(24)), None);
        let id = references.keep(&ann, vec![2], at(25), &HashSet::new()).unwrap();
        references.forget(&bob);
        assert!(references.get(&ann, &id, at(25)).is_some());
        references.forget(&ann);
        assert_eq!(references.get(&ann, &id, at(25)), None);
    }

    #[test]
    fn the_oldest_goes_first() {
        let (references, ann, bob) = (References::default(), person("ann"), person("bob"));
        let first = references.keep(&ann, vec![0], at(0), &HashSet::new()).unwrap();
        let bobs = references.keep(&bob, vec![0], at(0), &HashSet::new()).unwrap();
        for _ in 0..MAX_OF_PERSON {
            references.keep(&ann, vec![0], at(0), &HashSet::new()).unwrap();
        }
        assert_eq!(references.get(&ann, &first, at(0)), None);
        assert!(references.get(&bob, &bobs, at(0)).is_some(), "what others upload counts for them");
        references.keep(&person("cid"), vec![0; MAX_BYTES], at(0), &HashSet::new()).unwrap();
        assert_eq!(references.get(&bob, &bobs, at(0)), None, "all together have one bound");
    }

    #[test]
    fn a_picture_that_a_waiting_drawing_starts_from_stays() {
        let (references, ann, bob) = (References::default(), person("ann"), person("bob"));
        let first = references.keep(&ann, vec![0], at(0), &HashSet::new()).unwrap();
        let needed = HashSet::from([first.clone()]);
        let mut ids: Vec<_> = (0..5).map(|_| references.keep(&ann, vec![0], at(0), &needed).unwrap()).collect();
        assert!(references.get(&ann, &first, at(0)).is_some());
        assert_eq!(references.get(&ann, &ids[0], at(0)), None);
        ids.push(first.clone());
        let all = ids.into_iter().collect();
        assert!(references.keep(&ann, vec![0], at(0), &all).is_err(), "the bound stays");
        assert!(references.keep(&bob, vec![0; MAX_BYTES], at(0), &all).is_err());
        assert!(references.get(&ann, &first, at(0)).is_some());
        references.remove(&first);
        assert_eq!(references.get(&ann, &first, at(0)), None);
    }
}
