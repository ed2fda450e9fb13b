//! Shows or says a reply while it is generated.

use async_trait::async_trait;
use azera_adapter::{Making, PictureProgress, StreamEvent, Streaming};

use crate::discord::Discord;
use crate::id;

#[async_trait]
impl Streaming for Discord {
    async fn event(&self, making: Making<'_>, event: &StreamEvent) {
        if id::voice_channel_of(making.chat).is_some() {
            self.voice.event(making, event).await;
        } else if let Ok(connected) = self.connected() {
            connected.streams.event(making, event);
        }
    }

    async fn progress(&self, making: Making<'_>, progress: PictureProgress<'_>) {
        if let Ok(connected) = self.connected() {
            connected.streams.progress(making, progress);
        }
    }
}
