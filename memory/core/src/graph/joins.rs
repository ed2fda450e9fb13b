//! Groups of names that statements join. Each statement is looked at once, however long the chains are.

use std::collections::HashMap;
use std::hash::Hash;

/// Names in groups.
#[derive(Debug)]
pub(super) struct Joins<N> {
    numbers: HashMap<N, usize>,
    /// The number of the name that stands for the group of each name.
    roots: Vec<usize>,
}

impl<N: Copy + Eq + Hash> Joins<N> {
    /// Returns the groups in which the names of each pair are together.
    pub(super) fn new(pairs: impl IntoIterator<Item = (N, N)>) -> Self {
        let mut joins = Self { numbers: HashMap::new(), roots: Vec::new() };
        for (one, other) in pairs {
            let (one, other) = (joins.number(one), joins.number(other));
            let (one, other) = (joins.root(one), joins.root(other));
            joins.roots[other] = one;
        }
        for number in 0..joins.roots.len() {
            joins.roots[number] = joins.root(number);
        }
        joins
    }

    /// Returns the group of a name; `None` if nothing joins it with another.
    pub(super) fn group(&self, name: N) -> Option<usize> {
        self.numbers.get(&name).and_then(|number| self.roots.get(*number)).copied()
    }

    fn number(&mut self, name: N) -> usize {
        let next = self.roots.len();
        let number = *self.numbers.entry(name).or_insert(next);
        if number == next {
            self.roots.push(next);
        }
        number
    }

    /// Returns the root of a number, and shortens the way to it.
    fn root(&mut self, mut number: usize) -> usize {
        while self.roots[number] != number {
            self.roots[number] = self.roots[self.roots[number]];
            number = self.roots[number];
        }
        number
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::hash::Hasher;

    use super::*;

    /// A number that counts how often it is looked up.
    #[derive(Debug, Clone, Copy)]
    struct Counted<'a>(usize, &'a Cell<usize>);

    impl PartialEq for Counted<'_> {
        fn eq(&self, other: &Self) -> bool {
            self.0 == other.0
        }
    }

    impl Eq for Counted<'_> {}

    impl Hash for Counted<'_> {
        fn hash<H: Hasher>(&self, state: &mut H) {
            self.1.set(self.1.get() + 1);
            self.0.hash(state);
        }
    }

    #[test]
    fn a_long_chain_costs_a_few_look_ups_for_each_name() {
        let (names, count) = (10_000, Cell::new(0));
        let name = |number| Counted(number, &count);
        // The worst order: each statement joins the front of a chain with a new name.
        let joins = Joins::new((1..names).rev().map(|number| (name(number - 1), name(number))));
        let groups: Vec<Option<usize>> = (0..names).map(|number| joins.group(name(number))).collect();
        assert!(groups.iter().all(|group| group.is_some() && *group == groups[0]));
        assert_eq!(joins.group(name(names)), None);
        // Two for each statement, one for each question, and what the table needs to grow.
        assert!(count.get() < 8 * names, "{}", count.get());
    }

    #[test]
    fn names_that_nothing_joins_stay_apart() {
        let joins = Joins::new([("ann", "nan"), ("ben", "benny"), ("nan", "annie")]);
        assert_eq!(joins.group("ann"), joins.group("annie"));
        assert_ne!(joins.group("ann"), joins.group("ben"));
        assert_eq!(joins.group("carl"), None);
    }
}
