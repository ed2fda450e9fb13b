//! Events that scenes submit.

use azera_adapter::{Edit, Host, HostError, InboundEvent, Outcome, Platform};
use azera_types::{Inbound, MessageId, Text, Timestamp};

use crate::findings::Scene;

impl Scene {
    /// Submits a message and waits for its reply.
    pub async fn submit(&self, inbound: Inbound) -> Result<Outcome, HostError> {
        let event = InboundEvent::Message(inbound);
        self.engine.azera.submit(self.engine.platform.sim.id(), event).await?.outcome().await
    }

    /// Submits the deletion of a message.
    pub async fn delete(&self, message: &MessageId) {
        let event = InboundEvent::Deletion { message: message.clone() };
        self.engine.azera.submit(self.engine.platform.sim.id(), event).await.unwrap();
    }

    /// Submits an edit and waits for its reply.
    pub async fn edit(&self, message: &MessageId, edit: Edit) {
        let event = InboundEvent::Edit { message: message.clone(), edit };
        self.engine.azera.submit(self.engine.platform.sim.id(), event).await.unwrap().outcome().await.unwrap();
    }

    /// Submits a chunk of a file that came with a message.
    pub async fn attach(&self, message: &MessageId, version: Option<Timestamp>, piece: &str) {
        let event = InboundEvent::Chunks { message: message.clone(), version, pieces: vec![Text::new(piece)] };
        self.engine.azera.submit(self.engine.platform.sim.id(), event).await.unwrap();
    }
}
