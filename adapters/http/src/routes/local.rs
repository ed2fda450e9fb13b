//! What commands on this machine ask of the running Azera: the hooks of coding assistants, imports, and links of accounts. No
//! account of the web is behind them, so they work before anybody owns this Azera, and no other key opens them.

use std::sync::Arc;

use axum::extract::{Extension, State};
use axum::http::{Method, StatusCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Done;
use crate::endpoint::{Endpoint, Json, Need};
use crate::local::PROOF_PATH;
use crate::local_commands::{
    AccountLinkAsked, CommandRefused, CommandReport, FileToImport, ImportProgress, ImportToUndo, ImportsAsked,
    ProgressAsked, ProjectAsked,
};
use crate::local_connection::Ends;
use crate::problem::Problem;
use crate::web::Shared;

/// What is remembered of a project.
#[derive(Serialize, JsonSchema)]
struct ProjectContext {
    /// Lines for a coding assistant; empty if nothing is remembered.
    text: String,
}

/// Most characters of a challenge.
const MAX_CHALLENGE_CHARS: usize = 100;

/// A text that nobody sent before.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Challenge {
    /// At most 100 characters.
    challenge: String,
}

/// What only the web can answer that knows the key in the data folder.
#[derive(Serialize, JsonSchema)]
struct Proof {
    /// HMAC-SHA256 of the challenge and both ends of the connection, in base64url.
    proof: String,
}

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::new(
            Method::POST,
            PROOF_PATH,
            Need::LocalOrAdmin,
            "Prove to commands on this machine that this is the web of their data folder",
            prove,
        )
        .takes::<Challenge>()
        .answers::<Proof>(),
        Endpoint::new(
            Method::POST,
            "/api/local/project-context",
            Need::Machine,
            "Tell what is remembered of a project, for commands on this machine",
            project_context,
        )
        .takes::<ProjectAsked>()
        .answers::<ProjectContext>(),
        Endpoint::new(
            Method::POST,
            "/api/local/transcripts",
            Need::Machine,
            "Import the transcripts that hooks left, for commands on this machine",
            take_in_transcripts,
        )
        .answers::<Done>(),
        Endpoint::new(
            Method::POST,
            "/api/local/imports",
            Need::Machine,
            "Import a file of this machine, for commands on it",
            import,
        )
        .takes::<FileToImport>()
        .answers::<CommandReport>(),
        Endpoint::new(
            Method::POST,
            "/api/local/imports/progress",
            Need::Machine,
            "Tell how far the import of a file is, for commands on this machine",
            import_progress,
        )
        .takes::<ProgressAsked>()
        .answers::<ImportProgress>(),
        Endpoint::new(
            Method::POST,
            "/api/local/imports/list",
            Need::Machine,
            "List the imports of a person, for commands on this machine",
            imports,
        )
        .takes::<ImportsAsked>()
        .answers::<CommandReport>(),
        Endpoint::new(
            Method::POST,
            "/api/local/imports/undo",
            Need::Machine,
            "Forget what an import added, for commands on this machine",
            undo_import,
        )
        .takes::<ImportToUndo>()
        .answers::<CommandReport>(),
        Endpoint::new(
            Method::POST,
            "/api/local/links",
            Need::Machine,
            "Link the accounts of a person, for commands on this machine",
            link_accounts,
        )
        .takes::<AccountLinkAsked>()
        .answers::<CommandReport>(),
    ]
}

fn refused(CommandRefused(detail): CommandRefused) -> Problem {
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "refused", detail)
}

async fn prove(
    State(shared): State<Arc<Shared>>,
    Extension(ends): Extension<Ends>,
    Json(Challenge { challenge }): Json<Challenge>,
) -> Result<axum::Json<Proof>, Problem> {
    if challenge.chars().count() > MAX_CHALLENGE_CHARS {
        return Err(Problem::invalid("The challenge has more than 100 characters."));
    }
    let proof = shared.proof(&challenge, ends).ok_or_else(|| Problem::internal(&"the web has no key yet"))?;
    Ok(axum::Json(Proof { proof }))
}

async fn project_context(
    State(shared): State<Arc<Shared>>,
    Json(asked): Json<ProjectAsked>,
) -> Result<axum::Json<ProjectContext>, Problem> {
    let text = shared.commands_here()?.project_context(asked).await.map_err(refused)?;
    Ok(axum::Json(ProjectContext { text }))
}

async fn take_in_transcripts(State(shared): State<Arc<Shared>>) -> Result<axum::Json<Done>, Problem> {
    shared.commands_here()?.take_in_transcripts();
    Ok(axum::Json(Done { status: "begun" }))
}

async fn import(
    State(shared): State<Arc<Shared>>,
    Json(file): Json<FileToImport>,
) -> Result<axum::Json<CommandReport>, Problem> {
    let stop = shared.stop.clone();
    Ok(axum::Json(shared.commands_here()?.import(file, stop).await.map_err(refused)?))
}

async fn import_progress(
    State(shared): State<Arc<Shared>>,
    Json(asked): Json<ProgressAsked>,
) -> Result<axum::Json<ImportProgress>, Problem> {
    Ok(axum::Json(shared.commands_here()?.import_progress(&asked)))
}

async fn imports(
    State(shared): State<Arc<Shared>>,
    Json(asked): Json<ImportsAsked>,
) -> Result<axum::Json<CommandReport>, Problem> {
    Ok(axum::Json(shared.commands_here()?.imports(asked).await.map_err(refused)?))
}

async fn undo_import(
    State(shared): State<Arc<Shared>>,
    Json(import): Json<ImportToUndo>,
) -> Result<axum::Json<CommandReport>, Problem> {
    Ok(axum::Json(shared.commands_here()?.undo_import(import).await.map_err(refused)?))
}

async fn link_accounts(
    State(shared): State<Arc<Shared>>,
    Json(asked): Json<AccountLinkAsked>,
) -> Result<axum::Json<CommandReport>, Problem> {
    Ok(axum::Json(shared.commands_here()?.link_accounts(asked).await.map_err(refused)?))
}
