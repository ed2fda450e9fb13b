//! Chains of episodes: those that belong to one matter, over any number of others.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::Timed;

/// Which episodes belong to one matter, by their numbers in a list.
#[derive(Default)]
pub(super) struct Chains {
    near: BTreeMap<usize, BTreeSet<usize>>,
}

impl Chains {
    /// Lets the chains of two episodes be one.
    pub(super) fn join(&mut self, one: usize, other: usize) {
        self.near.entry(one).or_default().insert(other);
        self.near.entry(other).or_default().insert(one);
    }

    /// Returns all episodes of a chain.
    fn reached(&self, first: usize) -> BTreeSet<usize> {
        let (mut reached, mut waiting) = (BTreeSet::from([first]), VecDeque::from([first]));
        while let Some(one) = waiting.pop_front() {
            let new = self.near.get(&one).into_iter().flatten().filter(|other| reached.insert(**other));
            waiting.extend(new);
        }
        reached
    }

    /// Names in each episode of the chains of these episodes all others of its chain, the oldest first.
    pub(super) fn name_in(&self, found: &mut [Timed], of: impl IntoIterator<Item = usize>) {
        let mut done = BTreeSet::new();
        for first in of {
            if !done.contains(&first) {
                let chain = self.reached(first);
                name_others(found, &chain);
                done.extend(chain);
            }
        }
    }
}

fn name_others(found: &mut [Timed], chain: &BTreeSet<usize>) {
    let mut order: Vec<(_, String)> = chain
        .iter()
        .filter_map(|number| found.get(*number).map(|one| (one.span.0, one.episode.session.clone())))
        .collect();
    order.sort();
    for number in chain {
        if let Some(one) = found.get_mut(*number) {
            let others = order.iter().filter(|(_, id)| *id != one.episode.session);
            one.episode.linked = others.map(|(_, id)| id.clone()).collect();
        }
    }
}
