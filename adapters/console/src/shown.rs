use std::collections::{HashSet, VecDeque};

use azera_types::MessageId;

/// Latest replies remembered as shown. A reply is delivered again only until it is acknowledged, so far fewer are open
/// at once.
const MAX_SHOWN: usize = 4096;

/// The replies that were shown, or the pictures that were told of.
#[derive(Default)]
pub(crate) struct Shown {
    order: VecDeque<MessageId>,
    ids: HashSet<MessageId>,
}

impl Shown {
    pub(crate) fn contains(&self, id: &MessageId) -> bool {
        self.ids.contains(id)
    }

    pub(crate) fn insert(&mut self, id: &MessageId) {
        if self.ids.insert(id.clone()) {
            self.order.push_back(id.clone());
        }
        if self.order.len() > MAX_SHOWN
            && let Some(oldest) = self.order.pop_front()
        {
            self.ids.remove(&oldest);
        }
    }
}
