//! The order of waiting pictures: places take turns, and within a place its people do.

use std::collections::HashMap;
use std::hash::Hash;

/// A waiting picture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting<Place, Person> {
    /// Its number; a later one is larger.
    pub number: u64,
    /// Where it was asked for.
    pub place: Place,
    /// Who asked.
    pub person: Person,
}

/// Returns the numbers of the waiting pictures in the order in which they are drawn. The place that has waited longest
/// since its last picture is next, then the person there, then the oldest request. `served` are the places and people of
/// the last pictures, oldest first.
pub fn fair_order<Place, Person>(waiting: &[Waiting<Place, Person>], served: &[(Place, Person)]) -> Vec<u64>
where
    Place: Eq + Hash,
    Person: Eq + Hash,
{
    let (mut places, mut people): (HashMap<&Place, usize>, HashMap<&Person, usize>) = Default::default();
    let mut turn = 0;
    for (place, person) in served {
        turn += 1;
        places.insert(place, turn);
        people.insert(person, turn);
    }
    let mut left: Vec<&Waiting<Place, Person>> = waiting.iter().collect();
    let mut order = Vec::with_capacity(left.len());
    while let Some(at) = (0..left.len()).min_by_key(|at| {
        let one = left[*at];
        let last = |turn: Option<&usize>| turn.copied().unwrap_or(0);
        (last(places.get(&one.place)), last(people.get(&one.person)), one.number)
    }) {
        let one = left.swap_remove(at);
        turn += 1;
        places.insert(&one.place, turn);
        people.insert(&one.person, turn);
        order.push(one.number);
    }
    order
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// Makes waiting pictures from `place.person`, in order.
    fn waiting(who: &[&'static str]) -> Vec<Waiting<&'static str, &'static str>> {
        let one = |(number, who): (u64, &&'static str)| {
            let (place, person) = who.split_once('.').unwrap();
            Waiting { number, place, person }
        };
        (1..).zip(who).map(one).collect()
    }

    #[track_caller]
    fn check(who: &[&'static str], served: &[(&'static str, &'static str)], want: &[u64]) {
        assert_eq!(fair_order(&waiting(who), served), want, "{who:?}");
    }

    #[test]
    fn places_take_turns_and_people_within_them() {
        check(&["a.ann", "a.ann", "a.ann", "a.bob"], &[], &[1, 4, 2, 3]);
        check(&["a.ann", "a.bob", "a.cat", "b.dan"], &[], &[1, 4, 2, 3]);
        check(&["a.ann", "b.bob"], &[("a", "ann")], &[2, 1]);
        check(&["a.ann", "b.ann", "b.bob"], &[("c", "ann")], &[3, 1, 2]);
        check(&[], &[], &[]);
    }

    proptest! {
        #[test]
        fn everyone_is_served_once_and_nobody_far_ahead_of_another_who_waits(
            who in prop::collection::vec((0_u8..4, 0_u8..6), 0..40),
        ) {
            // Each person is in one place.
            let one = |(number, (place, person)): (u64, &(u8, u8))| Waiting { number, place: *place, person: place * 10 + person };
            let waiting: Vec<_> = (0..).zip(&who).map(one).collect();
            let order = fair_order(&waiting, &[]);
            prop_assert_eq!(order.iter().copied().collect::<BTreeSet<u64>>().len(), waiting.len());
            let mut left: HashMap<u8, usize> = HashMap::new();
            waiting.iter().for_each(|one| *left.entry(one.person).or_default() += 1);
            let mut served: HashMap<u8, usize> = left.keys().map(|person| (*person, 0)).collect();
            for number in order {
                let person = waiting[number as usize].person;
                let behind = |other: &&u8| **other / 10 == person / 10 && left[*other] > 0;
                let fewest = left.keys().filter(behind).map(|other| served[other]).min();
                prop_assert!(fewest.is_none_or(|fewest| served[&person] <= fewest), "{person} comes too early");
                *served.entry(person).or_default() += 1;
                *left.entry(person).or_default() -= 1;
            }
        }
    }
}
