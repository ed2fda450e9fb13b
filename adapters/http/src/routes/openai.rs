//! The interface of OpenAI's chat completions: each persona is a model. The record holds the conversation, so only the last
//! message of a request is new.

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use azera_adapter::{PersonaSummary, Reading, TurnUsage};
use azera_types::ChatId;
use futures::{Stream, StreamExt};
use schemars::JsonSchema;
use serde::de::{Deserializer, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::accounts::{Caller, Scope};
use crate::endpoint::{Endpoint, Json, Need, Parted};
use crate::platform::chat_id;
use crate::problem::Problem;
use crate::shown::{self, Shown};
use crate::turn::{Said, Step};
use crate::web::Shared;

/// The header that chooses the chat.
const CHAT_HEADER: &str = "x-azera-chat";

/// The largest body. Clients send the whole conversation each time, with the pictures of all its messages.
const MAX_HISTORY_BYTES: usize = 64 << 20;

/// Longest name of a chat in a header or in `user`, in bytes.
const MAX_CHAT_NAME_BYTES: usize = 256;

/// A model: a persona.
#[derive(Debug, Serialize, JsonSchema)]
struct Model {
    /// The persona's id.
    id: String,
    /// Always `model`.
    object: &'static str,
    /// When the persona's version was stored, in seconds since 1970.
    created: i64,
    /// Always `azera`.
    owned_by: &'static str,
    /// The persona's name.
    name: String,
    /// What the persona is for.
    description: String,
}

/// The models.
#[derive(Debug, Serialize, JsonSchema)]
struct Models {
    /// Always `list`.
    object: &'static str,
    /// One for each persona.
    data: Vec<Model>,
}

/// A chat completion to make. Fields that are not listed are ignored: how a persona speaks is its own.
#[derive(Deserialize, JsonSchema)]
struct CompletionRequest {
    /// The persona's id.
    model: String,
    /// The conversation. Only its last message is new, and it must be the person's. The content of the others is not read.
    #[serde(rename = "messages", deserialize_with = "last_of")]
    #[schemars(with = "Vec<RequestMessage>")]
    last: Option<RequestMessage>,
    /// Send the reply while it is made.
    #[serde(default)]
    stream: bool,
    /// What the stream contains.
    #[serde(default)]
    stream_options: Option<StreamOptions>,
    /// Chooses the chat. The same word always continues the same chat.
    #[serde(default)]
    user: Option<String>,
    /// The number of replies; 1.
    #[serde(default)]
    n: Option<u32>,
    /// Must be empty: personas call no tools of clients.
    #[serde(default)]
    tools: Option<Vec<Value>>,
}

/// Options of a stream.
#[derive(Deserialize, JsonSchema)]
struct StreamOptions {
    /// Send the number of tokens at the end.
    #[serde(default)]
    include_usage: bool,
}

/// A message of a request.
#[derive(Deserialize, JsonSchema)]
struct RequestMessage {
    /// `user`, `assistant`, `system`, `developer` or `tool`.
    role: String,
    /// The text, or texts and pictures.
    #[serde(default)]
    #[schemars(with = "Option<RequestContent>")]
    content: Value,
}

/// Reads the last of a list of messages.
fn last_of<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<RequestMessage>, D::Error> {
    struct Messages;

    impl<'de> Visitor<'de> for Messages {
        type Value = Option<RequestMessage>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list of messages")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut messages: A) -> Result<Self::Value, A::Error> {
            let mut last = None;
            while let Some(message) = messages.next_element()? {
                last = Some(message);
            }
            Ok(last)
        }
    }

    deserializer.deserialize_seq(Messages)
}

/// The content of a message.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
enum RequestContent {
    /// A text.
    Text(String),
    /// Parts: texts and pictures.
    Parts(Vec<RequestPart>),
}

/// A part of a message.
#[derive(Deserialize, JsonSchema)]
struct RequestPart {
    /// `text` or `image_url`.
    r#type: String,
    /// The text.
    #[serde(default)]
    text: Option<String>,
    /// The picture.
    #[serde(default)]
    image_url: Option<ImageUrl>,
}

