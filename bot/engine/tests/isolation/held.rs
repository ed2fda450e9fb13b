//! What the record holds, and what a message was answered.

use azera_adapter::Outcome;
use azera_memory::{Order, Table};

use crate::findings::Scene;

impl Scene {
    /// Returns whether any row of the record contains these words.
    pub fn holds(&self, words: &str) -> bool {
        Table::ALL.iter().any(|table| {
            let rows = self.engine.layers.store.scan(*table, b"", None, Order::Ascending, usize::MAX).unwrap();
            rows.iter().any(|(_, value)| String::from_utf8_lossy(value).contains(words))
        })
    }
}

/// Returns the text of a reply, or why there is none.
pub fn text_of(outcome: &Outcome) -> &str {
    match outcome {
        Outcome::Replied(turn) => &turn.text,
        Outcome::Skipped(reason) => reason.why(),
    }
}
