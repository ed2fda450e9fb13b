//! Tokens for scripts.

use std::sync::Arc;

use axum::extract::State;
use axum::http::Method;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Done;
use crate::accounts::{Caller, Scope};
use crate::endpoint::{Endpoint, Json, Need};
use crate::problem::Problem;
use crate::tokens::MAX_MINUTES;
use crate::web::Shared;

/// Minutes for which a token works, unless the request says otherwise.
const MINUTES: u32 = 15;

/// A token to make.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TokenWish {
    /// What it may do; everything that the session or key may do without it.
    #[serde(default)]
    scopes: Option<Vec<Scope>>,
    /// For how many minutes it works: 1 to 60, 15 without it.
    #[serde(default)]
    #[schemars(range(min = 1, max = 60))]
    minutes: Option<u32>,
}

/// A token.
#[derive(Debug, Serialize, JsonSchema)]
struct NewToken {
    /// The token, for `Authorization: Bearer`.
    token: String,
    /// Always `Bearer`.
    token_type: &'static str,
    /// For how many seconds it works.
    expires_in: u32,
    /// When its time is over (RFC 3339).
    expires_at: String,
    /// What it may do.
    scopes: Vec<Scope>,
}

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::new(
            Method::POST,
            "/api/token",
            Need::Account,
            "Exchange a key or a session for a token that works for minutes",
            make,
        )
        .takes::<TokenWish>()
        .answers::<NewToken>(),
        Endpoint::new(
            Method::POST,
            "/api/token/rotate",
            Need::Scope(Scope::Admin),
            "Let another key sign tokens, so that all tokens made so far end",
            rotate,
        )
        .answers::<Done>(),
    ]
}

async fn make(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Json(wish): Json<TokenWish>,
) -> Result<axum::Json<NewToken>, Problem> {
    let minutes = wish.minutes.unwrap_or(MINUTES);
    if !(1..=MAX_MINUTES).contains(&minutes) {
        return Err(Problem::invalid(format!("A token works for 1 to {MAX_MINUTES} minutes.")));
    }
    let grant = shared.accounts.token_claims(&caller, wish.scopes)?;
    let scopes = Scope::ALL.into_iter().filter(|scope| grant.scope.split(' ').any(|name| name == scope.as_str()));
    let scopes = scopes.collect();
    let (token, until) = shared.tokens.make(grant, minutes, shared.clock.now())?;
    let (expires_in, expires_at) = (minutes * 60, until.to_string());
    Ok(axum::Json(NewToken { token, token_type: "Bearer", expires_in, expires_at, scopes }))
}

async fn rotate(State(shared): State<Arc<Shared>>) -> Result<axum::Json<Done>, Problem> {
    shared.tokens.rotate(true, shared.clock.now())?;
    tracing::info!("the owner ended all tokens of the web");
    Ok(axum::Json(Done { status: "rotated" }))
}
