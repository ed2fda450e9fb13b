//! Personas: everybody sees those that they may talk with, and owners change those that everybody may use.

use std::sync::Arc;

use axum::extract::{Multipart, State};
use axum::http::{Method, StatusCode};
use azera_adapter::PersonaSummary;
use azera_types::PersonaId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Done, List};
use crate::accounts::{Caller, Scope};
use crate::endpoint::{Endpoint, Json, Need, Parted};
use crate::problem::Problem;
use crate::web::Shared;
use crate::{PersonaDraft, PersonaError, PersonaVersion};

/// The chat whose personas are listed.
const HOME: &str = "main";

/// Most bytes of a card, with what a form adds.
const MAX_CARD_BYTES: usize = (8 << 20) + 4096;

/// A persona.
#[derive(Debug, Serialize, JsonSchema)]
struct Persona {
    /// Its id.
    id: String,
    /// Its name.
    name: String,
    /// `ai` for a persona that answers, `user` for a role that people play.
    r#type: Kind,
    /// Whether it is a role that people play.
    is_user: bool,
    /// What it is for.
    description: String,
    /// Its whole file, in Markdown.
    system_prompt: String,
    /// The number of its version.
    version: u32,
    /// When this version was stored (RFC 3339).
    updated_at: String,
}

/// Who plays a persona.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Kind {
    /// It answers.
    Ai,
    /// People play it.
    User,
}

/// A persona to add, or changes of one. What is left out stays. Pictures, colours, tags and other fields are not stored.
#[derive(Deserialize, JsonSchema)]
struct Draft {
    /// Its name. A new persona needs one.
    #[serde(default)]
    name: Option<String>,
    /// `ai` or `user`.
    #[serde(default)]
    r#type: Option<Kind>,
    /// What it is for.
    #[serde(default)]
    description: Option<String>,
    /// Its whole file as `GET /api/personas/template` shows it, or a text that says who it is.
    #[serde(default)]
    system_prompt: Option<String>,
    /// The name of its voice.
    #[serde(default)]
    voice: Option<String>,
}

/// A version of a persona.
#[derive(Debug, Serialize, JsonSchema)]
struct Version {
    /// Its number, from 1.
    version: u32,
    /// When it was stored (RFC 3339).
    updated_at: String,
    /// Its whole file, in Markdown.
    system_prompt: String,
}

/// A persona that was imported.
#[derive(Debug, Serialize, JsonSchema)]
struct ImportedPersona {
    /// The persona.
    persona: Persona,
    /// What of the file was changed or left out.
    notes: Vec<String>,
}

/// A file to start a persona with.
#[derive(Debug, Serialize, JsonSchema)]
struct Template {
    /// The file, in Markdown.
    content: String,
}

pub(super) fn endpoints() -> Vec<Endpoint> {
    let (chat, admin) = (Need::Scope(Scope::Chat), Need::Scope(Scope::Admin));
    let mut import = Endpoint::new(
        Method::POST,
        "/api/personas/import",
        admin,
        "Add a persona from a character card (PNG, JSON, CharX) or a persona file",
        import,
    )
    .takes_files()
    .answers::<ImportedPersona>();
    import.body_bytes = MAX_CARD_BYTES;
    vec![
        import,
        Endpoint::new(
            Method::GET,
            "/api/personas/{id}/versions",
            admin,
            "List the versions of a persona with their files",
            versions,
        )
        .answers::<List<Version>>(),
        Endpoint::new(Method::GET, "/api/personas", chat, "List the personas", list).answers::<List<Persona>>(),
        Endpoint::new(Method::POST, "/api/personas", admin, "Add a persona that everybody may use", add)
            .takes::<Draft>()
            .answers::<Persona>(),
        Endpoint::new(Method::GET, "/api/personas/template", chat, "Get a file to start a persona with", template)
            .answers::<Template>(),
        Endpoint::new(Method::GET, "/api/personas/{id}", chat, "Show a persona", show).answers::<Persona>(),
        Endpoint::new(Method::PUT, "/api/personas/{id}", admin, "Change a persona; old versions stay", change)
            .takes::<Draft>()
            .answers::<Persona>(),
        Endpoint::new(
            Method::DELETE,
            "/api/personas/{id}",
            admin,
            "Remove a persona; what it remembers stays until it is forgotten",
            remove,
        )
        .answers::<Done>(),
    ]
}

impl From<PersonaSummary> for Persona {
    fn from(persona: PersonaSummary) -> Self {
        Self {
            id: persona.id.to_string(),
            name: persona.name,
            r#type: if persona.is_user { Kind::User } else { Kind::Ai },
            is_user: persona.is_user,
            description: persona.intent,
            system_prompt: persona.markdown,
            version: persona.version,
            updated_at: persona.at.to_string(),
        }
    }
}

