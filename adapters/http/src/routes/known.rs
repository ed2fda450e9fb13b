//! What counts as known in a whole place because it was said in many chats, with its sources. Its speakers can take their
//! own words back.

use std::sync::Arc;

use axum::extract::State;
use axum::http::Method;
use azera_adapter::{ShownKnown, ShownKnowns};
use azera_types::MemoryId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Done, List};
use crate::accounts::{Caller, Scope};
use crate::endpoint::{Endpoint, Json, Need, Parameter, Params, Parted};
use crate::problem::Problem;
use crate::web::Shared;

/// The chat whose persona knows.
const HOME: &str = "main";

/// Statements of a page without a limit.
const USUAL: usize = 20;

/// Most statements of a page.
const MOST: usize = 100;

/// A statement that counts as known in a whole place.
#[derive(Debug, Serialize, JsonSchema)]
struct Known {
    /// The id of its newest memory.
    id: String,
    /// What was said.
    content: String,
    /// Who said it.
    author: String,
    /// Where it counts, such as `dm:PERSON`.
    scope: String,
    /// How many chats it was said in.
    chats: usize,
    /// How many people said it.
    people: usize,
    /// The ids of the other memories that say it, newest first.
    also: Vec<String>,
    /// When it was said last (RFC 3339).
    said_at: String,
    /// False if too few are left of those who want their words to count.
    counts: bool,
    /// True if it is one's own, so that one can change that.
    is_own: bool,
    /// False if one does not want one's own words to count.
    own_counts: bool,
}

/// Whether one's own words count.
#[derive(Deserialize, JsonSchema)]
struct Counting {
    /// False lets one's own words count only where they were said.
    counts: bool,
}

#[derive(Deserialize)]
struct Part {
    #[serde(default)]
    offset: usize,
    limit: Option<usize>,
}

pub(super) fn endpoints() -> Vec<Endpoint> {
    const ASKS: &[Parameter] = &[
        Parameter { name: "offset", help: "How many to leave out at the beginning.", required: false },
        Parameter { name: "limit", help: "How many to show, 1 to 100; 20 without it.", required: false },
    ];
    let (read, write) = (Need::Scope(Scope::MemoryRead), Need::Scope(Scope::MemoryWrite));
    let list = "List what counts as known in a whole place, because it was said in three or more chats";
    vec![
        Endpoint::new(Method::GET, "/api/memories/known", read, list, known).asks(ASKS).answers::<List<Known>>(),
        Endpoint::new(
            Method::PUT,
            "/api/memories/known/{id}",
            write,
            "Let one's own words count as known, or not",
            set,
        )
        .takes::<Counting>()
        .answers::<Done>(),
    ]
}

async fn known(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Params(part): Params<Part>,
) -> Result<axum::Json<List<Known>>, Problem> {
    let at = shared.reading(&caller, HOME)?;
    let limit = part.limit.unwrap_or(USUAL);
    if !(1..=MOST).contains(&limit) {
        return Err(Problem::invalid(format!("`limit` is {limit}. Use 1 to {MOST}.")));
    }
    let ShownKnowns { known, total } = shared.known()?.known(&shared.platform, at, part.offset, limit).await?;
    Ok(axum::Json(List { items: known.into_iter().map(Known::from).collect(), total }))
}

async fn set(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Parted(id): Parted<String>,
    Json(wish): Json<Counting>,
) -> Result<axum::Json<Done>, Problem> {
    let id: MemoryId = id.parse().map_err(|_| Problem::not_found("memory"))?;
    let chat = shared.reading(&caller, HOME)?.chat;
    let (word, status) = if wish.counts { ("on", "counts") } else { ("off", "set_apart") };
    shared.perform(&caller, chat, &format!("/memory known {id} {word}")).await?;
    Ok(axum::Json(Done { status }))
}

impl From<ShownKnown> for Known {
    fn from(known: ShownKnown) -> Self {
        Self {
            id: known.memory.id.to_string(),
            author: known.memory.author.name().to_owned(),
            scope: known.memory.scope.to_string(),
            said_at: known.memory.at.to_string(),
            content: known.memory.text.to_string(),
            chats: known.chats,
            people: known.people,
            also: known.also.iter().map(ToString::to_string).collect(),
            counts: known.counts,
            is_own: known.is_own,
            own_counts: known.own_counts,
        }
    }
}
