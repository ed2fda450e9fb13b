//! Finds the nodes that a name has to do with: its own, longer and shorter ones, and those that statements join with one
//! of them.

use std::collections::BTreeSet;

use azera_types::PersonId;

use super::extract::Node;
use super::lexicon;
use super::resolve::is_short_of;
use super::rows::{Row, Tie};
use super::shown::Shown;
use crate::{Error, Order, ReadScope, Store};

/// Most rows that a look over all names reads in one scope.
const MAX_SCANNED: usize = 20_000;

/// Most nodes that one name leads to.
const MAX_NODES: usize = 24;

/// Most names that one name leads to.
const MAX_NAMES: usize = 64;

/// Steps from one name to the next.
const STEPS: usize = 3;

/// Newest rows of a node that are read for statements, if its scope has more rows than [`MAX_SCANNED`].
const MAX_STATING: usize = 400;

/// The nodes that a name has to do with.
pub(super) struct Related {
    pub(super) nodes: BTreeSet<Node>,
    /// True if there may be more.
    pub(super) is_cut: bool,
}

/// Visits the rows of all names that may be read, at most [`MAX_SCANNED`] in each scope. Returns true if there are more.
pub(super) fn scan(store: &dyn Store, read_scope: &ReadScope, mut visit: impl FnMut(Row)) -> Result<bool, Error> {
    let mut is_cut = false;
    for shown in Shown::all(store, read_scope) {
        let mut left = MAX_SCANNED;
        shown.walk(b"", Order::Ascending, |row| {
            let Some(rest) = left.checked_sub(1) else {
                is_cut = true;
                return false;
            };
            left = rest;
            visit(row);
            true
        })?;
    }
    Ok(is_cut)
}

/// Returns the nodes that a name has to do with, as far as `read_scope` allows.
pub(super) fn related(store: &dyn Store, read_scope: &ReadScope, name: &str) -> Result<Related, Error> {
    let mut known = Known::default();
    let is_partial = scan(store, read_scope, |row| known.add(row))?;
    let mut is_cut = is_partial;
    let mut names = BTreeSet::from([name.to_owned()]);
    let mut new = names.clone();
    for step in 0..=STEPS {
        // What the look over all names did not reach is looked up by name.
        for name in new.iter().filter(|_| is_partial) {
            known.look_up(store, read_scope, name)?;
        }
        if step == STEPS || new.is_empty() {
            break;
        }
        let more: BTreeSet<String> = known.beside(&new).difference(&names).cloned().collect();
        let room = MAX_NAMES - names.len();
        is_cut |= more.len() > room;
        new = more.into_iter().take(room).collect();
        names.extend(new.iter().cloned());
    }
    let people: BTreeSet<&PersonId> =
        known.nodes.iter().filter(|node| names.contains(&node.name)).filter_map(|node| node.person.as_ref()).collect();
    let is_wanted =
        |node: &&Node| names.contains(&node.name) || node.person.as_ref().is_some_and(|person| people.contains(person));
    let mut found: Vec<&Node> = known.nodes.iter().filter(is_wanted).collect();
    // The name itself first.
    found.sort_by_key(|node| node.name != name);
    is_cut |= found.len() > MAX_NODES;
    Ok(Related { nodes: found.into_iter().take(MAX_NODES).cloned().collect(), is_cut })
}

/// What the rows say.
#[derive(Default)]
struct Known {
    nodes: BTreeSet<Node>,
    /// Names with those that a statement joins with them, or parts from them.
    stated: BTreeSet<(String, String)>,
}

impl Known {
    fn add(&mut self, row: Row) {
        let stated = row.neighbours.into_iter().filter(|(_, tie)| matches!(tie, Tie::Same | Tie::Different));
        self.stated.extend(stated.map(|(other, _)| (row.node.name.clone(), other.name)));
        self.nodes.insert(row.node);
    }

    /// Adds what the rows of a name say, and the nodes of longer and shorter names.
    fn look_up(&mut self, store: &dyn Store, read_scope: &ReadScope, name: &str) -> Result<(), Error> {
        let first = name.split(' ').next().unwrap_or_default();
        let mut shorter: Vec<&str> = name.match_indices(' ').filter_map(|(at, _)| name.get(..at)).collect();
        shorter.extend(name.rsplit(' ').next());
        lexicon::short_forms(first).for_each(|short| shorter.push(short));
        shorter.retain(|shorter| *shorter != name);
        for shown in Shown::all(store, read_scope) {
            for node in shown.named(name, MAX_NODES)? {
                shown.newest(&node, MAX_STATING)?.into_iter().for_each(|row| self.add(row));
            }
            for full in lexicon::full_forms(name) {
                self.nodes.extend(shown.named(full, MAX_NODES)?);
                self.nodes.extend(shown.longer(full, MAX_NODES)?);
            }
            self.nodes.extend(shown.longer(name, MAX_NODES)?);
            for shorter in &shorter {
                self.nodes.extend(shown.named(shorter, MAX_NODES)?);
            }
        }
        Ok(())
    }

    /// Returns the names that are longer or shorter forms of `names`, or that statements join with them.
    fn beside(&self, names: &BTreeSet<String>) -> BTreeSet<String> {
        let is_form =
            |node: &&Node| names.iter().any(|name| is_short_of(name, &node.name) || is_short_of(&node.name, name));
        let forms = self.nodes.iter().filter(is_form).map(|node| node.name.clone());
        let stated = self.stated.iter().filter(|(one, _)| names.contains(one)).map(|(_, other)| other.clone());
        forms.chain(stated).collect()
    }
}