/// A picture of a message. Up to four are shown.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
enum ImageUrl {
    /// As OpenAI has it.
    Object {
        /// A `data:` URL in base64: PNG, JPEG, WebP or GIF, of at most 8 MB. Other addresses are refused.
        url: String,
    },
    /// The URL alone, as some clients send it.
    Url(String),
}

impl ImageUrl {
    fn as_str(&self) -> &str {
        let (Self::Object { url } | Self::Url(url)) = self;
        url
    }
}

/// A completion.
#[derive(Debug, Serialize, JsonSchema)]
struct Completion {
    /// The id of the reply.
    id: String,
    /// Always `chat.completion`.
    object: &'static str,
    /// Seconds since 1970.
    created: i64,
    /// The persona's id.
    model: String,
    /// The one reply.
    choices: Vec<Choice>,
    /// Tokens.
    usage: Usage,
}

/// A reply.
#[derive(Debug, Serialize, JsonSchema)]
struct Choice {
    /// Always 0.
    index: u32,
    /// The message.
    message: ReplyMessage,
    /// Always `stop`.
    finish_reason: &'static str,
}

/// The message of a reply.
#[derive(Debug, Serialize, JsonSchema)]
struct ReplyMessage {
    /// Always `assistant`.
    role: &'static str,
    /// The text.
    content: String,
}

/// Tokens of a reply.
#[derive(Debug, Default, Clone, Serialize, JsonSchema)]
struct Usage {
    /// Tokens of the prompt, with what was recalled.
    prompt_tokens: usize,
    /// Tokens of the reply.
    completion_tokens: usize,
    /// Both.
    total_tokens: usize,
}

impl From<&TurnUsage> for Usage {
    fn from(usage: &TurnUsage) -> Self {
        Self {
            prompt_tokens: usage.prompt_tokens,
            completion_tokens: usage.completion_tokens,
            total_tokens: usage.prompt_tokens + usage.completion_tokens,
        }
    }
}

pub(super) fn endpoints() -> Vec<Endpoint> {
    let chat = Need::Scope(Scope::Chat);
    let mut completions = Endpoint::new(
        Method::POST,
        "/v1/chat/completions",
        chat,
        "Talk to a persona, as OpenAI's clients do",
        complete,
    )
    .takes::<CompletionRequest>()
    .answers::<Completion>();
    completions.may_stream = true;
    completions.body_bytes = MAX_HISTORY_BYTES;
    vec![
        Endpoint::new(Method::GET, "/v1/models", chat, "List the personas as models", models).answers::<Models>(),
        Endpoint::new(Method::GET, "/v1/models/{id}", chat, "Show one persona as a model", model).answers::<Model>(),
        completions,
    ]
}

/// Returns true if errors of a path have OpenAI's form.
pub(crate) fn speaks_openai(path: &str) -> bool {
    path.starts_with("/v1/")
}

/// Gives an error OpenAI's form.
pub(crate) fn errors_of_openai(response: Response) -> Response {
    let Some(problem) = response.extensions().get::<Problem>().cloned() else { return response };
    let kind = match problem.status {
        StatusCode::UNAUTHORIZED => "authentication_error",
        StatusCode::FORBIDDEN => "permission_error",
        StatusCode::TOO_MANY_REQUESTS => "rate_limit_error",
        status if status.is_server_error() => "server_error",
        _ => "invalid_request_error",
    };
    let body = json!({"error": {"message": problem.detail, "type": kind, "param": null, "code": problem.code}});
    let mut headers = response.headers().clone();
    headers.remove(axum::http::header::CONTENT_TYPE);
    headers.remove(axum::http::header::CONTENT_LENGTH);
    let mut answer = (problem.status, axum::Json(body)).into_response();
    answer.headers_mut().extend(headers);
    answer
}

