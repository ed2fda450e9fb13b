use std::collections::VecDeque;

use azera_model_api::Priority;

/// Waiting requests: first in, first out within a priority, foreground before background.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    foreground: VecDeque<T>,
    background: VecDeque<T>,
}

impl<T> Queue<T> {
    pub(crate) fn new() -> Self {
        Self { foreground: VecDeque::new(), background: VecDeque::new() }
    }

    pub(crate) fn push(&mut self, priority: Priority, item: T) {
        self.lane(priority).push_back(item);
    }

    /// Puts an item back at the front of its priority.
    pub(crate) fn push_front(&mut self, priority: Priority, item: T) {
        self.lane(priority).push_front(item);
    }

    /// Takes the first item of a priority for which `may_go` is true.
    pub(crate) fn take(&mut self, priority: Priority, may_go: impl Fn(&T) -> bool) -> Option<T> {
        let lane = self.lane(priority);
        let first = lane.iter().position(may_go)?;
        lane.remove(first)
    }

    /// Drops every item for which `keep` is false.
    pub(crate) fn retain_mut(&mut self, mut keep: impl FnMut(&mut T) -> bool) {
        self.foreground.retain_mut(&mut keep);
        self.background.retain_mut(keep);
    }

    pub(crate) fn has(&self, priority: Priority) -> bool {
        match priority {
            Priority::Foreground => !self.foreground.is_empty(),
            Priority::Background => !self.background.is_empty(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.foreground.is_empty() && self.background.is_empty()
    }

    /// Empties the queue, foreground items first.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = T> + '_ {
        self.foreground.drain(..).chain(self.background.drain(..))
    }

    fn lane(&mut self, priority: Priority) -> &mut VecDeque<T> {
        match priority {
            Priority::Foreground => &mut self.foreground,
            Priority::Background => &mut self.background,
        }
    }
}

#[cfg(test)]
mod tests {
    use Priority::{Background, Foreground};

    use super::*;

    #[test]
    fn order_is_kept_within_a_priority() {
        let mut queue = Queue::new();
        for (priority, item) in [(Background, 1), (Foreground, 2), (Foreground, 3), (Background, 4)] {
            queue.push(priority, item);
        }
        assert_eq!(queue.take(Foreground, |item| *item != 2), Some(3));
        queue.push_front(Background, 5);
        queue.retain_mut(|item| *item != 1);
        assert!(queue.has(Foreground) && queue.has(Background));
        assert_eq!(queue.drain().collect::<Vec<_>>(), [2, 5, 4]);
        assert!(queue.is_empty());
        assert_eq!(queue.take(Foreground, |_| true), None);
    }
}
