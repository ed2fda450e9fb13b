//! The bytes of a message's recordings and pictures, while its turn runs.

use azera_adapter::Platform;
use azera_memory::MessageRow;
use azera_types::{FetchError, InboundPart};

use crate::error::Error;
use crate::files::FETCH_TIME;
use crate::turn::Turns;

/// Why there are no bytes.
pub(super) enum NoBytes {
    TooLarge,
    Gone,
}

impl Turns {
    /// Returns the bytes of a part: from where they came with the message, or else from the platform once more.
    pub(super) async fn part_bytes(
        &self,
        platform: &dyn Platform,
        message: &MessageRow,
        index: usize,
        limit: u64,
    ) -> Result<Result<Vec<u8>, NoBytes>, Error> {
        let (id, version) = (&message.id, message.edited_at);
        if let Some(held) = self.files.held(id, version, index)
            && let Some(bytes) = self.fetch_bytes(&held, limit).await?
        {
            // Only a file that will be kept is worth its memory until then.
            let largest = self.services.memory.files().largest();
            if let Some(bytes) = bytes.as_ref().ok().filter(|bytes| bytes.len() as u64 <= largest) {
                self.files.supply(id, version, index, bytes.clone());
            }
            return Ok(bytes);
        }
        let Some(platform) = platform.voice_messages() else { return Ok(Err(NoBytes::Gone)) };
        let parts = platform.parts(&message.chat, id).await?;
        let Some(part) = parts.get(index) else { return Ok(Err(NoBytes::Gone)) };
        Ok(self.fetch_bytes(part, limit).await?.unwrap_or(Err(NoBytes::Gone)))
    }

    /// Fetches the bytes of a part; `None` if they cannot be had from this source.
    async fn fetch_bytes(&self, part: &InboundPart, limit: u64) -> Result<Option<Result<Vec<u8>, NoBytes>>, Error> {
        let fetched = tokio::select! {
            fetched = tokio::time::timeout(FETCH_TIME, part.source.fetch(limit)) => fetched,
            () = self.services.stopping.cancelled() => return Err(Error::Interrupted),
        };
        Ok(match fetched {
            Ok(Ok(bytes)) => Some(Ok(bytes)),
            Ok(Err(FetchError::TooLarge)) => Some(Err(NoBytes::TooLarge)),
            Ok(Err(FetchError::Failed(_))) | Err(_) => None,
        })
    }
}