impl Shared {
    /// Returns the personas that may answer an account.
    pub(crate) async fn answering(&self, caller: &Caller) -> Result<Vec<PersonaSummary>, Problem> {
        let at = Reading { chat: chat_id(&caller.account, "main")?, person: caller.person()? };
        let mut personas = self.reader()?.personas(&self.platform, at).await?;
        personas.retain(|persona| !persona.is_user);
        Ok(personas)
    }
}

fn shown(persona: PersonaSummary) -> Model {
    Model {
        id: persona.id.to_string(),
        object: "model",
        created: persona.at.as_second(),
        owned_by: "azera",
        name: persona.name,
        description: persona.intent,
    }
}

async fn models(State(shared): State<Arc<Shared>>, caller: Caller) -> Result<axum::Json<Models>, Problem> {
    let data = shared.answering(&caller).await?.into_iter().map(shown).collect();
    Ok(axum::Json(Models { object: "list", data }))
}

async fn model(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Parted(id): Parted<String>,
) -> Result<axum::Json<Model>, Problem> {
    Ok(axum::Json(shown(named(&shared, &caller, &id).await?)))
}

async fn named(shared: &Shared, caller: &Caller, id: &str) -> Result<PersonaSummary, Problem> {
    let found = shared.answering(caller).await?.into_iter().find(|persona| persona.id.as_str() == id);
    let unknown = || {
        let detail = format!("There is no persona {id:?}. GET /v1/models lists them.");
        Problem::new(StatusCode::NOT_FOUND, "model_not_found", detail)
    };
    found.ok_or_else(unknown)
}

