//! The sound of replies: a voice message of its own, which goes when its reply goes.

use azera_adapter::Outbound;
use azera_types::{MessageId, Part, VoiceNote};
use serde_json::{Value, json};

use super::{Inner, Replies};
use crate::Error;
use crate::content::{Relation, transaction};
use crate::ids::event_of;
use crate::media::file_content;
use crate::sending::redact;
use crate::sync_state::Sound;

/// The most values of a waveform in an event, and the greatest value.
const MAX_BARS: usize = 100;
const LOUDEST: u32 = 1_024;

impl Replies {
    /// Sends the sound of a reply once, if that reply is shown.
    pub(crate) async fn add_sound(&self, outbound: &Outbound, note: &VoiceNote) -> Result<(), Error> {
        let to = outbound.reply_to.as_ref().unwrap_or(&outbound.id);
        let inner = &self.0;
        if !inner.shows(to, &outbound.id).await? {
            return Ok(());
        }
        let (room, thread) = inner.place(&outbound.chat)?;
        let millis = u64::try_from(note.duration.as_millis()).unwrap_or(u64::MAX);
        let part = Part::new(VoiceNote::FILE_NAME, Some(VoiceNote::MIME), note.bytes.len() as u64);
        let mut content = file_content(&inner.client, &room, &part, &note.bytes).await?;
        content["info"]["duration"] = json!(millis);
        content["org.matrix.msc1767.audio"] = json!({"duration": millis, "waveform": bars(&note.waveform)});
        content["org.matrix.msc3245.voice"] = json!({});
        let is_direct = thread.is_none() && inner.audience.is_direct(&room).await?;
        let relation = Relation { reply_to: event_of(to).filter(|_| !is_direct), thread };
        if let Some(relation) = relation.content() {
            content["m.relates_to"] = relation;
        }
        let id = transaction("sound", &outbound.id, 0);
        let sent = room.send_raw("m.room.message", content).with_transaction_id(&id).await?;
        let sound = Sound { reply: outbound.id.clone(), event: sent.response.event_id };
        inner.sync_state.set_sound(to, &sound).await?;
        // The reply may have gone before its sound was known.
        if !inner.shows(to, &outbound.id).await? {
            inner.remove_sound(&room, to, &sound).await?;
        }
        Ok(())
    }
}

impl Inner {
    /// Whether this reply to a message is the one that is shown.
    async fn shows(&self, to: &MessageId, reply: &MessageId) -> Result<bool, Error> {
        Ok(self.sync_state.shown(to).await?.is_some_and(|shown| shown.reply.as_ref() == Some(reply)))
    }

    /// Removes the sound of the reply to a message, if it is of a reply that `is_gone`.
    pub(super) async fn remove_sound_if(
        &self,
        room: &matrix_sdk::Room,
        to: &MessageId,
        is_gone: impl Fn(&MessageId) -> bool,
    ) -> Result<(), Error> {
        match self.sync_state.sound(to).await?.filter(|sound| is_gone(&sound.reply)) {
            Some(sound) => self.remove_sound(room, to, &sound).await,
            None => Ok(()),
        }
    }

    async fn remove_sound(&self, room: &matrix_sdk::Room, to: &MessageId, sound: &Sound) -> Result<(), Error> {
        redact(room, &sound.event, &[]).await?;
        self.sync_state.forget_sound(to, sound).await
    }
}

/// Returns a waveform as events have it.
fn bars(waveform: &[u8]) -> Value {
    let count = waveform.len().min(MAX_BARS);
    let bound = |bar: usize| bar * waveform.len() / count.max(1);
    let loudest = |bar| waveform.get(bound(bar)..bound(bar + 1)).unwrap_or_default().iter().copied().max();
    let bars = (0..count).map(|bar| u32::from(loudest(bar).unwrap_or(0)) * LOUDEST / u32::from(u8::MAX));
    json!(bars.collect::<Vec<u32>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_waveform_has_at_most_a_hundred_values_up_to_1024() {
        assert_eq!(bars(&[0, 255, 51]), json!([0, 1_024, 204]));
        assert_eq!(bars(&[]), json!([]));
        let long: Vec<u8> = (0..=255).collect();
        let bars = bars(&long);
        let bars = bars.as_array().unwrap();
        assert_eq!((bars.len(), &bars[0], &bars[99]), (100, &json!(4), &json!(1_024)));
    }
}
