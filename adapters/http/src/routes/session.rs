//! Accounts and sessions: the owner's first account, logging in and out, invitations.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::Method;
use axum::response::{IntoResponse, Response};
use azera_types::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Done, List};
use crate::accounts::{Caller, Role, Scope};
use crate::endpoint::{Endpoint, Json, Need, Parted};
use crate::guard::{Client, clear_cookie, set_cookie};
use crate::limits::RateLimit;
use crate::platform::{PLATFORM, chat_id, realm_id, suffix_of};
use crate::problem::Problem;
use crate::web::Shared;

/// A new account.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Join {
    /// The code in the link.
    code: String,
    /// The name of the account, by which one logs in.
    name: String,
    /// The password, of 10 to 256 characters.
    password: String,
}

/// A login.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Login {
    /// The account's name.
    name: String,
    /// The password.
    password: String,
}

/// Another password.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewPassword {
    /// The present password.
    old: String,
    /// The new password, of 10 to 256 characters.
    new: String,
}

/// Which sessions end.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct LogOut {
    /// End every session of the account.
    #[serde(default)]
    everywhere: bool,
    /// End every session, revoke every API key and invitation of the account, and end the access of every program.
    #[serde(default)]
    keys: bool,
}

/// What the request's session is.
#[derive(Serialize, JsonSchema)]
struct SessionInfo {
    /// The account's name; `None` for somebody who is not logged in.
    name: Option<String>,
    /// The account's role.
    role: Option<Role>,
    /// What requests that change something repeat as `X-CSRF-Token`.
    csrf: Option<String>,
    /// Whether nobody owns this Azera yet.
    awaits_owner: bool,
}

/// An invitation.
#[derive(Serialize, JsonSchema)]
struct Invited {
    /// The code. It is shown this once, and works once.
    code: String,
    /// The part of the link after the address of this server.
    path: String,
    /// Until when it works (RFC 3339).
    until: String,
}

/// An account, for owners.
#[derive(Serialize, JsonSchema)]
struct AccountInfo {
    /// The account's id.
    id: String,
    /// The account's name.
    name: String,
    /// The account's role.
    role: Role,
    /// When it was made (RFC 3339).
    created_at: String,
}

pub(super) fn endpoints() -> Vec<Endpoint> {
    let admin = Need::Scope(Scope::Admin);
    vec![
        Endpoint::new(Method::GET, "/api/session", Need::Public, "Tell who is logged in", session)
            .answers::<SessionInfo>(),
        Endpoint::new(Method::POST, "/api/setup", Need::Public, "Make the owner's account with the first link", set_up)
            .takes::<Join>()
            .answers::<SessionInfo>(),
        Endpoint::new(Method::POST, "/api/join", Need::Public, "Make an account with an invitation", join)
            .takes::<Join>()
            .answers::<SessionInfo>(),
        Endpoint::new(Method::POST, "/api/login", Need::Public, "Log in", log_in)
            .takes::<Login>()
            .answers::<SessionInfo>(),
        Endpoint::new(Method::POST, "/api/logout", Need::Session, "Log out, here or everywhere", log_out)
            .takes::<LogOut>()
            .answers::<Done>(),
        Endpoint::new(
            Method::PUT,
            "/api/password",
            Need::Session,
            "Change the password, and end other sessions",
            password,
        )
        .takes::<NewPassword>()
        .answers::<Done>(),
        Endpoint::new(
            Method::DELETE,
            "/api/account",
            Need::Session,
            "Delete the account, and forget everything that its person said",
            delete_own,
        )
        .takes::<Deletion>()
        .answers::<Done>(),
        Endpoint::new(Method::GET, "/api/accounts", admin, "List the accounts", accounts)
            .answers::<List<AccountInfo>>(),
        Endpoint::new(
            Method::DELETE,
            "/api/accounts/{id}",
            admin,
            "Delete a guest's account, and forget everything that its person said",
            delete_other,
        )
        .answers::<Done>(),
        Endpoint::new(Method::POST, "/api/invitations", admin, "Invite somebody", invite).answers::<Invited>(),
    ]
}

