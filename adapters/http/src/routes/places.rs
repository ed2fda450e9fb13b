//! The places in which the personas live, for owners: names and settings, and nothing that people said. Owners change the
//! settings, too, by the rules of the commands.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{Method, StatusCode};
use azera_adapter::{
    AnswerMode, ChatPlace, HostError, Invitation, PlaceChange, PlatformPlaces, RealmPlaces, SpokenReplies, Trouble,
};
use azera_types::ChatId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::List;
use crate::accounts::{Caller, Scope};
use crate::endpoint::{Endpoint, Json, Need, Parted};
use crate::problem::Problem;
use crate::web::Shared;

/// A platform.
#[derive(Debug, Serialize, JsonSchema)]
struct PlatformInfo {
    /// Its name.
    platform: String,
    /// Whether its server can be reached; null if that is not known.
    is_reachable: Option<bool>,
    /// Since when that is so (RFC 3339); null if it is not known.
    since: Option<String>,
    /// What was wrong last; null if nothing was.
    last_trouble: Option<TroubleInfo>,
    /// How the bot comes to further places; null if that is not known.
    invitation: Option<InvitationInfo>,
    /// Its servers, spaces and lone rooms.
    realms: Vec<Realm>,
    /// Number of direct messages. They are not listed.
    direct: usize,
    /// Number of chats that the platform knows nothing about now.
    unknown: usize,
}

/// What was wrong with a connection.
#[derive(Debug, Serialize, JsonSchema)]
struct TroubleInfo {
    /// `unreachable`, `closed` or `refused`.
    kind: &'static str,
    /// When it was noticed (RFC 3339).
    at: String,
}

/// How the bot comes to further places.
#[derive(Debug, Serialize, JsonSchema)]
struct InvitationInfo {
    /// The address that an admin opens in a browser; null where an account is invited.
    link: Option<String>,
    /// The account that members invite; null where a link is opened.
    account: Option<String>,
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
    /// When it answers.
    answers: Answers,
    /// When replies are also spoken.
    spoken_replies: Spoken,
    /// The id of the chat in which dreams and journal entries are posted.
    journal: Option<String>,
}

/// When a persona answers in a place.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Answers {
    /// When it is mentioned, replied to or called.
    Addressed,
    /// Everything that is not meant for somebody else.
    Always,
    /// Never.
    Never,
}

/// When replies in a place are also spoken.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Spoken {
    /// Those to voice messages.
    Auto,
    /// All.
    Always,
    /// None.
    Never,
}

/// Changes of a place. What is left out stays. They are made in this order, until one is refused.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PlaceChanges {
    /// The name of the persona that answers.
    #[serde(default)]
    persona: Option<String>,
    /// The name of one more persona, which answers when it is called.
    #[serde(default)]
    invite: Option<String>,
    /// The name of a persona that was invited, and answers no more.
    #[serde(default)]
    dismiss: Option<String>,
    /// When the persona answers.
    #[serde(default)]
    answers: Option<Answers>,
    /// Whether dreams and journal entries of the server or the space are posted here. `false` posts them nowhere.
    #[serde(default)]
    journal_here: Option<bool>,
    /// When replies are also spoken.
    #[serde(default)]
    spoken_replies: Option<Spoken>,
}

/// A changed place.
#[derive(Debug, Serialize, JsonSchema)]
struct Changed {
    /// What each change means, in words.
    done: Vec<String>,
}

/// Longest name of a persona, in characters.
const MAX_NAME_CHARS: usize = 100;

pub(super) fn endpoints() -> Vec<Endpoint> {
    let admin = Need::Scope(Scope::Admin);
    let summary = "List the servers, rooms and channels with who answers there";
    vec![
        Endpoint::new(Method::GET, "/api/places", admin, summary, list).answers::<List<PlatformInfo>>(),
        Endpoint::new(
            Method::PUT,
            "/api/places/{id}",
            admin,
            "Change who answers in a channel or room, and when",
            change,
        )
        .takes::<PlaceChanges>()
        .answers::<Changed>(),
    ]
}

impl From<PlatformPlaces> for PlatformInfo {
    fn from(found: PlatformPlaces) -> Self {
        let history = found.connection.unwrap_or_default();
        Self {
            platform: found.platform.to_string(),
            is_reachable: found.is_reachable,
            since: history.since.map(|since| since.to_string()),
            last_trouble: history.last_trouble.map(|(trouble, at)| TroubleInfo {
                kind: match trouble {
                    Trouble::Unreachable => "unreachable",
                    Trouble::Closed => "closed",
                    Trouble::Refused => "refused",
                },
                at: at.to_string(),
            }),
            invitation: found.invitation.map(|invitation| match invitation {
                Invitation::Link(link) => InvitationInfo { link: Some(link), account: None },
                Invitation::Account(account) => InvitationInfo { link: None, account: Some(account) },
            }),
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
                AnswerMode::Addressed => Answers::Addressed,
                AnswerMode::Always => Answers::Always,
                AnswerMode::Never => Answers::Never,
            },
            spoken_replies: match place.spoken {
                SpokenReplies::Auto => Spoken::Auto,
                SpokenReplies::Always => Spoken::Always,
                SpokenReplies::Never => Spoken::Never,
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

impl PlaceChanges {
    /// Returns the changes in order.
    fn in_order(self) -> Result<Vec<PlaceChange>, Problem> {
        for name in [&self.persona, &self.invite, &self.dismiss].into_iter().flatten() {
            if name.trim().is_empty() || name.chars().count() > MAX_NAME_CHARS || name.chars().any(char::is_control) {
                let detail = format!("The name of a persona has 1 to {MAX_NAME_CHARS} characters, on one line.");
                return Err(Problem::invalid(detail));
            }
        }
        let changes = [
            self.persona.map(PlaceChange::Persona),
            self.invite.map(|name| PlaceChange::Invited(name, true)),
            self.dismiss.map(|name| PlaceChange::Invited(name, false)),
            self.answers.map(|answers| {
                PlaceChange::Answers(match answers {
                    Answers::Addressed => AnswerMode::Addressed,
                    Answers::Always => AnswerMode::Always,
                    Answers::Never => AnswerMode::Never,
                })
            }),
            self.journal_here.map(PlaceChange::Journal),
            self.spoken_replies.map(|spoken| {
                PlaceChange::Spoken(match spoken {
                    Spoken::Auto => SpokenReplies::Auto,
                    Spoken::Always => SpokenReplies::Always,
                    Spoken::Never => SpokenReplies::Never,
                })
            }),
        ];
        Ok(changes.into_iter().flatten().collect())
    }
}

async fn change(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Parted(id): Parted<String>,
    Json(changes): Json<PlaceChanges>,
) -> Result<axum::Json<Changed>, Problem> {
    let chat = ChatId::new(id).map_err(|_| Problem::not_found("place"))?;
    let changed = shared.places()?.change_place(&caller.person()?, &chat, changes.in_order()?).await;
    let changed = changed.map_err(|error| match error {
        // The owner may change every place that there is.
        HostError::NotAllowed => Problem::not_found("place"),
        error => error.into(),
    })?;
    match changed.refused {
        None => Ok(axum::Json(Changed { done: changed.done })),
        Some(why) => Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "refused", refusal(&why, &changed.done))),
    }
}

/// Returns why a change was refused, with what was done before it and stays.
fn refusal(why: &str, done: &[String]) -> String {
    match done {
        [] => why.to_owned(),
        done => format!("{why} The changes before it are made: {}", done.join(" ")),
    }
}
