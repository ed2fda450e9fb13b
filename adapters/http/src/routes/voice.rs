//! What people say aloud in a chat: a recording becomes a voice message, as on the other platforms.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{Method, StatusCode};
use axum::response::Response;
use azera_types::{InboundPart, MessageId, Part};
use futures::StreamExt;
use serde_json::json;

use super::form::one_file;
use super::talk::{TalkedIn, answer, event, events_of};
use crate::accounts::{Caller, Scope};
use crate::endpoint::{Endpoint, Files, Need, Parted};
use crate::problem::Problem;
use crate::web::Shared;

/// Largest recording, and room for the other parts of the body.
const MAX_RECORDING_BYTES: usize = 10 << 20;
const FORM_BYTES: usize = 64 << 10;

/// The media type of a recording whose sender names none.
const WAV: &str = "audio/wav";

/// The name of a recording.
const NAME: &str = "voice-message";

/// Newest messages of a chat among which the spoken one is.
const NEWEST: usize = 8;

pub(super) fn endpoints() -> Vec<Endpoint> {
    let mut endpoint = Endpoint::new(
        Method::POST,
        "/api/chats/{id}/voice",
        Need::Scope(Scope::Chat),
        "Say something aloud (WAV, MP3, Ogg or FLAC), and get the reply as it is made. `ai_persona_id` names the persona that is \
         to answer from now on",
        say_aloud,
    )
    .takes_file()
    .sends(
        "text/event-stream",
        "Events: heard with the words and the id of the message, then those of /api/chat/stream.",
    )
    .also(&[(409, "Nothing recognises speech here. The body says how to change that.")]);
    endpoint.body_bytes = MAX_RECORDING_BYTES + FORM_BYTES;
    vec![endpoint]
}

async fn say_aloud(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Parted(id): Parted<String>,
    Files(files): Files,
) -> Result<Response, Problem> {
    let file = one_file(files, MAX_RECORDING_BYTES).await?;
    let media_type = file.media_type.as_deref().unwrap_or(WAV);
    if !media_type.starts_with("audio/") {
        let detail = "The file is no recording: its media type begins with `audio/`.";
        return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "refused", detail));
    }
    if let Some(why) = shared.speech()?.deafness() {
        return Err(Problem::unconfigured("hearing_unavailable", why));
    }
    let part = Part::new(NAME, Some(media_type), u64::try_from(file.bytes.len()).unwrap_or(u64::MAX)).spoken(None);
    let TalkedIn { id, chat, persona } = shared.talked_in(&caller, &id, file.text("ai_persona_id")).await?;
    let sound = InboundPart { part, source: Arc::new(file.bytes) };
    let (message, said) = shared.say_aloud(&caller, chat, persona, sound).await?;
    let events = said.steps().enumerate().then(move |(number, step)| {
        let (shared, caller, id, message) = (shared.clone(), caller.clone(), id.clone(), message.clone());
        async move {
            // The words are known before the first step of the reply.
            let heard = if number == 0 { shared.words_of(&caller, &id, &message).await } else { None };
            let heard = heard.map(|text| event("heard", &json!({"message_id": message.as_str(), "text": text})));
            futures::stream::iter(heard.into_iter().chain(events_of(step)))
        }
    });
    Ok(answer(events.flatten()))
}

impl Shared {
    /// Returns what a voice message says; `None` if it was not heard.
    async fn words_of(&self, caller: &Caller, id: &str, message: &MessageId) -> Option<String> {
        let reader = self.reader().ok()?;
        let newest = reader.messages(&self.platform, self.reading(caller, id).ok()?, NEWEST).await.ok()?;
        let spoken = newest.into_iter().find(|said| said.id == *message)?.spoken?;
        Some(spoken.to_string()).filter(|words| !words.is_empty())
    }
}
