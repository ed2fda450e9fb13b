//! The bytes of a message's recordings and pictures, while its turn runs.

use azera_adapter::Platform;
use azera_memory::MessageRow;
use azera_types::{FetchError, InboundPart, PartKind};

use crate::error::Error;
use crate::files::FETCH_TIME;
use crate::turn::Turns;

/// Why there are no bytes.
pub(super) enum NoBytes {
    TooLarge,
    Gone,
}

impl Turns {
    /// Returns the bytes of a part: from where they came with the message, or as they were kept, or else from the platform
    /// once more.
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
        if let Some(bytes) = self.stored_bytes(platform, message, index).await? {
            return Ok(if bytes.len() as u64 > limit { Err(NoBytes::TooLarge) } else { Ok(bytes) });
        }
        let Some(platform) = platform.voice_messages() else { return Ok(Err(NoBytes::Gone)) };
        let parts = platform.parts(&message.chat, id).await?;
        let Some(part) = parts.get(index) else { return Ok(Err(NoBytes::Gone)) };
        Ok(self.fetch_bytes(part, limit).await?.unwrap_or(Err(NoBytes::Gone)))
    }

    /// Returns the bytes of a picture that an earlier turn could not see and that was kept after it, if its sender may read
    /// it. Not every platform has it a second time.
    async fn stored_bytes(
        &self,
        platform: &dyn Platform,
        message: &MessageRow,
        index: usize,
    ) -> Result<Option<Vec<u8>>, Error> {
        let is_picture = message.parts.get(index).is_some_and(|part| part.kind == PartKind::Image);
        let Some(sender) = message.author.person().filter(|_| is_picture) else { return Ok(None) };
        let Some(place) = self.services.place(platform, &message.chat, sender).await? else { return Ok(None) };
        let read_scope = self.access.read_scope(platform, &place, &message.persona).await?;
        let id = message.id.clone();
        self.services.blocking(move |memory| memory.pictures().file_at(&read_scope, &id, index)).await
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
