//! Forgets what stands in a caption, for somebody who points at it.

use std::collections::BTreeSet;
use std::time::Duration;

use azera_adapter::CommandAnswer;
use azera_types::{MessageId, PersonId};
use serenity::all::Message;
use tokio::time::Instant;

use super::VoiceCalls;
use super::log::GAP;

/// How long it may take until it is noted where a caption stands. Discord waits three seconds for an answer.
const NOTED: Duration = Duration::from_secs(2);
/// How often that is looked at.
const LOOK: Duration = Duration::from_millis(20);

impl VoiceCalls {
    /// Returns what stands in a message with captions; `None` if it is no such message.
    pub(crate) async fn captioned_in(&self, message: &Message) -> Option<Vec<MessageId>> {
        let until = Instant::now() + NOTED;
        let lines = loop {
            let is_open = self.caption_intents.lock().await.is_open(message.channel_id);
            let lines = self.caption_log.lock().await.lines_of(message.channel_id, message.id);
            // People see a caption a moment before it is noted where it stands.
            if lines.is_some() || !is_open || Instant::now() >= until {
                break lines?;
            }
            tokio::time::sleep(LOOK).await;
        };
        let said: BTreeSet<MessageId> = lines.into_iter().flatten().filter(|said| said.as_str() != GAP).collect();
        Some(said.into_iter().collect())
    }

    /// Forgets what a person said, and the replies to it, out of what stands in a caption. The captions go soon.
    pub(crate) async fn forget_captioned(&self, person: &PersonId, said: &[MessageId]) -> CommandAnswer {
        let answer = |ok: bool, text: &str| CommandAnswer { ok, text: text.to_owned(), ..CommandAnswer::default() };
        let Some((_, host)) = self.speech.get() else { return answer(false, "That cannot be done here now.") };
        match host.forget_said(person, said).await {
            Ok(0) => answer(
                false,
                "Nothing in this caption is yours: you can have forgotten what you said, and my answers to it.",
            ),
            Ok(count) => {
                answer(true, &format!("Forgotten out of this caption: {count}. It goes from the thread soon."))
            }
            Err(error) => {
                tracing::warn!(%error, "cannot forget what stands in a caption");
                answer(false, &error.in_words())
            }
        }
    }
}
