//! The inner life: dreams, the journal, moods, and the memory's search.

use std::sync::Arc;

use axum::extract::{Multipart, State};
use axum::http::Method;
use azera_adapter::{Hit, SearchRequest, Searched, ShownWriting, WritingKind};
use azera_types::Text;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::List;
use crate::accounts::{Caller, Scope};
use crate::endpoint::{Endpoint, Files, Json, Need, Parameter, Params};
use crate::problem::Problem;
use crate::web::Shared;

/// The chat whose persona dreams and feels for lists that name no chat.
const HOME: &str = "main";

/// Most writings of a list.
const MAX_WRITINGS: usize = 500;

/// Hits of a search without a limit.
const USUAL_HITS: usize = 10;

/// Most hits of a search.
const MAX_HITS: usize = 100;

/// Most bytes of an import.
const MAX_IMPORT_BYTES: usize = 8 << 20;

/// Most files of an import.
const MAX_IMPORT_FILES: usize = 500;

/// A dream.
#[derive(Debug, Serialize, JsonSchema)]
struct Dream {
    /// Its id.
    id: String,
    /// The text.
    content: String,
    /// The persona's mood when it dreamed.
    emotion: Option<String>,
    /// Words from its sources.
    themes: Vec<String>,
    /// When it was dreamed (RFC 3339).
    created_at: String,
}

/// A journal entry.
#[derive(Debug, Serialize, JsonSchema)]
struct Entry {
    /// Its id.
    id: String,
    /// The text.
    content: String,
    /// The persona's mood when it wrote.
    mood: Option<String>,
    /// Words from its sources.
    insights: Vec<String>,
    /// When it was written (RFC 3339).
    created_at: String,
}

/// What an import took.
#[derive(Debug, Serialize, JsonSchema)]
struct Imported {
    /// `ok`, or `error` if nothing was taken.
    status: &'static str,
    /// Files that were taken.
    imported: usize,
    /// Files that were not.
    skipped: usize,
    /// Why they were not.
    errors: Vec<String>,
}

/// A journal entry that was asked for.
#[derive(Debug, Serialize, JsonSchema)]
struct Written {
    /// Always `ok`.
    status: &'static str,
    /// The entry.
    message: String,
    /// The id of the newest entry.
    entry_id: Option<String>,
}

/// A search of one's memories.
#[derive(Deserialize, JsonSchema)]
struct Search {
    /// The words to find.
    query: String,
    /// Most hits; 10 unless given.
    #[serde(default)]
    limit: Option<usize>,
    /// `conversation`, `dream`, `reflection`, `fact` or `emotion`.
    #[serde(default)]
    memory_type: Option<String>,
}

/// A memory that was found.
#[derive(Debug, Serialize, JsonSchema)]
struct Found {
    /// Its id.
    id: String,
    /// The text.
    content: String,
    /// Larger is better; comparable within one search.
    score: f32,
    /// Its kind, such as `message` or `dream`.
    source: String,
    /// Since when its words say that it holds, such as `2026-05`, in the time zone of the place.
    #[serde(skip_serializing_if = "Option::is_none")]
    holds_since: Option<String>,
    /// Until when it held, such as `2026-08-03`; missing while it holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    held_until: Option<String>,
    /// The id of the memory that replaced it.
    #[serde(skip_serializing_if = "Option::is_none")]
    replaced_by: Option<String>,
}

/// What was found.
#[derive(Debug, Serialize, JsonSchema)]
struct Results {
    /// The hits, best first.
    results: Vec<Found>,
    /// How many there are.
    total: usize,
    /// How many the meaning found.
    semantic_count: usize,
    /// How many the words found.
    lexical_count: usize,
    /// Parts of recall that did not work just now, such as `semantic` or `reranker`. What was found comes from the others.
    missing: Vec<String>,
}

/// Something to keep.
#[derive(Deserialize, JsonSchema)]
struct NewMemory {
    /// The text.
    content: String,
    /// Is not read: what a person asks to keep is a fact.
    #[serde(default)]
    #[expect(dead_code, reason = "clients send it")]
    r#type: Option<String>,
}

/// A memory that was kept.
#[derive(Debug, Serialize, JsonSchema)]
struct Stored {
    /// Always `stored`.
    status: &'static str,
    /// Its id.
    id: String,
}

/// How the persona feels.
#[derive(Debug, Serialize, JsonSchema)]
struct Feeling {
    /// `asleep` if it dreamed since anybody last talked with it here, or else `awake`.
    status: &'static str,
    /// The mood.
    mood: Option<String>,
    /// The mood, from 0 to 1.
    mood_value: Option<f32>,
    /// The energy, from 0 to 1.
    energy: Option<f32>,
    /// The same as the status `asleep`.
    is_dreaming: bool,
    /// When it last answered here (RFC 3339).
    last_active: Option<String>,
}

#[derive(Deserialize)]
struct Words {
    q: String,
}

