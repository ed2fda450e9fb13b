//! Talking to a persona: with a stream of events, and as one whole reply.

use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::State;
use axum::http::Method;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use azera_adapter::State as Mind;
use azera_types::{ChatId, MessageId, PersonaId};
use futures::{Stream, StreamExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use super::Done;
use super::chats::Message;
use crate::accounts::{Caller, Scope};
use crate::endpoint::{Endpoint, Json, Need, Parted};
use crate::problem::Problem;
use crate::shown::{self, MAX_BODY_BYTES};
use crate::turn::{Reply, Step};
use crate::web::Shared;

/// A message in a chat.
#[derive(Deserialize, JsonSchema)]
struct NewMessage {
    /// The id of the chat. An unknown UUID begins a chat.
    chat_id: String,
    /// The id of the branch to continue on.
    #[serde(default)]
    branch_id: Option<String>,
    /// The text. It may be empty beside pictures.
    message: String,
    /// Up to four pictures to show, as `data:` URLs in base64: PNG, JPEG, WebP or GIF, each of at most 8 MB, and 16 MB together.
    /// A command that takes a picture gets the first one.
    #[serde(default)]
    pictures: Vec<String>,
    /// Is not read: the operator chooses the model.
    #[serde(default)]
    #[expect(dead_code, reason = "clients send it")]
    model: Option<String>,
    /// Is not read: everybody plays the configured role.
    #[serde(default)]
    #[expect(dead_code, reason = "clients send it")]
    user_persona_id: Option<String>,
    /// The persona that is to answer from now on.
    #[serde(default)]
    ai_persona_id: Option<String>,
    /// The id of the message that a command is about, such as `/why`; the last one without it.
    #[serde(default)]
    about: Option<String>,
}

/// A message in a conversation that the client names.
#[derive(Deserialize, JsonSchema)]
struct SessionMessage {
    /// The text. It may be empty beside pictures.
    message: String,
    /// Pictures to show, as in `/api/chat/stream`.
    #[serde(default)]
    pictures: Vec<String>,
    /// The client's name for the conversation.
    session_id: String,
}

/// A conversation that the client names.
#[derive(Deserialize, JsonSchema)]
struct SessionName {
    /// The client's name for the conversation.
    session_id: String,
}

/// A whole reply.
#[derive(Debug, Serialize, JsonSchema)]
struct WholeReply {
    /// The text.
    response: String,
    /// The client's name for the conversation.
    session_id: String,
    /// The id of the reply; `None` for the answer to a command.
    message_id: Option<String>,
    /// The persona's mood.
    mood: Option<String>,
    /// The mood, from 0 to 1.
    mood_value: Option<f32>,
    /// The persona's energy, from 0 to 1.
    energy: Option<f32>,
}

/// A conversation.
#[derive(Debug, Serialize, JsonSchema)]
struct History {
    /// The client's name for the conversation.
    session_id: String,
    /// Its messages, oldest first.
    messages: Vec<Message>,
}

pub(super) fn endpoints() -> Vec<Endpoint> {
    let chat = Need::Scope(Scope::Chat);
    let mut streamed =
        Endpoint::new(Method::POST, "/api/chat/stream", chat, "Say something, and get the reply as it is made", stream)
            .takes::<NewMessage>()
            .sends("text/event-stream", "Events: thinking_start, thinking, thinking_end, content, done, error.");
    let mut whole = Endpoint::new(Method::POST, "/api/chat", chat, "Say something, and get the whole reply", say)
        .takes::<SessionMessage>()
        .answers::<WholeReply>();
    (streamed.body_bytes, whole.body_bytes) = (MAX_BODY_BYTES, MAX_BODY_BYTES);
    vec![
        streamed,
        whole,
        Endpoint::new(Method::GET, "/api/history/{session_id}", chat, "Show a conversation", history)
            .answers::<History>(),
        Endpoint::new(Method::POST, "/api/clear", chat, "Forget a conversation", clear)
            .takes::<SessionName>()
            .answers::<Done>(),
    ]
}

/// Returns an event of a stream.
pub(super) fn event(name: &str, data: &Value) -> Event {
    Event::default().event(name).data(data.to_string())
}

fn done(reply: &Reply) -> Value {
    let state = reply.turn.as_ref().map(|turn| turn.state.clone()).unwrap_or_default();
    let Mind { mood, mood_value, energy } = state;
    let id = reply.turn.as_ref().map(|turn| turn.reply.as_str());
    let mut done = json!({"message_id": id, "mood": mood, "mood_value": mood_value, "energy": energy});
    // Only commands can refuse in words.
    if let Some(ok) = reply.ok {
        done["ok"] = ok.into();
    }
    done
}

/// Where somebody talks, and with whom.
pub(super) struct TalkedIn {
    /// The id that clients see.
    pub(super) id: String,
    pub(super) chat: ChatId,
    /// The persona that answers there if the chat is new.
    pub(super) persona: Option<PersonaId>,
}

impl Shared {
    /// Returns the id of a chat that goes on or begins. Only a UUID begins one: a chat with another id, such as that of the
    /// pictures, begins elsewhere.
    async fn id_to_talk_in(&self, caller: &Caller, id: &str) -> Result<String, Problem> {
        if let Ok(id) = Uuid::parse_str(id) {
            return Ok(id.to_string());
        }
        match self.chat(caller, id).await {
            Ok(_) => Ok(id.to_owned()),
            Err(_) => Err(Problem::invalid("`chat_id` is a UUID, or the id of one of your chats.")),
        }
    }

    /// Returns the chat to talk in, in which the persona answers that the client names.
    pub(super) async fn talked_in(
        &self,
        caller: &Caller,
        id: &str,
        persona: Option<&str>,
    ) -> Result<TalkedIn, Problem> {
        let id = self.id_to_talk_in(caller, id).await?;
        let chat = self.reading(caller, &id)?.chat;
        let persona = persona.map(PersonaId::new).transpose()?;
        if let Some(persona) = &persona {
            if !self.answering(caller).await?.iter().any(|known| known.id == *persona) {
                return Err(Problem::not_found("persona"));
            }
            if self.chat(caller, &id).await.is_ok_and(|known| known.persona != *persona) {
                self.perform(caller, chat.clone(), &format!("/persona use {persona}")).await?;
            }
        }
        Ok(TalkedIn { id, chat, persona })
    }
}

async fn stream(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Json(new): Json<NewMessage>,
) -> Result<Response, Problem> {
    let pictures = shown::pictures("pictures", new.pictures.iter().map(String::as_str))?;
    let TalkedIn { id, chat, persona } = shared.talked_in(&caller, &new.chat_id, new.ai_persona_id.as_deref()).await?;
    let known = shared.chat(&caller, &id).await.ok();
    if let (Some(known), Some(branch)) = (&known, &new.branch_id)
        && known.branch != *branch
        && !(branch == "Main" && known.branch == "main")
    {
        shared.perform(&caller, chat.clone(), &format!("/branch switch {branch}")).await?;
    }
    let about = new.about.as_ref().map(MessageId::new).transpose()?;
    let said = shared.say(&caller, chat, persona, (&new.message, pictures), about).await?;
    Ok(answer(said.steps().flat_map(|step| futures::stream::iter(events_of(step)))))
}

/// Returns the events of one step of a reply.
pub(super) fn events_of(step: Step) -> Vec<Event> {
    match step {
        Step::ThinkingStart => vec![event("thinking_start", &json!({}))],
        Step::Thinking(text) => vec![event("thinking", &json!({"content": text}))],
        Step::ThinkingEnd => vec![event("thinking_end", &json!({}))],
        Step::Content(text) => vec![event("content", &json!({"content": text}))],
        // Clients that do not know this event show the reply below what they have.
        Step::Retracted => vec![event("retracted", &json!({}))],
        Step::Withdrawn => vec![event("retracted", &json!({"withdrawn": true}))],
        Step::Done(reply) => {
            let rest = (!reply.rest.is_empty()).then(|| event("content", &json!({"content": reply.rest})));
            rest.into_iter().chain([event("done", &done(&reply))]).collect()
        }
        Step::Failed(problem) => vec![event("error", &json!({"message": problem.detail}))],
    }
}

/// Answers with a stream of events.
pub(super) fn answer(events: impl Stream<Item = Event> + Send + 'static) -> Response {
    Sse::new(events.map(Ok::<_, Infallible>)).keep_alive(KeepAlive::default()).into_response()
}

/// Returns the chat of a conversation that the client names.
fn session_chat(session: &str) -> Result<String, Problem> {
    if session.is_empty() || session.len() > 256 {
        return Err(Problem::invalid("`session_id` has 1 to 256 bytes."));
    }
    Ok(Uuid::new_v5(&Uuid::NAMESPACE_OID, format!("session\0{session}").as_bytes()).to_string())
}

async fn say(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Json(new): Json<SessionMessage>,
) -> Result<axum::Json<WholeReply>, Problem> {
    let chat = shared.reading(&caller, &session_chat(&new.session_id)?)?.chat;
    let pictures = shown::pictures("pictures", new.pictures.iter().map(String::as_str))?;
    let reply = shared.say(&caller, chat, None, (&new.message, pictures), None).await?.reply().await?;
    let state = reply.turn.as_ref().map(|turn| turn.state.clone()).unwrap_or_default();
    Ok(axum::Json(WholeReply {
        message_id: reply.turn.as_ref().map(|turn| turn.reply.to_string()),
        response: reply.text,
        session_id: new.session_id,
        mood: state.mood,
        mood_value: state.mood_value,
        energy: state.energy,
    }))
}

async fn history(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Parted(session_id): Parted<String>,
) -> Result<axum::Json<History>, Problem> {
    let messages = shared.messages_with_pictures(&caller, &session_chat(&session_id)?).await?;
    Ok(axum::Json(History { session_id, messages }))
}

async fn clear(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Json(named): Json<SessionName>,
) -> Result<axum::Json<Done>, Problem> {
    shared.delete_chat(&caller, &session_chat(&named.session_id)?).await?;
    Ok(axum::Json(Done { status: "cleared" }))
}
