//! Brings a recording to a person.

use azera_adapter::{PlatformError, SentRecording};
use serenity::all::{CreateAttachment, CreateMessage};

use crate::error::{Failure, failure, in_words, refusal};
use crate::id;
use crate::replies::nobody;
use crate::voice::VoiceCalls;

impl VoiceCalls {
    /// Sends a recording as direct messages, one for each file. Returns false if the person takes none.
    ///
    /// # Errors
    /// Discord cannot be reached.
    pub(in crate::voice) async fn send_recording(&self, recording: SentRecording<'_>) -> Result<bool, PlatformError> {
        let (Some(user), Some(line)) = (id::user_of(recording.to), self.line.get()) else { return Ok(false) };
        let Some(direct) = line.directory.direct_with(user).await else { return Ok(false) };
        for (number, (name, bytes)) in recording.files.into_iter().enumerate() {
            let mut message = CreateMessage::new().allowed_mentions(nobody());
            if number == 0 {
                message = message.content(recording.text);
            }
            let file = CreateAttachment::bytes(bytes, name);
            match line.http.send_message(direct, vec![file], &message).await {
                Ok(_) => {}
                Err(error) if failure(&error) == Failure::Unknown => return Err(refusal(&error)),
                Err(error) => {
                    tracing::warn!(error = in_words(&error), "cannot send a recording to a person");
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }
}
