//! API keys of one's own account.

use std::sync::Arc;

use axum::extract::State;
use axum::http::Method;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Done, List};
use crate::accounts::{Caller, KeyInfo, NewKey, Scope};
use crate::endpoint::{Endpoint, Json, Need, Parted};
use crate::problem::Problem;
use crate::web::Shared;

/// A key to make.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Wish {
    /// A name by which its owner knows it.
    name: String,
    /// What it may do.
    scopes: Vec<Scope>,
}

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::new(Method::GET, "/api/keys", Need::Session, "List one's API keys", list).answers::<List<KeyInfo>>(),
        Endpoint::new(Method::POST, "/api/keys", Need::Session, "Make an API key. It is shown once", add)
            .takes::<Wish>()
            .answers::<NewKey>(),
        Endpoint::new(Method::DELETE, "/api/keys/{id}", Need::Session, "Revoke an API key", revoke).answers::<Done>(),
        Endpoint::new(
            Method::POST,
            "/api/local/keys",
            Need::Local,
            "Make an API key of the owner, for commands on this machine",
            add,
        )
        .takes::<Wish>()
        .answers::<NewKey>(),
        Endpoint::new(Method::GET, "/api/local/keys", Need::Local, "List the owner's API keys, on this machine", list)
            .answers::<List<KeyInfo>>(),
        Endpoint::new(
            Method::DELETE,
            "/api/local/keys/{id}",
            Need::Local,
            "Revoke an API key of the owner, on this machine",
            revoke,
        )
        .answers::<Done>(),
    ]
}

async fn list(State(shared): State<Arc<Shared>>, caller: Caller) -> axum::Json<List<KeyInfo>> {
    axum::Json(shared.accounts.keys(&caller).into())
}

async fn add(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Json(wish): Json<Wish>,
) -> Result<axum::Json<NewKey>, Problem> {
    Ok(axum::Json(shared.accounts.add_key(&caller, &wish.name, wish.scopes).await?))
}

async fn revoke(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Parted(id): Parted<String>,
) -> Result<axum::Json<Done>, Problem> {
    shared.accounts.revoke_key(&caller, &id).await?;
    Ok(axum::Json(Done { status: "revoked" }))
}
