//! Pictures that wait or are being drawn: the list of one's own, and streams about one.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::{Method, StatusCode};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use azera_adapter::{FileContent, PictureAsked, PictureState, Reading, WaitingPicture};
use azera_types::ChatId;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::Stream;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::images::{CHAT, Image};
use super::talk::event;
use super::{Done, List};
use crate::accounts::{Caller, Scope};
use crate::endpoint::{Endpoint, Json, Need, Parted};
use crate::platform::suffix_of;
use crate::problem::Problem;
use crate::web::Shared;

/// Time between two looks at a picture that is being drawn.
const LOOK: Duration = Duration::from_millis(250);

/// A picture that waits or is being drawn.
#[derive(Debug, Serialize, JsonSchema)]
struct WaitingImage {
    /// Its number, for following and cancelling it.
    number: u64,
    /// What is to be drawn.
    prompt: String,
    /// How far it is.
    #[serde(flatten)]
    stage: Stage,
}

/// How far a picture is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
struct Stage {
    /// `waits` for its turn, `loading` while the server loads its model, or `drawing`.
    state: &'static str,
    /// Its place among all that wait, from 1; `None` once it is its turn.
    place: Option<usize>,
    /// While the server loads its model: the bytes that it downloaded for that so far, 0 for a model on its disk.
    downloaded: Option<u64>,
    /// Steps done.
    step: u32,
    /// All steps; 0 while unknown.
    total_steps: u32,
    /// Hundredths of the steps that are done.
    percentage: u64,
}

impl Stage {
    /// Returns how far a picture is that goes on; `None` if it is over. `steps` stands for all steps while the server
    /// names none.
    fn of(state: &PictureState, steps: u32) -> Option<Self> {
        let before = |state| Self { state, place: None, downloaded: None, step: 0, total_steps: steps, percentage: 0 };
        Some(match *state {
            PictureState::Waits { place } => Self { place: Some(place), ..before("waits") },
            PictureState::Loading { downloaded } => Self { downloaded: Some(downloaded), ..before("loading") },
            PictureState::Drawing { steps: 0, .. } => before("drawing"),
            PictureState::Drawing { step, steps, .. } => Self {
                step,
                total_steps: steps,
                percentage: (u64::from(step) * 100 / u64::from(steps)).min(100),
                ..before("drawing")
            },
            PictureState::Drawn(_) | PictureState::Failed(_) => return None,
        })
    }
}

/// A picture to take back.
#[derive(Deserialize, JsonSchema)]
struct TakenBack {
    /// Its number, as the event `progress` tells it.
    number: u64,
}

pub(super) fn endpoints() -> Vec<Endpoint> {
    let chat = Need::Scope(Scope::Chat);
    vec![
        Endpoint::new(
            Method::GET,
            "/api/images/waiting",
            chat,
            "List the pictures that one asked for and that wait or are being drawn",
            list,
        )
        .answers::<List<WaitingImage>>(),
        Endpoint::new(
            Method::GET,
            "/api/images/waiting/{number}",
            chat,
            "Follow a picture again that one asked for",
            follow_again,
        )
        .sends("text/event-stream", "Events: progress, complete with the picture, error."),
        Endpoint::new(
            Method::POST,
            "/api/images/cancel",
            chat,
            "Take back a picture that waits or is being drawn",
            cancel,
        )
        .takes::<TakenBack>()
        .answers::<Done>(),
    ]
}

async fn list(State(shared): State<Arc<Shared>>, caller: Caller) -> Result<axum::Json<List<WaitingImage>>, Problem> {
    let shown = shared.waiting_pictures(&caller).await?.into_iter().filter_map(|picture| {
        let stage = Stage::of(&picture.state, 0)?;
        Some(WaitingImage { number: picture.number, prompt: picture.prompt.to_string(), stage })
    });
    Ok(axum::Json(shown.collect::<Vec<_>>().into()))
}

async fn follow_again(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Parted(number): Parted<u64>,
) -> Result<Response, Problem> {
    let chat = shared.chat_of_waiting(&caller, number).await?;
    let at = Reading { chat: chat.ok_or_else(|| Problem::not_found("waiting picture"))?, person: caller.person()? };
    follow(shared, at, PictureAsked::Waits(number), 0)
}

