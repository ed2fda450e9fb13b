//! Brings a recording to a person.

use azera_adapter::{PlatformError, SentRecording};
use serenity::all::{CreateAttachment, CreateMessage};

use crate::error::{Failure, failure, in_words, refusal};
use crate::id;
use crate::replies::nobody;
use crate::voice::VoiceCalls;

impl VoiceCalls {
    /// Sends a recording as direct messages, one for each file. Returns how many the person got: it stops at the first that
    /// Discord does not take.
    ///
    /// # Errors
    /// Discord cannot be reached, and the person got nothing.
    pub(in crate::voice) async fn send_recording(&self, recording: SentRecording<'_>) -> Result<usize, PlatformError> {
        let (Some(user), Some(line)) = (id::user_of(recording.to), self.line.get()) else { return Ok(0) };
        let Some(direct) = line.directory.direct_with(user).await else { return Ok(0) };
        let count = recording.files.len();
        for (number, (name, bytes)) in recording.files.into_iter().enumerate() {
            let mut message = CreateMessage::new().allowed_mentions(nobody());
            if number == 0 {
                message = message.content(recording.text);
            }
            let file = CreateAttachment::bytes(bytes, name);
            match line.http.send_message(direct, vec![file], &message).await {
                Ok(_) => {}
                Err(error) if number == 0 && failure(&error) == Failure::Unknown => return Err(refusal(&error)),
                Err(error) => {
                    tracing::warn!(error = in_words(&error), number, "cannot send a file of a recording to a person");
                    return Ok(number);
                }
            }
        }
        Ok(count)
    }
}
