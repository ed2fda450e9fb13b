//! The rows of one scope, as far as a grant shows them. A row older than the readers may see counts for nothing: no
//! limit and no answer depends on it.

use azera_types::Timestamp;

use super::extract::Node;
use super::rows::{self, Row};
use crate::{Error, Grant, Order, ReadScope, Store, Table, keys};

/// Rows of the first page, and of each further one.
const FIRST_PAGE: usize = 16;
const PAGE: usize = 512;

/// The rows of a persona in one scope.
pub(super) struct Shown<'a> {
    store: &'a dyn Store,
    scope: Vec<u8>,
    since: Option<Timestamp>,
}

impl<'a> Shown<'a> {
    /// Returns the rows of each scope that may be read.
    pub(super) fn all(store: &'a dyn Store, read_scope: &'a ReadScope) -> impl Iterator<Item = Self> {
        read_scope.grants().iter().map(move |grant| Self::of(store, read_scope, grant))
    }

    fn of(store: &'a dyn Store, read_scope: &ReadScope, grant: &Grant) -> Self {
        let scope = keys::prefix(&[read_scope.persona().as_str(), &grant.scope.to_string()]);
        Self { store, scope, since: grant.since }
    }

    /// Visits the rows whose name begins with `begin` until `visit` returns false.
    pub(super) fn walk(&self, begin: &[u8], order: Order, mut visit: impl FnMut(Row) -> bool) -> Result<(), Error> {
        let prefix = [self.scope.as_slice(), begin].concat();
        let (mut after, mut size): (Option<Vec<u8>>, usize) = (None, FIRST_PAGE);
        loop {
            let page = self.store.scan(Table::Graph, &prefix, after.as_deref(), order, size)?;
            for (key, value) in &page {
                let is_shown = self.since.is_none_or(|since| rows::said_at(value).is_none_or(|at| at >= since));
                if is_shown && !visit(rows::read(&self.scope, key, value)?) {
                    return Ok(());
                }
            }
            if page.len() < size {
                return Ok(());
            }
            after = page.into_iter().next_back().map(|(key, _)| key);
            size = PAGE;
        }
    }

    /// Returns the newest rows of a node.
    pub(super) fn newest(&self, node: &Node, limit: usize) -> Result<Vec<Row>, Error> {
        let mut rows = Vec::new();
        self.walk(&rows::node_key(node), Order::Descending, |row| {
            rows.push(row);
            rows.len() < limit
        })?;
        Ok(rows)
    }

    /// Returns the first nodes whose names begin with `begin`. Their rows are stepped over, however many they are.
    pub(super) fn nodes(&self, begin: &str, limit: usize) -> Result<Vec<Node>, Error> {
        let prefix = [self.scope.as_slice(), begin.as_bytes()].concat();
        let (mut nodes, mut after): (Vec<Node>, Option<Vec<u8>>) = (Vec::new(), None);
        while nodes.len() < limit {
            let next = self.store.scan(Table::Graph, &prefix, after.as_deref(), Order::Ascending, 1)?;
            let Some((key, value)) = next.first() else { break };
            let node = rows::read(&self.scope, key, value)?.node;
            after = Some([self.scope.as_slice(), &rows::node_key(&node), &u64::MAX.to_be_bytes()].concat());
            if !self.newest(&node, 1)?.is_empty() {
                nodes.push(node);
            }
        }
        Ok(nodes)
    }

    /// Returns the first nodes of exactly this name.
    pub(super) fn named(&self, name: &str, limit: usize) -> Result<Vec<Node>, Error> {
        self.nodes(&format!("{name}\0"), limit)
    }

    /// Returns the first nodes whose names go on after this one.
    pub(super) fn longer(&self, name: &str, limit: usize) -> Result<Vec<Node>, Error> {
        self.nodes(&format!("{name} "), limit)
    }
}