pub(super) fn endpoints() -> Vec<Endpoint> {
    const Q: &[Parameter] = &[Parameter { name: "q", help: "The words to find.", required: true }];
    let (chat, read, write) =
        (Need::Scope(Scope::Chat), Need::Scope(Scope::MemoryRead), Need::Scope(Scope::MemoryWrite));
    let import = |path, summary| {
        let mut endpoint = match path {
            "/api/dreams/import" => Endpoint::new(Method::POST, path, write, summary, import_dreams),
            _ => Endpoint::new(Method::POST, path, write, summary, import_journal),
        };
        endpoint.body_bytes = MAX_IMPORT_BYTES;
        endpoint.takes_files().answers::<Imported>()
    };
    vec![
        Endpoint::new(Method::GET, "/api/dreams", read, "List the newest dreams", dreams).answers::<List<Dream>>(),
        Endpoint::new(Method::GET, "/api/dreams/search", read, "Search the dreams", search_dreams)
            .asks(Q)
            .answers::<List<Dream>>(),
        import("/api/dreams/import", "Import dreams from Markdown or JSON files"),
        Endpoint::new(Method::GET, "/api/journal", read, "List the newest journal entries", journal)
            .answers::<List<Entry>>(),
        Endpoint::new(Method::GET, "/api/journal/search", read, "Search the journal", search_journal)
            .asks(Q)
            .answers::<List<Entry>>(),
        Endpoint::new(Method::POST, "/api/journal/trigger", write, "Ask for a journal entry now", trigger)
            .answers::<Written>(),
        import("/api/journal/import", "Import journal entries from Markdown or JSON files"),
        Endpoint::new(Method::POST, "/api/search", read, "Search what is remembered", search)
            .takes::<Search>()
            .answers::<Results>(),
        Endpoint::new(Method::POST, "/api/memories", write, "Keep something for good", remember)
            .takes::<NewMemory>()
            .answers::<Stored>(),
        Endpoint::new(Method::GET, "/api/status", chat, "Tell how the persona feels", feeling).answers::<Feeling>(),
    ]
}

impl From<ShownWriting> for Dream {
    fn from(writing: ShownWriting) -> Self {
        Self {
            id: writing.id.to_string(),
            content: writing.text.to_string(),
            emotion: writing.mood,
            themes: writing.themes,
            created_at: writing.at.to_string(),
        }
    }
}

impl From<ShownWriting> for Entry {
    fn from(writing: ShownWriting) -> Self {
        Self {
            id: writing.id.to_string(),
            content: writing.text.to_string(),
            mood: writing.mood,
            insights: writing.themes,
            created_at: writing.at.to_string(),
        }
    }
}

impl Shared {
    /// Returns the writings that contain every word of `words`, newest first.
    async fn written<T: From<ShownWriting>>(
        &self,
        caller: &Caller,
        kind: WritingKind,
        words: &str,
    ) -> Result<axum::Json<List<T>>, Problem> {
        let at = self.reading(caller, HOME)?;
        let words: Vec<String> = words.split_whitespace().map(str::to_lowercase).collect();
        let mut found = self.reader()?.writings(&self.platform, at, kind, MAX_WRITINGS).await?;
        found.retain(|writing| {
            let text = writing.text.to_lowercase();
            words.iter().all(|word| text.contains(word.as_str()))
        });
        let items: Vec<T> = found.into_iter().map(T::from).collect();
        Ok(axum::Json(items.into()))
    }

    async fn import(
        &self,
        caller: &Caller,
        command: &str,
        mut files: Multipart,
    ) -> Result<axum::Json<Imported>, Problem> {
        self.count_message(caller)?;
        let mut done = Imported { status: "ok", imported: 0, skipped: 0, errors: Vec::new() };
        let wrong = |error: axum::extract::multipart::MultipartError| Problem::invalid(error.body_text());
        while let Some(field) = files.next_field().await.map_err(wrong)? {
            let number = done.imported + done.skipped;
            if number >= MAX_IMPORT_FILES {
                done.skipped += 1;
                let why = format!("An import has at most {MAX_IMPORT_FILES} files. Import the rest separately.");
                done.errors.extend((number == MAX_IMPORT_FILES).then_some(why));
                continue;
            }
            let bytes = field.bytes().await.map_err(wrong)?;
            let taken = match azera_adapter::given(bytes.to_vec()) {
                Err(why) => Err(why.to_owned()),
                Ok(text) => {
                    let chat = self.reading(caller, HOME)?.chat;
                    let answer = self.command(caller, chat, &format!("/{command} import {text}")).await?;
                    if answer.ok { Ok(()) } else { Err(answer.text) }
                }
            };
            match taken {
                Ok(()) => done.imported += 1,
                Err(why) => {
                    done.skipped += 1;
                    done.errors.push(why);
                }
            }
        }
        if done.imported == 0 {
            done.status = "error";
        }
        Ok(axum::Json(done))
    }
}

