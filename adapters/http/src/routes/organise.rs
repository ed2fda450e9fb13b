//! Groups, tags and settings of clients.

use std::sync::Arc;

use axum::extract::State;
use axum::http::Method;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::{Done, List};
use crate::accounts::{Caller, Label, LabelChanges, LabelKind, NewLabel, Scope};
use crate::endpoint::{Endpoint, Json, Need, Parted};
use crate::problem::Problem;
use crate::web::Shared;

/// The settings that clients stored.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Settings {
    /// Settings of the editor.
    editor_settings: Map<String, Value>,
    /// Other settings.
    ui_settings: Map<String, Value>,
}

/// The settings of an editor that nobody changed.
const EDITOR: [(&str, i64); 2] = [("fontSize", 14), ("tabSize", 4)];

pub(super) fn endpoints() -> Vec<Endpoint> {
    let chat = Need::Scope(Scope::Chat);
    vec![
        Endpoint::new(Method::GET, "/api/groups", chat, "List one's groups of chats", groups).answers::<List<Label>>(),
        Endpoint::new(Method::POST, "/api/groups", chat, "Make a group", add_group)
            .takes::<NewLabel>()
            .answers::<Label>(),
        Endpoint::new(Method::PUT, "/api/groups/{id}", chat, "Change a group", change_group)
            .takes::<LabelChanges>()
            .answers::<Label>(),
        Endpoint::new(Method::DELETE, "/api/groups/{id}", chat, "Delete a group; its chats stay", delete_group)
            .answers::<Done>(),
        Endpoint::new(Method::GET, "/api/tags", chat, "List one's tags", tags).answers::<List<Label>>(),
        Endpoint::new(Method::POST, "/api/tags", chat, "Make a tag", add_tag).takes::<NewLabel>().answers::<Label>(),
        Endpoint::new(Method::PUT, "/api/tags/{id}", chat, "Change a tag", change_tag)
            .takes::<LabelChanges>()
            .answers::<Label>(),
        Endpoint::new(Method::DELETE, "/api/tags/{id}", chat, "Delete a tag; its chats stay", delete_tag)
            .answers::<Done>(),
        Endpoint::new(Method::GET, "/api/settings", chat, "Show what clients stored", settings).answers::<Settings>(),
        Endpoint::new(Method::PUT, "/api/settings/editor", chat, "Store settings of an editor", set_editor)
            .takes::<Map<String, Value>>()
            .answers::<Done>(),
        Endpoint::new(Method::PUT, "/api/settings/ui", chat, "Store settings of a client", set_ui)
            .takes::<Map<String, Value>>()
            .answers::<Done>(),
    ]
}

async fn groups(State(shared): State<Arc<Shared>>, caller: Caller) -> axum::Json<List<Label>> {
    axum::Json(shared.accounts.labels(&caller.account, LabelKind::Group).into())
}

async fn tags(State(shared): State<Arc<Shared>>, caller: Caller) -> axum::Json<List<Label>> {
    axum::Json(shared.accounts.labels(&caller.account, LabelKind::Tag).into())
}

async fn add_group(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Json(new): Json<NewLabel>,
) -> Result<axum::Json<Label>, Problem> {
    Ok(axum::Json(shared.accounts.add_label(&caller.account, LabelKind::Group, new).await?))
}

async fn add_tag(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Json(new): Json<NewLabel>,
) -> Result<axum::Json<Label>, Problem> {
    Ok(axum::Json(shared.accounts.add_label(&caller.account, LabelKind::Tag, new).await?))
}

async fn change_group(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Parted(id): Parted<String>,
    Json(changes): Json<LabelChanges>,
) -> Result<axum::Json<Label>, Problem> {
    Ok(axum::Json(shared.accounts.change_label(&caller.account, LabelKind::Group, &id, changes).await?))
}

async fn change_tag(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Parted(id): Parted<String>,
    Json(changes): Json<LabelChanges>,
) -> Result<axum::Json<Label>, Problem> {
    Ok(axum::Json(shared.accounts.change_label(&caller.account, LabelKind::Tag, &id, changes).await?))
}

async fn delete_group(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Parted(id): Parted<String>,
) -> Result<axum::Json<Done>, Problem> {
    shared.accounts.check_group(&caller.account, &id)?;
    for chat in shared.chats(&caller).await?.into_iter().filter(|chat| chat.group.as_deref() == Some(id.as_str())) {
        shared.perform(&caller, chat.chat, "/group leave").await?;
    }
    shared.accounts.remove_label(&caller.account, LabelKind::Group, &id).await?;
    Ok(axum::Json(Done { status: "deleted" }))
}

async fn delete_tag(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Parted(id): Parted<String>,
) -> Result<axum::Json<Done>, Problem> {
    shared.accounts.check_tag(&caller.account, &id)?;
    for chat in shared.chats(&caller).await?.into_iter().filter(|chat| chat.tags.contains(&id)) {
        shared.perform(&caller, chat.chat, &format!("/tag remove {id}")).await?;
    }
    shared.accounts.remove_label(&caller.account, LabelKind::Tag, &id).await?;
    Ok(axum::Json(Done { status: "deleted" }))
}

async fn settings(State(shared): State<Arc<Shared>>, caller: Caller) -> axum::Json<Settings> {
    let (mut editor, ui) = shared.accounts.settings(&caller.account);
    for (name, value) in EDITOR {
        editor.entry(name).or_insert_with(|| value.into());
    }
    for name in ["lineNumbers", "wordWrap"] {
        editor.entry(name).or_insert(true.into());
    }
    axum::Json(Settings { editor_settings: editor, ui_settings: ui })
}

async fn set_editor(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Json(settings): Json<Map<String, Value>>,
) -> Result<axum::Json<Done>, Problem> {
    shared.accounts.set_settings(&caller.account, true, settings).await?;
    Ok(axum::Json(Done { status: "ok" }))
}

async fn set_ui(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Json(settings): Json<Map<String, Value>>,
) -> Result<axum::Json<Done>, Problem> {
    shared.accounts.set_settings(&caller.account, false, settings).await?;
    Ok(axum::Json(Done { status: "ok" }))
}
