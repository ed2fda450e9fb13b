use azera_model_api::{LoraId, SessionKey};

use super::Cache;
use crate::lora::LoraSetKey;
use crate::swap::SwapKey;

impl Cache<'_> {
    /// Drops what is kept for a conversation that is not running.
    pub(crate) fn forget(&mut self, session: &SessionKey) {
        self.lot.take(&SwapKey::Session(session.clone()));
        if let Some(at) = self.resting.iter().position(|resting| resting.key == *session) {
            let resting = self.resting.remove(at);
            self.drop_lease(resting.lease);
        }
    }

    /// Drops what was evaluated with an adapter, but for what runs.
    pub(crate) fn forget_lora(&mut self, lora: &LoraId) {
        let under = |set: Option<&LoraSetKey>| set.is_some_and(|set| set.has(lora));
        self.lot.retain(|parked| !under(parked.set.as_ref()));
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
