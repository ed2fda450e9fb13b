//! The chat models: which there are, and for owners downloading and removing them.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::Method;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use azera_adapter::ModelSummary;
use futures::Stream;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::Done;
use super::talk::event;
use crate::accounts::{Caller, Scope};
use crate::endpoint::{Endpoint, Json, Need, Parted};
use crate::problem::Problem;
use crate::web::Shared;

/// The chat in which the commands of an owner run.
const HOME: &str = "main";

/// Time between two looks at a download.
const LOOK: Duration = Duration::from_millis(250);

/// A model.
#[derive(Debug, Serialize, JsonSchema)]
struct Model {
    /// Its name.
    name: String,
    /// The size of its file in bytes; 0 without a file on this machine.
    size: u64,
    /// One line that describes it.
    title: String,
}

/// The models.
#[derive(Debug, Serialize, JsonSchema)]
struct Models {
    /// The chat models that can answer.
    models: Vec<Model>,
    /// How many there are.
    count: usize,
    /// The chat models that can be downloaded.
    available: Vec<Model>,
}

/// A model to download.
#[derive(Deserialize, JsonSchema)]
struct Wish {
    /// Its name.
    model: String,
}

pub(super) fn endpoints() -> Vec<Endpoint> {
    let (chat, admin) = (Need::Scope(Scope::Chat), Need::Scope(Scope::Admin));
    vec![
        Endpoint::new(Method::GET, "/api/models", chat, "List the chat models", list).answers::<Models>(),
        Endpoint::new(Method::POST, "/api/models/pull", admin, "Download a chat model", pull)
            .takes::<Wish>()
            .sends("text/event-stream", "Events: progress with total and completed in percent, complete, error."),
        Endpoint::new(Method::DELETE, "/api/models/{name}", admin, "Remove the file of a chat model", remove)
            .answers::<Done>(),
    ]
}

impl Shared {
    async fn model(&self, name: &str) -> Result<Option<ModelSummary>, Problem> {
        Ok(self.reader()?.models().await?.into_iter().find(|model| model.name == name))
    }
}

async fn list(State(shared): State<Arc<Shared>>) -> Result<axum::Json<Models>, Problem> {
    let found = shared.reader()?.models().await?;
    let (installed, available): (Vec<_>, Vec<_>) = found.into_iter().partition(|model| model.is_installed);
    let shown = |models: Vec<ModelSummary>| -> Vec<Model> {
        let shown =
            |model: ModelSummary| Model { name: model.name, size: model.bytes.unwrap_or_default(), title: model.title };
        models.into_iter().map(shown).collect()
    };
    let (models, available) = (shown(installed), shown(available));
    Ok(axum::Json(Models { count: models.len(), models, available }))
}

async fn pull(State(shared): State<Arc<Shared>>, caller: Caller, Json(wish): Json<Wish>) -> Result<Response, Problem> {
    let known = shared.model(&wish.model).await?.ok_or_else(|| Problem::not_found("model"))?;
    if !known.is_installed && known.fetched.is_none() {
        let chat = shared.reading(&caller, HOME)?.chat;
        shared.perform(&caller, chat, &format!("/model pull {}", known.name)).await?;
    }
    let progress = progress(shared, known.name);
    Ok(Sse::new(progress).keep_alive(KeepAlive::default()).into_response())
}

/// What comes next in a stream about a download.
enum Next {
    Look { shown: Option<u8> },
    End,
}

/// Returns how a download goes on, until it ends. It goes on without anybody who listens, too.
fn progress(shared: Arc<Shared>, name: String) -> impl Stream<Item = Result<Event, Infallible>> + Send {
    futures::stream::unfold(Next::Look { shown: None }, move |next| {
        let (shared, name) = (shared.clone(), name.clone());
        async move {
            let Next::Look { shown } = next else { return None };
            loop {
                match shared.model(&name).await {
                    Ok(Some(ModelSummary { fetched: Some(percent), .. })) if shown != Some(percent) => {
                        let data = json!({"status": "downloading", "digest": "", "total": 100, "completed": percent});
                        return Some((Ok(event("progress", &data)), Next::Look { shown: Some(percent) }));
                    }
                    Ok(Some(ModelSummary { fetched: Some(_), .. })) => {}
                    Ok(Some(ModelSummary { is_installed: true, .. })) => {
                        return Some((Ok(event("complete", &json!({}))), Next::End));
                    }
                    Ok(_) => {
                        let why = "The model could not be downloaded. The operator finds the reason in the log.";
                        return Some((Ok(event("error", &json!({"message": why}))), Next::End));
                    }
                    Err(problem) => {
                        return Some((Ok(event("error", &json!({"message": problem.detail}))), Next::End));
                    }
                }
                tokio::select! {
                    () = tokio::time::sleep(LOOK) => {}
                    () = shared.stop.cancelled() => return None,
                }
            }
        }
    })
}

/// Clients write `_` for a `:`, which some of them cannot have in a path.
async fn remove(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Parted(name): Parted<String>,
) -> Result<axum::Json<Done>, Problem> {
    let known = match shared.model(&name).await? {
        Some(known) => Some(known),
        None => shared.model(&name.replace('_', ":")).await?,
    };
    let known = known.ok_or_else(|| Problem::not_found("model"))?;
    let chat = shared.reading(&caller, HOME)?.chat;
    shared.perform(&caller, chat, &format!("/model remove {}", known.name)).await?;
    Ok(axum::Json(Done { status: "deleted" }))
}
