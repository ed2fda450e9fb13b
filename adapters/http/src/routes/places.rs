//! The places in which the personas live, for owners: names and settings, and nothing that people said.

use std::sync::Arc;

use axum::extract::State;
use axum::http::Method;
use azera_adapter::{AnswerMode, ChatPlace, PlatformPlaces, RealmPlaces};
use schemars::JsonSchema;
use serde::Serialize;

use super::List;
use crate::accounts::Scope;
use crate::endpoint::{Endpoint, Need};
use crate::problem::Problem;
use crate::web::Shared;

/// A platform.
#[derive(Debug, Serialize, JsonSchema)]
struct PlatformInfo {
    /// Its name.
    platform: String,
    /// Whether its server can be reached; null if that is not known.
    is_reachable: Option<bool>,
    /// Its servers, spaces and lone rooms.
    realms: Vec<Realm>,
    /// Number of direct messages. They are not listed.
    direct: usize,
    /// Number of chats that the platform knows nothing about now.
    unknown: usize,
}

/// A server, a space or a lone room.
#[derive(Debug, Serialize, JsonSchema)]
struct Realm {
    /// Its id; null for private chats outside of any.
    id: Option<String>,
    /// Its name.
    name: Option<String>,
    /// Its channels and rooms.
    chats: Vec<Place>,
}

/// A channel or a room.
#[derive(Debug, Serialize, JsonSchema)]
struct Place {
    /// Its id.
    id: String,
    /// Its name.
    name: Option<String>,
    /// Whether only its members can read it.
    is_private: bool,
    /// The name of the persona that answers.
    persona: String,
    /// The names of the personas that answer when they are called.
    invited: Vec<String>,
    /// `addressed`, `always` or `never`.
    answers: &'static str,
    /// The id of the chat in which dreams and journal entries are posted.
    journal: Option<String>,
}

pub(super) fn endpoints() -> Vec<Endpoint> {
    let summary = "List the servers, rooms and channels with who answers there";
    vec![
        Endpoint::new(Method::GET, "/api/places", Need::Scope(Scope::Admin), summary, list)
            .answers::<List<PlatformInfo>>(),
    ]
}

impl From<PlatformPlaces> for PlatformInfo {
    fn from(found: PlatformPlaces) -> Self {
        Self {
            platform: found.platform.to_string(),
            is_reachable: found.is_reachable,
            realms: found.realms.into_iter().map(Realm::from).collect(),
            direct: found.direct,
            unknown: found.unknown,
        }
    }
}

impl From<RealmPlaces> for Realm {
    fn from(realm: RealmPlaces) -> Self {
        Self {
            id: realm.realm.map(|id| id.to_string()),
            name: realm.name,
            chats: realm.chats.into_iter().map(Place::from).collect(),
        }
    }
}

impl From<ChatPlace> for Place {
    fn from(place: ChatPlace) -> Self {
        Self {
            id: place.chat.to_string(),
            name: place.name,
            is_private: place.is_private,
            persona: place.persona,
            invited: place.invited,
            answers: match place.answers {
                AnswerMode::Addressed => "addressed",
                AnswerMode::Always => "always",
                AnswerMode::Never => "never",
            },
            journal: place.journal.map(|chat| chat.to_string()),
        }
    }
}

/// The chats of the web itself belong to one person each, so they are left out.
async fn list(State(shared): State<Arc<Shared>>) -> Result<axum::Json<List<PlatformInfo>>, Problem> {
    let found = shared.places()?.places(&shared.platform).await?;
    Ok(axum::Json(found.into_iter().map(PlatformInfo::from).collect::<Vec<_>>().into()))
}
