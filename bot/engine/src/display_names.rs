//! What people are called where several of them have the same display name.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use azera_memory::words::fold;
use azera_types::{Author, PersonId, Scope};
use sha2::{Digest, Sha256};

/// Names of people in one prompt or answer. A person whose name somebody else has, too, gets a number. The number is
/// always the same in one place, differs between places, and says nothing about the account.
#[derive(Debug, Default)]
pub(crate) struct DisplayNames(HashMap<PersonId, String>);

impl DisplayNames {
    /// Names the people who take part in the conversation (`talking`) and the others who are mentioned. Who is the only
    /// one of a name in the conversation keeps it.
    pub(crate) fn new<'a>(
        place: &Scope,
        talking: impl IntoIterator<Item = &'a Author>,
        others: impl IntoIterator<Item = &'a Author>,
    ) -> Self {
        let mut same_name: BTreeMap<String, (BTreeSet<&PersonId>, BTreeSet<&PersonId>)> = BTreeMap::new();
        for author in talking {
            if let Author::Person { id, name } = author {
                same_name.entry(fold(name)).or_default().0.insert(id);
            }
        }
        for author in others {
            if let Author::Person { id, name } = author {
                same_name.entry(fold(name)).or_default().1.insert(id);
            }
        }
        let mut numbers = HashMap::new();
        for (talking, others) in same_name.into_values() {
            let all: BTreeSet<&PersonId> = talking.union(&others).copied().collect();
            let named = if talking.len() == 1 { &talking } else { &BTreeSet::new() };
            if all.len() < 2 {
                continue;
            }
            let mut taken = BTreeSet::new();
            for person in all {
                // Above 900 people of one name there is no free number.
                let mut tries = 0..10_000_u32;
                let number = tries.find_map(|again| Some(number(place, person, again)).filter(|it| taken.insert(*it)));
                if let Some(number) = number.filter(|_| !named.contains(person)) {
                    numbers.insert(person.clone(), number.to_string());
                }
            }
        }
        Self(numbers)
    }

    /// Returns what an author is called.
    pub(crate) fn of(&self, author: &Author) -> String {
        match author.person().and_then(|person| self.0.get(person)) {
            Some(number) => format!("{} ({number})", author.name()),
            None => author.name().to_owned(),
        }
    }

    /// Returns what a person is called; `None` for a persona.
    pub(crate) fn of_person(&self, author: &Author) -> Option<String> {
        author.person().map(|_| self.of(author))
    }
}

/// Returns a number of three digits.
fn number(place: &Scope, person: &PersonId, again: u32) -> u16 {
    let hash = Sha256::digest(format!("{place}\u{1f}{person}\u{1f}{again}"));
    let [first, second, ..] = <[u8; 32]>::from(hash);
    100 + u16::from_be_bytes([first, second]) % 900
}

#[cfg(test)]
mod tests {
    use azera_types::RealmId;

    use super::*;

    fn person(id: &str, name: &str) -> Author {
        Author::Person { id: PersonId::new(id).unwrap(), name: name.to_owned() }
    }

    fn realm(name: &str) -> Scope {
        Scope::Realm(RealmId::new(name).unwrap())
    }

    #[test]
    fn two_people_with_one_name_are_told_apart() {
        let (one, other, bob) = (person("d1", "Alex"), person("d2", "ALEX"), person("d3", "Bob"));
        let names = DisplayNames::new(&realm("hall"), [&one, &other, &bob], []);
        assert_ne!(names.of(&one), names.of(&other));
        assert!(names.of(&one).starts_with("Alex (") && names.of(&other).starts_with("ALEX ("));
        assert_eq!(names.of(&bob), "Bob");
        let again = DisplayNames::new(&realm("hall"), [&bob], [&other, &one]);
        assert_eq!((names.of(&one), names.of(&other)), (again.of(&one), again.of(&other)));
    }

    #[test]
    fn the_only_one_of_a_name_in_a_conversation_keeps_it() {
        let (here, away) = (person("d1", "Alex"), person("d2", "Alex"));
        let names = DisplayNames::new(&realm("hall"), [&here], [&away, &here]);
        assert_eq!(names.of(&here), "Alex");
        assert_ne!(names.of(&away), "Alex");
    }

    #[test]
    fn many_people_of_one_name_get_different_numbers() {
        let many: Vec<Author> = (0..200).map(|id| person(&format!("d{id}"), "Alex")).collect();
        let names = DisplayNames::new(&realm("hall"), &many, []);
        let different: BTreeSet<String> = many.iter().map(|author| names.of(author)).collect();
        assert_eq!(different.len(), many.len());
    }

    #[test]
    fn numbers_of_one_person_differ_between_places() {
        let (one, other) = (person("d1", "Alex"), person("d2", "Alex"));
        let of = |place: &str| DisplayNames::new(&realm(place), [&one, &other], []).of(&one);
        let different: BTreeSet<String> = ["a", "b", "c", "d"].map(of).into();
        assert!(different.len() > 1);
    }
}
