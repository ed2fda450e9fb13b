//! How long a statement held: until the same person said something else instead.

use crate::domains::Memories;
use crate::rows::MemoryRow;
use crate::{Error, ReadScope, Superseded};

impl Memories<'_> {
    /// Returns what replaced a statement with something different. Returns `None` if nothing did, if the newer message
    /// was forgotten, or if `read_scope` does not allow it: then nothing may tell that there is one.
    pub fn replaced(self, read_scope: &ReadScope, memory: &MemoryRow) -> Result<Option<Superseded>, Error> {
        let superseded = memory.salience.as_ref().and_then(|salience| salience.superseded.as_ref());
        let Some(superseded) = superseded.filter(|superseded| !superseded.same) else { return Ok(None) };
        Ok(self.0.messages().get(read_scope, &superseded.by)?.map(|_| superseded.clone()))
    }
}