/// A confirmed deletion.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Deletion {
    /// The password.
    password: String,
}

async fn session(State(shared): State<Arc<Shared>>, caller: Option<Extension<Caller>>) -> axum::Json<SessionInfo> {
    let caller = caller.map(|Extension(caller)| caller);
    axum::Json(SessionInfo {
        name: caller.as_ref().map(|caller| caller.name.clone()),
        role: caller.as_ref().map(|caller| caller.role),
        csrf: caller.and_then(|caller| caller.session).map(|session| session.csrf),
        awaits_owner: shared.accounts.awaits_owner(),
    })
}

/// Counts failures of one client, and refuses further tries after too many. A try counts from its beginning, so that many
/// at once are not allowed more.
async fn guarded<T, F>(limit: &RateLimit, client: &str, now: Timestamp, attempt: F) -> Result<T, Problem>
where
    F: Future<Output = Result<T, Problem>>,
{
    limit.take(client, now).map_err(Problem::too_many)?;
    let done = attempt.await;
    if !matches!(&done, Err(problem) if matches!(problem.code, "wrong_password" | "link_used")) {
        limit.give_back(client);
    }
    done
}

/// Returns the name under which guesses of a password are counted, whoever guesses. It is short, however long the name.
fn guessed(name: &str) -> String {
    format!("name {}", crate::secrets::digest(&name.trim().to_lowercase()))
}

/// Returns the name under which somebody who is logged in is counted. Strangers cannot use it up.
fn confirmed(caller: &Caller) -> String {
    format!("account {}", caller.account)
}

/// Answers with a new session.
fn logged_in(shared: &Shared, token: &str, client: &Client) -> Result<Response, Problem> {
    let caller = shared.accounts.by_session(token).ok_or_else(Problem::unauthorized)?;
    let info = SessionInfo {
        name: Some(caller.name),
        role: Some(caller.role),
        csrf: caller.session.map(|session| session.csrf),
        awaits_owner: shared.accounts.awaits_owner(),
    };
    let mut response = axum::Json(info).into_response();
    set_cookie(&mut response, token, client);
    Ok(response)
}

async fn set_up(
    State(shared): State<Arc<Shared>>,
    Extension(client): Extension<Client>,
    Json(join): Json<Join>,
) -> Result<Response, Problem> {
    let attempt = shared.accounts.set_up(&join.code, &join.name, &join.password);
    let token = guarded(&shared.failures, &client.bucket("ip"), shared.clock.now(), attempt).await?;
    tracing::info!("the owner's account was made");
    shared.forget_setup_link()?;
    logged_in(&shared, &token, &client)
}

async fn join(
    State(shared): State<Arc<Shared>>,
    Extension(client): Extension<Client>,
    Json(join): Json<Join>,
) -> Result<Response, Problem> {
    let attempt = shared.accounts.join(&join.code, &join.name, &join.password);
    let token = guarded(&shared.failures, &client.bucket("ip"), shared.clock.now(), attempt).await?;
    logged_in(&shared, &token, &client)
}

async fn log_in(
    State(shared): State<Arc<Shared>>,
    Extension(client): Extension<Client>,
    Json(login): Json<Login>,
) -> Result<Response, Problem> {
    let (now, name) = (shared.clock.now(), guessed(&login.name));
    let attempt = shared.accounts.log_in(&login.name, &login.password);
    let attempt = guarded(&shared.guesses, &name, now, attempt);
    let token = guarded(&shared.failures, &client.bucket("ip"), now, attempt).await?;
    logged_in(&shared, &token, &client)
}

async fn log_out(
    State(shared): State<Arc<Shared>>,
    Extension(client): Extension<Client>,
    caller: Caller,
    Json(wish): Json<LogOut>,
) -> Result<Response, Problem> {
    if let Some(open) = &caller.session {
        match wish.everywhere || wish.keys {
            true => shared.log_out_everywhere(&caller.account, wish.keys).await?,
            false => shared.accounts.log_out(&caller.account, open).await?,
        }
    }
    let mut response = axum::Json(Done { status: "logged out" }).into_response();
    clear_cookie(&mut response, &client);
    Ok(response)
}

