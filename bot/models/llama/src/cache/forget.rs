use azera_model_api::{LoraId, SessionKey};

use super::Cache;
use crate::lora::LoraSetKey;
use crate::swap::SwapKey;

impl Cache<'_> {
    /// Drops everything that is kept for a conversation, unless it is running.
    pub(crate) fn forget(&mut self, session: &SessionKey) {
        self.swap.take(&SwapKey::Session(session.clone()));
        if let Some(at) = self.resting.iter().position(|resting| resting.key == *session) {
            let resting = self.resting.remove(at);
            self.drop_lease(resting.lease);
        }
    }

    /// Drops everything that was evaluated under a LoRA, except running work.
    pub(crate) fn forget_lora(&mut self, lora: &LoraId) {
        let under = |set: Option<&LoraSetKey>| set.is_some_and(|set| set.has(lora));
        self.swap.retain(|parked| !under(parked.set.as_ref()));
        while let Some(at) = self.resting.iter().position(|resting| under(resting.set.as_ref())) {
            let resting = self.resting.remove(at);
            self.drop_lease(resting.lease);
        }
        for prefix in self.prefixes.iter_mut().filter(|prefix| under(prefix.set.as_ref())) {
            prefix.forgotten = true;
        }
        self.drop_forgotten();
    }

    pub(super) fn drop_forgotten(&mut self) {
        while let Some(at) = self.prefixes.iter().position(|prefix| prefix.forgotten && prefix.users == 0) {
            let prefix = self.prefixes.remove(at);
            self.kv.release(prefix.sequence);
        }
    }
}