impl From<PersonaVersion> for Version {
    fn from(version: PersonaVersion) -> Self {
        let PersonaVersion { version, at, markdown } = version;
        Self { version, updated_at: at.to_string(), system_prompt: markdown }
    }
}

impl From<PersonaError> for Problem {
    fn from(error: PersonaError) -> Self {
        match error {
            PersonaError::Missing => Self::not_found("persona"),
            PersonaError::Refused(why) => Self::new(StatusCode::UNPROCESSABLE_ENTITY, "refused", why),
            PersonaError::Store(error) => Self::internal(&error),
        }
    }
}

impl Draft {
    /// Returns what differs from the persona as it is shown. Clients send back what they were shown.
    fn changes(self, shown: Option<&Persona>) -> PersonaDraft {
        fn changed(new: Option<String>, shown: Option<&str>) -> Option<String> {
            new.filter(|new| shown.is_none_or(|shown| new.trim() != shown.trim()))
        }
        PersonaDraft {
            name: changed(self.name, shown.map(|shown| shown.name.as_str())),
            is_user: self
                .r#type
                .map(|kind| kind == Kind::User)
                .filter(|is_user| Some(*is_user) != shown.map(|it| it.is_user)),
            intent: changed(self.description, shown.map(|shown| shown.description.as_str())),
            text: changed(self.system_prompt, shown.map(|shown| shown.system_prompt.as_str())),
            voice: self.voice,
        }
    }
}

impl Shared {
    async fn personas(&self, caller: &Caller) -> Result<Vec<Persona>, Problem> {
        let at = self.reading(caller, HOME)?;
        let personas = self.reader()?.personas(&self.platform, at).await?;
        Ok(personas.into_iter().map(Persona::from).collect())
    }

    async fn persona(&self, caller: &Caller, id: &str) -> Result<Persona, Problem> {
        let found = self.personas(caller).await?.into_iter().find(|persona| persona.id == id);
        found.ok_or_else(|| Problem::not_found("persona"))
    }
}

async fn list(State(shared): State<Arc<Shared>>, caller: Caller) -> Result<axum::Json<List<Persona>>, Problem> {
    Ok(axum::Json(shared.personas(&caller).await?.into()))
}

async fn show(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Parted(id): Parted<String>,
) -> Result<axum::Json<Persona>, Problem> {
    Ok(axum::Json(shared.persona(&caller, &id).await?))
}

async fn template(State(shared): State<Arc<Shared>>, caller: Caller) -> Result<axum::Json<Template>, Problem> {
    let chat = shared.reading(&caller, HOME)?.chat;
    Ok(axum::Json(Template { content: shared.perform(&caller, chat, "/persona template").await? }))
}

async fn add(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Json(draft): Json<Draft>,
) -> Result<axum::Json<Persona>, Problem> {
    let id = shared.persona_store()?.add(draft.changes(None)).await?;
    Ok(axum::Json(shared.persona(&caller, id.as_str()).await?))
}

async fn import(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    mut files: Multipart,
) -> Result<axum::Json<ImportedPersona>, Problem> {
    let wrong = |error: axum::extract::multipart::MultipartError| Problem::invalid(error.body_text());
    let field = files.next_field().await.map_err(wrong)?;
    let field = field.ok_or_else(|| Problem::invalid("Send one file, as `multipart/form-data`."))?;
    let file = field.bytes().await.map_err(wrong)?;
    let (id, notes) = shared.persona_store()?.import(file.to_vec()).await?;
    Ok(axum::Json(ImportedPersona { persona: shared.persona(&caller, id.as_str()).await?, notes }))
}

async fn versions(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Parted(id): Parted<String>,
) -> Result<axum::Json<List<Version>>, Problem> {
    let shown = shared.persona(&caller, &id).await?;
    let versions = shared.persona_store()?.versions(&PersonaId::new(&shown.id)?).await?;
    let versions: Vec<Version> = versions.into_iter().map(Version::from).collect();
    Ok(axum::Json(versions.into()))
}

async fn change(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Parted(id): Parted<String>,
    Json(draft): Json<Draft>,
) -> Result<axum::Json<Persona>, Problem> {
    let shown = shared.persona(&caller, &id).await?;
    let changes = draft.changes(Some(&shown));
    if changes == PersonaDraft::default() {
        return Ok(axum::Json(shown));
    }
    shared.persona_store()?.change(&PersonaId::new(&shown.id)?, changes).await?;
    Ok(axum::Json(shared.persona(&caller, &shown.id).await?))
}

async fn remove(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Parted(id): Parted<String>,
) -> Result<axum::Json<Done>, Problem> {
    let shown = shared.persona(&caller, &id).await?;
    shared.persona_store()?.remove(&PersonaId::new(&shown.id)?).await?;
    Ok(axum::Json(Done { status: "deleted" }))
}