async fn dreams(State(shared): State<Arc<Shared>>, caller: Caller) -> Result<axum::Json<List<Dream>>, Problem> {
    shared.written(&caller, WritingKind::Dream, "").await
}

async fn search_dreams(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Params(words): Params<Words>,
) -> Result<axum::Json<List<Dream>>, Problem> {
    shared.written(&caller, WritingKind::Dream, &words.q).await
}

async fn journal(State(shared): State<Arc<Shared>>, caller: Caller) -> Result<axum::Json<List<Entry>>, Problem> {
    shared.written(&caller, WritingKind::Journal, "").await
}

async fn search_journal(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Params(words): Params<Words>,
) -> Result<axum::Json<List<Entry>>, Problem> {
    shared.written(&caller, WritingKind::Journal, &words.q).await
}

async fn import_dreams(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Files(files): Files,
) -> Result<axum::Json<Imported>, Problem> {
    shared.import(&caller, "dream", files).await
}

async fn import_journal(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Files(files): Files,
) -> Result<axum::Json<Imported>, Problem> {
    shared.import(&caller, "journal", files).await
}

async fn trigger(State(shared): State<Arc<Shared>>, caller: Caller) -> Result<axum::Json<Written>, Problem> {
    shared.count_message(&caller)?;
    let at = shared.reading(&caller, HOME)?;
    let message = shared.perform(&caller, at.chat.clone(), "/journal trigger").await?;
    let newest = shared.reader()?.writings(&shared.platform, at, WritingKind::Journal, 1).await?;
    let entry_id = newest.first().map(|entry| entry.id.to_string());
    Ok(axum::Json(Written { status: "ok", message, entry_id }))
}

/// Returns the kinds of memories of a type; `None` for every kind.
fn kinds(of: Option<&str>) -> Result<Option<&'static [&'static str]>, Problem> {
    Ok(Some(match of {
        None | Some("") => return Ok(None),
        Some("conversation") => &["message", "reply"],
        Some("dream") => &["dream"],
        Some("reflection") => &["reflection", "diary"],
        Some("fact") => &["fact"],
        // Feelings are numbers of a bond here, not memories.
        Some("emotion") => &[],
        Some(_) => {
            let detail = "`memory_type` is conversation, dream, reflection, fact or emotion.";
            return Err(Problem::invalid(detail));
        }
    }))
}

async fn search(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Json(search): Json<Search>,
) -> Result<axum::Json<Results>, Problem> {
    let kinds = kinds(search.memory_type.as_deref())?;
    let at = shared.reading(&caller, HOME)?;
    let request = SearchRequest {
        chat: at.chat,
        person: at.person,
        query: Text::new(&search.query),
        limit: Some(MAX_HITS),
        as_of: None,
    };
    let Searched { mut hits, missing } = shared.host()?.search(&shared.platform, request).await?;
    hits.retain(|hit| kinds.is_none_or(|kinds| kinds.contains(&hit.kind.as_str())));
    hits.truncate(search.limit.unwrap_or(USUAL_HITS).min(MAX_HITS));
    let by = |signal: &str| hits.iter().filter(|hit| hit.signals.iter().any(|found| found == signal)).count();
    let (semantic_count, lexical_count) = (by("semantic"), by("lexical"));
    let found = |hit: Hit| Found {
        id: hit.memory.0.to_string(),
        content: hit.text.to_string(),
        score: hit.score,
        source: hit.kind,
        holds_since: hit.holding.holds_since,
        held_until: hit.holding.held_until,
        replaced_by: hit.holding.replaced_by.map(|by| by.0.to_string()),
    };
    let results: Vec<Found> = hits.into_iter().map(found).collect();
    Ok(axum::Json(Results { total: results.len(), results, semantic_count, lexical_count, missing }))
}

async fn remember(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Json(new): Json<NewMemory>,
) -> Result<axum::Json<Stored>, Problem> {
    let chat = shared.reading(&caller, HOME)?.chat;
    let answer = shared.perform(&caller, chat, &format!("/remember {}", new.content)).await?;
    // The answer names the memory between backticks.
    let id = answer.split('`').nth(1).unwrap_or_default().to_owned();
    Ok(axum::Json(Stored { status: "stored", id }))
}

async fn feeling(State(shared): State<Arc<Shared>>, caller: Caller) -> Result<axum::Json<Feeling>, Problem> {
    let at = shared.reading(&caller, HOME)?;
    let mind = shared.reader()?.mind(&shared.platform, at).await?.ok_or_else(|| Problem::not_found("mind"))?;
    let is_asleep = mind.last_dream.is_some_and(|dream| mind.last_exchange.is_none_or(|talk| dream > talk));
    Ok(axum::Json(Feeling {
        status: if is_asleep { "asleep" } else { "awake" },
        mood: mind.state.mood,
        mood_value: mind.state.mood_value,
        energy: mind.state.energy,
        is_dreaming: is_asleep,
        last_active: mind.last_exchange.map(|at| at.to_string()),
    }))
}