/// A picture belongs to the chat in which it was asked for. One that was drawn meanwhile is in none, so the caller's chats
/// for pictures are tried.
async fn cancel(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Json(wish): Json<TakenBack>,
) -> Result<axum::Json<Done>, Problem> {
    let line = format!("/picture cancel {}", wish.number);
    if let Some(chat) = shared.chat_of_waiting(&caller, wish.number).await? {
        return match shared.command(&caller, chat, &line).await?.ok {
            true => Ok(axum::Json(Done { status: "cancelled" })),
            false => Err(Problem::not_found("waiting picture")),
        };
    }
    for chat in shared.chats(&caller).await? {
        if suffix_of(&chat.chat).starts_with(CHAT) && shared.command(&caller, chat.chat, &line).await?.ok {
            return Ok(axum::Json(Done { status: "cancelled" }));
        }
    }
    Err(Problem::not_found("waiting picture"))
}

impl Shared {
    /// Returns the pictures that the caller asked for and that are not drawn yet. A chat that has no message yet is among
    /// theirs, too.
    async fn waiting_pictures(&self, caller: &Caller) -> Result<Vec<WaitingPicture>, Problem> {
        let mut waiting = self.pictures()?.waiting_pictures(&self.platform, &caller.person()?).await?;
        waiting.sort_by_key(|picture| picture.number);
        Ok(waiting)
    }

    /// Returns the chat in which the caller asked for a picture that is not drawn yet.
    async fn chat_of_waiting(&self, caller: &Caller, number: u64) -> Result<Option<ChatId>, Problem> {
        let waiting = self.waiting_pictures(caller).await?;
        Ok(waiting.into_iter().find(|picture| picture.number == number).map(|picture| picture.chat))
    }
}

/// Answers with a stream about a picture that waits.
pub(super) fn follow(shared: Arc<Shared>, at: Reading, asked: PictureAsked, steps: u32) -> Result<Response, Problem> {
    match asked {
        PictureAsked::Waits(number) => {
            let drawing = Drawing { at, number, steps };
            Ok(Sse::new(progress(shared, drawing)).keep_alive(KeepAlive::default()).into_response())
        }
        PictureAsked::Refused(why) => Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "refused", why)),
        PictureAsked::Unknown { kind, why } => {
            let code = if kind == "sampler" { "sampler_not_found" } else { "model_not_found" };
            Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, code, why))
        }
        PictureAsked::TooMany(why) => Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, "too_many_pictures", why)),
    }
}

/// A picture that somebody follows.
#[derive(Clone)]
struct Drawing {
    at: Reading,
    number: u64,
    /// The steps that were asked for; 0 for the configured ones.
    steps: u32,
}

/// What comes next in a stream about a picture.
enum Next {
    Look { shown: Option<Stage> },
    End,
}

/// Returns how a picture goes on, until it ends. It is drawn without anybody who follows, too.
fn progress(shared: Arc<Shared>, drawing: Drawing) -> impl Stream<Item = Result<Event, Infallible>> + Send {
    futures::stream::unfold(Next::Look { shown: None }, move |next| {
        let (shared, drawing) = (shared.clone(), drawing.clone());
        async move {
            let Next::Look { shown } = next else { return None };
            loop {
                let state = shared.state_of(&drawing).await;
                let Some(stage) = state.as_ref().ok().and_then(|state| Stage::of(state.as_ref()?, drawing.steps))
                else {
                    return Some((Ok(last(state)), Next::End));
                };
                if shown != Some(stage) {
                    let event = event("progress", &told(drawing.number, stage, state.ok().flatten()));
                    return Some((Ok(event), Next::Look { shown: Some(stage) }));
                }
                tokio::select! {
                    () = tokio::time::sleep(LOOK) => {}
                    () = shared.stop.cancelled() => return None,
                }
            }
        }
    })
}

impl Shared {
    async fn state_of(&self, drawing: &Drawing) -> Result<Option<PictureState>, Problem> {
        Ok(self.pictures()?.picture_state(&self.platform, drawing.at.clone(), drawing.number).await?)
    }
}

/// Returns the last event of a picture that goes on no more.
fn last(ended: Result<Option<PictureState>, Problem>) -> Event {
    let why = match ended {
        Ok(Some(PictureState::Drawn(picture))) => return event("complete", &json!({"image": Image::from(picture)})),
        Ok(Some(PictureState::Failed(why))) => why,
        Ok(_) => "The picture was taken back.".to_owned(),
        Err(problem) => problem.detail,
    };
    event("error", &json!({"message": why}))
}

fn told(number: u64, stage: Stage, state: Option<PictureState>) -> serde_json::Value {
    let mut told = json!(stage);
    told["number"] = json!(number);
    if let Some(PictureState::Drawing { preview: Some(FileContent(jpeg)), .. }) = state {
        told["preview"] = json!(format!("data:image/jpeg;base64,{}", STANDARD.encode(jpeg)));
    }
    told
}