async fn password(
    State(shared): State<Arc<Shared>>,
    Extension(client): Extension<Client>,
    caller: Caller,
    Json(wish): Json<NewPassword>,
) -> Result<Response, Problem> {
    let attempt = shared.accounts.change_password(&caller, &wish.old, &wish.new);
    let token = guarded(&shared.failures, &confirmed(&caller), shared.clock.now(), attempt).await?;
    // The sessions that made them are over, so no new ones come.
    shared.codes.hold().await.forget(&caller.account);
    let mut response = axum::Json(Done { status: "updated" }).into_response();
    if let Some(token) = token {
        set_cookie(&mut response, &token, &client);
    }
    Ok(response)
}

async fn delete_own(
    State(shared): State<Arc<Shared>>,
    Extension(client): Extension<Client>,
    caller: Caller,
    Json(wish): Json<Deletion>,
) -> Result<Response, Problem> {
    let attempt = shared.accounts.confirm(&caller, &wish.password);
    guarded(&shared.failures, &confirmed(&caller), shared.clock.now(), attempt).await?;
    shared.delete_account(&caller).await?;
    let mut response = axum::Json(Done { status: "deleted" }).into_response();
    clear_cookie(&mut response, &client);
    Ok(response)
}

async fn accounts(State(shared): State<Arc<Shared>>) -> axum::Json<List<AccountInfo>> {
    let list = shared.accounts.list().into_iter().rev();
    let infos: Vec<AccountInfo> =
        list.map(|(id, name, role, at)| AccountInfo { id, name, role, created_at: at.to_string() }).collect();
    axum::Json(infos.into())
}

async fn delete_other(
    State(shared): State<Arc<Shared>>,
    Parted(id): Parted<String>,
) -> Result<axum::Json<Done>, Problem> {
    let guest = shared.accounts.guest(&id).ok_or_else(|| Problem::not_found("guest"))?;
    shared.delete_account(&guest).await?;
    Ok(axum::Json(Done { status: "deleted" }))
}

async fn invite(State(shared): State<Arc<Shared>>, caller: Caller) -> Result<axum::Json<Invited>, Problem> {
    let (code, until) = shared.accounts.invite(&caller).await?;
    let path = format!("/#join={code}");
    Ok(axum::Json(Invited { code, path, until: until.to_string() }))
}

impl Shared {
    /// Ends every session of an account and, with `keys`, everything else that acts in its name. No code is left.
    async fn log_out_everywhere(&self, account: &str, keys: bool) -> Result<(), Problem> {
        // A code that is used meanwhile would become a grant that nobody ends.
        let mut codes = self.codes.hold().await;
        self.accounts.log_out_everywhere(account, keys).await?;
        codes.forget(account);
        Ok(())
    }

    /// Forgets everything that a person said, their chats with their titles, and the account.
    async fn delete_account(&self, caller: &Caller) -> Result<(), Problem> {
        // Nobody says anything more while it is forgotten.
        self.log_out_everywhere(&caller.account, true).await?;
        let chat = chat_id(&caller.account, "main")?;
        let reading = azera_adapter::Reading { chat: chat.clone(), person: caller.person()? };
        let chats = self.reader()?.chats(&self.platform, reading).await?;
        self.perform(caller, chat, "/forget me quotes").await?;
        let mine = chats.into_iter().map(|listed| listed.chat).filter(|chat| !suffix_of(chat).is_empty()).collect();
        let left = azera_adapter::InboundEvent::Left { realm: realm_id(&caller.account)?, chats: mine };
        self.host()?.submit(&self.platform, left).await?;
        self.accounts.remove(&caller.account).await?;
        self.events.forget(&caller.person()?);
        tracing::info!("an account of the {PLATFORM} was deleted");
        Ok(())
    }
}
