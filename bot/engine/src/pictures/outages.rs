//! What happens to pictures while the server that draws is away: they stay in the queue, and are tried less and less often.
//! Only after [`AWAY_FOR`] the person is told. A try that never reached the server does not count.

use std::time::Duration;

use azera_adapter::{Making, PictureProgress, Platform};
use azera_memory::PictureRow;
use azera_model_image::{ImageError, Outage};
use azera_types::Timestamp;
use tokio_util::sync::CancellationToken;

use super::draw::{FIRST_WAIT, FORGOTTEN, LONGEST_WAIT, Onward};
use super::{Pictures, caption};
use crate::error::Error;

/// How long a picture waits for a server that cannot be reached.
pub(super) const AWAY_FOR: Duration = Duration::from_secs(30 * 60);

/// Since when the server cannot be reached, and how often it was tried.
#[derive(Debug, Clone, Copy)]
pub(super) struct Away {
    since: Timestamp,
    tries: u32,
}

impl Pictures {
    /// Notes how a picture went, and returns how it goes on if its server cannot be reached: the picture stays in the queue.
    /// `None` if the picture is over, or counts as tried.
    pub(super) async fn wait_while_away(
        &self,
        platform: &dyn Platform,
        row: &PictureRow,
        error: Option<&ImageError>,
        token: &CancellationToken,
    ) -> Result<Option<Onward>, Error> {
        let Some(ImageError::Unavailable { why, outage: Outage::Away, retry_in }) = error else {
            if !matches!(error, Some(ImageError::Cancelled)) {
                self.progress().away = None;
            }
            return Ok(None);
        };
        let now = self.services.clock.now();
        let away = {
            let mut progress = self.progress();
            let away = progress.away.get_or_insert(Away { since: now, tries: 0 });
            away.tries += 1;
            *away
        };
        let since = away.since.max(row.asked_at);
        if u64::try_from(now.duration_since(since).as_secs()).is_ok_and(|waited| waited >= AWAY_FOR.as_secs()) {
            return Ok(None);
        }
        tracing::warn!(picture = row.number, tries = away.tries, why, "the server that draws is away");
        let message = row.message.clone();
        self.services.blocking(move |memory| memory.pictures().interrupted(&message)).await?;
        if !self.is_wanted(row).await? {
            return self.take_away(platform, row, FORGOTTEN).await.map(Some);
        }
        if let Some(streaming) = platform.streaming().filter(|_| !token.is_cancelled()) {
            let (chat, reply, persona, persona_name) = (&row.chat, &row.message, &row.persona, &*row.persona_name);
            let making = Making { chat, reply, persona, persona_name, asker: Some(&row.person), is_help: false };
            let shown = PictureProgress { since: row.asked_at, text: &caption::away(row), preview: None };
            streaming.progress(making, shown).await;
            // It was taken back meanwhile, and the text came after the message was removed or said why.
            if !self.is_wanted(row).await? {
                if let Err(error) = platform.retract(&row.chat, &row.message, row.asked_at).await {
                    tracing::warn!(message = %row.message, %error, "cannot remove the message about a picture");
                }
                return self.take_away(platform, row, FORGOTTEN).await.map(Some);
            }
        }
        let wait = FIRST_WAIT.saturating_mul(2_u32.saturating_pow(away.tries - 1));
        Ok(Some(Onward::Wait(retry_in.unwrap_or(wait).clamp(FIRST_WAIT, LONGEST_WAIT))))
    }

    /// Returns true if a picture still waits, and what it is built on is still there.
    pub(super) async fn is_wanted(&self, row: &PictureRow) -> Result<bool, Error> {
        let message = row.message.clone();
        self.services.blocking(move |memory| memory.pictures().is_wanted(&message)).await
    }
}