/// Returns the text and the pictures of the last message, which is the person's.
fn last_words(request: CompletionRequest) -> Result<(String, Vec<Shown>), Problem> {
    if request.n.is_some_and(|n| n != 1) {
        return Err(Problem::invalid("`n` must be 1: a conversation has one reply to a message."));
    }
    if request.tools.is_some_and(|tools| !tools.is_empty()) {
        return Err(Problem::invalid("`tools` must be empty: personas call no tools of clients."));
    }
    let Some(last) = request.last.filter(|last| last.role == "user") else {
        return Err(Problem::invalid("The last message must have the role `user`: it is the one that is answered."));
    };
    if last.content.is_null() {
        return Err(Problem::invalid("The last message has no content."));
    }
    let content = serde_json::from_value(last.content);
    match content.map_err(|_| Problem::invalid("The content of the last message is no text and no list of parts."))? {
        RequestContent::Text(text) => Ok((text, Vec::new())),
        RequestContent::Parts(parts) => {
            if let Some(part) = parts.iter().find(|part| !matches!(part.r#type.as_str(), "text" | "image_url")) {
                let detail =
                    format!("A part of the type {:?} cannot be taken; `text` and `image_url` can.", part.r#type);
                return Err(Problem::invalid(detail));
            }
            let urls = parts.iter().filter(|part| part.r#type == "image_url");
            let urls = urls.map(|part| part.image_url.as_ref().map_or("", ImageUrl::as_str));
            let pictures = shown::pictures("image_url", urls)?;
            let texts: Vec<String> = parts.into_iter().filter_map(|part| part.text).collect();
            Ok((texts.join("\n"), pictures))
        }
    }
}

/// Returns the chat of a request: one for each key, persona, `user` and name in the header.
fn chat_of(caller: &Caller, persona: &PersonaSummary, user: &str, named: &str) -> Result<ChatId, Problem> {
    if user.len() > MAX_CHAT_NAME_BYTES || named.len() > MAX_CHAT_NAME_BYTES {
        return Err(Problem::invalid(format!("A chat's name has at most {MAX_CHAT_NAME_BYTES} bytes.")));
    }
    let key = caller.key.as_deref().unwrap_or("session");
    // The parts are separated by a character that none of them contains.
    let parts = [key, persona.id.as_str(), user, named].join("\0");
    let suffix = Uuid::new_v5(&Uuid::NAMESPACE_OID, parts.as_bytes()).to_string();
    Ok(chat_id(&caller.account, &suffix)?)
}

async fn complete(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    caller: Caller,
    Json(request): Json<CompletionRequest>,
) -> Result<Response, Problem> {
    let persona = named(&shared, &caller, &request.model).await?;
    let name = match headers.get(CHAT_HEADER).map(|value| value.to_str()) {
        None => "",
        Some(Ok(name)) => name,
        Some(Err(_)) => return Err(Problem::invalid("The header X-Azera-Chat is no plain text.")),
    };
    let chat = chat_of(&caller, &persona, request.user.as_deref().unwrap_or_default(), name)?;
    let (streams, with_usage) =
        (request.stream, request.stream_options.as_ref().is_some_and(|options| options.include_usage));
    let (text, pictures) = last_words(request)?;
    let said = shared.say(&caller, chat, Some(persona.id.clone()), (&text, pictures), None).await?;
    let head = Head { model: persona.id.to_string(), created: shared.clock.now().as_second(), id: completion_id()? };
    if streams {
        let events = chunks(head, said, with_usage).map(Ok::<_, Infallible>);
        return Ok(Sse::new(events).keep_alive(KeepAlive::default()).into_response());
    }
    let reply = said.reply().await?;
    let usage = reply.turn.as_ref().map(|turn| Usage::from(&turn.usage)).unwrap_or_default();
    let message = ReplyMessage { role: "assistant", content: reply.text };
    Ok(axum::Json(Completion {
        id: head.id,
        object: "chat.completion",
        created: head.created,
        model: head.model,
        choices: vec![Choice { index: 0, message, finish_reason: "stop" }],
        usage,
    })
    .into_response())
}

fn completion_id() -> Result<String, Problem> {
    Ok(format!("chatcmpl-{}", crate::secrets::id()?.simple()))
}

/// What every chunk of a stream repeats.
struct Head {
    id: String,
    created: i64,
    model: String,
}

impl Head {
    fn chunk(&self, choices: Value, usage: Option<Usage>) -> Event {
        let mut chunk = json!({
            "id": self.id,
            "object": "chat.completion.chunk",
            "created": self.created,
            "model": self.model,
            "choices": choices,
        });
        if let Some(usage) = usage {
            chunk["usage"] = json!(usage);
        }
        Event::default().data(chunk.to_string())
    }

    fn delta(&self, delta: Value) -> Event {
        self.chunk(json!([{"index": 0, "delta": delta, "finish_reason": null}]), None)
    }
}

/// Returns the events of a streamed completion.
fn chunks(head: Head, said: Said, with_usage: bool) -> impl Stream<Item = Event> + Send {
    let first = futures::stream::iter([head.delta(json!({"role": "assistant", "content": ""}))]);
    let rest = said.steps().flat_map(move |step| {
        let mut events = Vec::new();
        match step {
            Step::ThinkingStart | Step::ThinkingEnd => {}
            Step::Thinking(text) => events.push(head.delta(json!({"reasoning_content": text}))),
            Step::Content(text) => events.push(head.delta(json!({"content": text}))),
            // What was sent cannot be taken back. The reply begins on a line of its own.
            Step::Retracted | Step::Withdrawn => events.push(head.delta(json!({"content": "\n\n"}))),
            Step::Done(reply) => {
                if !reply.rest.is_empty() {
                    events.push(head.delta(json!({"content": reply.rest})));
                }
                events.push(head.chunk(json!([{"index": 0, "delta": {}, "finish_reason": "stop"}]), None));
                if with_usage {
                    let usage = reply.turn.as_ref().map(|turn| Usage::from(&turn.usage)).unwrap_or_default();
                    events.push(head.chunk(json!([]), Some(usage)));
                }
                events.push(Event::default().data("[DONE]"));
            }
            Step::Failed(problem) => {
                let error = json!({"error": {"message": problem.detail, "type": "server_error", "code": problem.code}});
                events.push(Event::default().data(error.to_string()));
                events.push(Event::default().data("[DONE]"));
            }
        }
        futures::stream::iter(events)
    });
    first.chain(rest)
}
