//! What programs may do in one's name by OAuth.

use std::sync::Arc;

use axum::extract::State;
use axum::http::Method;

use super::{Done, List};
use crate::accounts::Caller;
use crate::endpoint::{Endpoint, Need, Parted};
use crate::oauth::GrantInfo;
use crate::problem::Problem;
use crate::web::Shared;

pub(super) fn endpoints() -> Vec<Endpoint> {
    let of_local = "List the programs to which the owner gave access, on this machine";
    let end_local = "End the access of a program of the owner, on this machine";
    vec![
        Endpoint::new(Method::GET, "/api/grants", Need::Session, "List the programs to which one gave access", list)
            .answers::<List<GrantInfo>>(),
        Endpoint::new(Method::DELETE, "/api/grants/{id}", Need::Session, "End the access of a program", revoke)
            .answers::<Done>(),
        Endpoint::new(Method::GET, "/api/local/grants", Need::Local, of_local, list).answers::<List<GrantInfo>>(),
        Endpoint::new(Method::DELETE, "/api/local/grants/{id}", Need::Local, end_local, revoke).answers::<Done>(),
    ]
}

async fn list(State(shared): State<Arc<Shared>>, caller: Caller) -> axum::Json<List<GrantInfo>> {
    axum::Json(shared.accounts.grants(&caller).into())
}

async fn revoke(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Parted(id): Parted<String>,
) -> Result<axum::Json<Done>, Problem> {
    shared.accounts.revoke_grant(&caller.account, &id).await?;
    Ok(axum::Json(Done { status: "revoked" }))
}
