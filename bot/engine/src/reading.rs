//! The [`Reader`] interface: lists of personas, chats, messages and writings for platforms that show them. Every read makes
//! its [`ReadScope`] from what the platform reports at that moment.

use std::sync::Arc;

use async_trait::async_trait;
use azera_adapter::{
    BranchSummary, ChatSummary, HostError, MindSummary, ModelSummary, PersonaSummary, Platform, Reader, Reading,
    ShownMessage, ShownWriting, State, WritingKind,
};
use azera_memory::{ChatRow, Kind, PersonaRow, ReadScope};
use azera_personas::PersonaKind;
use azera_types::{PersonaId, Place, PlaceKind, PlatformId};

use crate::engine::Engine;
use crate::error::Error;

/// Most items of one list.
pub(crate) const MAX_LISTED: usize = 1_000;

/// A place that the person can read now.
pub(crate) struct Here {
    pub(crate) adapter: Arc<dyn Platform>,
    pub(crate) place: Place,
    /// The persona that answers in the chat, or would.
    pub(crate) persona: PersonaId,
    pub(crate) read_scope: ReadScope,
}

fn kinds(kind: WritingKind) -> &'static [Kind] {
    match kind {
        WritingKind::Dream => &[Kind::Dream],
        WritingKind::Journal => &[Kind::Reflection, Kind::Diary],
        WritingKind::Piece => &[Kind::Piece],
    }
}

impl Engine {
    /// Returns the place, as its platform reports it now; `None` if the person cannot read it.
    pub(crate) async fn here(&self, platform: &PlatformId, at: &Reading) -> Result<Option<Here>, Error> {
        let services = &self.0.services;
        let adapter = services.platform(platform)?;
        let Some(place) = services.place(adapter.as_ref(), &at.chat, &at.person).await? else { return Ok(None) };
        let id = at.chat.clone();
        let chat = services.blocking(move |memory| memory.chats().get(&id)).await?;
        let persona = chat.map_or_else(|| services.config.persona.clone(), |chat| chat.persona);
        let read_scope = self.0.access.read_scope(adapter.as_ref(), &place, &persona).await?;
        Ok(Some(Here { adapter, place, persona, read_scope }))
    }

    async fn list_personas(&self, platform: &PlatformId, at: Reading) -> Result<Vec<PersonaSummary>, Error> {
        let Some(here) = self.here(platform, &at).await? else { return Ok(Vec::new()) };
        let realm = here.place.shared_realm().cloned();
        let rows = self
            .0
            .services
            .blocking(move |memory| {
                let mut rows = match &realm {
                    Some(realm) => memory.personas().list(Some(realm))?,
                    None => Vec::new(),
                };
                for row in memory.personas().list(None)? {
                    if rows.iter().all(|own| own.id != row.id) {
                        rows.push(row);
                    }
                }
                Ok(rows)
            })
            .await?;
        Ok(rows.into_iter().filter_map(persona_summary).collect())
    }

    async fn list_chats(&self, platform: &PlatformId, at: Reading) -> Result<Vec<ChatSummary>, Error> {
        let services = &self.0.services;
        let Some(here) = self.here(platform, &at).await? else { return Ok(Vec::new()) };
        let is_direct = matches!(here.place.kind, PlaceKind::Dm(_));
        let reach = self.0.access.readable_scopes(here.adapter.as_ref(), &here.place).await?;
        let (id, prefix) = (platform.clone(), here.adapter.chat_prefix(&at.person).unwrap_or_default());
        let rows = services.blocking(move |memory| memory.chats().list_under(&id, &prefix)).await?;
        let mut found = Vec::new();
        for row in rows {
            // A chat that the platform cannot vouch for now is not listed.
            let Ok(Some(place)) = services.place(here.adapter.as_ref(), &row.id, &at.person).await else { continue };
            // Where others read along, only chats are listed that they may know of.
            if !is_direct && !here.read_scope.grants().iter().any(|grant| grant.scope == place.scope()) {
                continue;
            }
            let (read_scope, chat) = (ReadScope::in_place(row.persona.clone(), &here.place, &reach), row.id.clone());
            let last = services.blocking(move |memory| memory.messages().history(&read_scope, &chat, 1)).await?.pop();
            found.push(chat_summary(row, last.map(|last| last.at)));
        }
        found.sort_by(|a, b| {
            let newest = |chat: &ChatSummary| chat.last_at.unwrap_or(chat.created_at);
            (newest(b), &a.chat).cmp(&(newest(a), &b.chat))
        });
        Ok(found)
    }

    async fn list_messages(
        &self,
        platform: &PlatformId,
        at: Reading,
        limit: usize,
    ) -> Result<Vec<ShownMessage>, Error> {
        let Some(here) = self.here(platform, &at).await? else { return Ok(Vec::new()) };
        let rows = self
            .0
            .services
            .blocking(move |memory| memory.messages().history(&here.read_scope, &at.chat, limit.min(MAX_LISTED)))
            .await?;
        Ok(rows
            .into_iter()
            .map(|row| ShownMessage {
                id: row.id,
                author: row.author,
                text: row.text,
                at: row.at,
                answers: row.answers,
            })
            .collect())
    }

    async fn list_branches(&self, platform: &PlatformId, at: Reading) -> Result<Vec<BranchSummary>, Error> {
        let Some(here) = self.here(platform, &at).await? else { return Ok(Vec::new()) };
        let rows = self.0.services.blocking(move |memory| memory.chats().branches(&here.read_scope, &at.chat)).await?;
        Ok(rows
            .into_iter()
            .map(|row| BranchSummary { name: row.name, forked_from: row.forked_from, created_at: row.created_at })
            .collect())
    }

    async fn list_written(
        &self,
        platform: &PlatformId,
        at: Reading,
        kind: WritingKind,
        limit: usize,
    ) -> Result<Vec<ShownWriting>, Error> {
        let Some(here) = self.here(platform, &at).await? else { return Ok(Vec::new()) };
        let rows = self
            .0
            .services
            .blocking(move |memory| memory.writings().list(&here.read_scope, kinds(kind), limit.min(MAX_LISTED)))
            .await?;
        Ok(rows
            .into_iter()
            .map(|(memory, writing)| ShownWriting {
                id: memory.id,
                kind: memory.kind.as_str(),
                text: memory.text,
                mood: writing.mood,
                themes: writing.themes,
                at: memory.at,
            })
            .collect())
    }

    async fn list_models(&self) -> Result<Vec<ModelSummary>, Error> {
        let catalog = Arc::clone(&self.0.services.models);
        let models = self.0.services.blocking(move |_| Ok(catalog.list())).await?;
        Ok(models
            .into_iter()
            .map(|model| ModelSummary {
                name: model.name,
                title: model.title,
                is_installed: model.installed,
                bytes: model.bytes,
                fetched: model.fetched,
            })
            .collect())
    }

    async fn read_mind(&self, platform: &PlatformId, at: Reading) -> Result<Option<MindSummary>, Error> {
        let Some(here) = self.here(platform, &at).await? else { return Ok(None) };
        let now = self.0.services.clock.now();
        let state = self.0.minds.states.state(&here.persona, &here.place.scope(), now);
        let shown = state.as_ref().map(|state| State {
            mood: Some(state.mood.name().to_owned()),
            mood_value: Some(state.value as f32),
            energy: Some(state.energy as f32),
        });
        Ok(Some(MindSummary {
            persona: here.persona,
            state: shown.unwrap_or_default(),
            last_exchange: state.as_ref().and_then(|state| state.last_exchange),
            last_dream: state.as_ref().and_then(|state| state.last_dream),
        }))
    }
}

fn persona_summary(row: PersonaRow) -> Option<PersonaSummary> {
    let persona = azera_personas::parse(&row.markdown).ok()?;
    Some(PersonaSummary {
        id: row.identity(),
        is_user: persona.kind != PersonaKind::Assistant,
        intent: persona.intent.lines().next().unwrap_or_default().to_owned(),
        name: persona.name,
        version: row.version,
        at: row.added_at,
        markdown: row.markdown,
    })
}

fn chat_summary(row: ChatRow, last_at: Option<azera_types::Timestamp>) -> ChatSummary {
    ChatSummary {
        chat: row.id,
        title: row.title,
        persona: row.persona,
        branch: row.branch,
        group: row.group,
        tags: row.tags,
        created_at: row.created_at,
        last_at,
    }
}

#[async_trait]
impl Reader for Engine {
    async fn personas(&self, platform: &PlatformId, at: Reading) -> Result<Vec<PersonaSummary>, HostError> {
        self.for_adapter(self.list_personas(platform, at).await)
    }

    async fn chats(&self, platform: &PlatformId, at: Reading) -> Result<Vec<ChatSummary>, HostError> {
        self.for_adapter(self.list_chats(platform, at).await)
    }

    async fn messages(&self, platform: &PlatformId, at: Reading, limit: usize) -> Result<Vec<ShownMessage>, HostError> {
        self.for_adapter(self.list_messages(platform, at, limit).await)
    }

    async fn branches(&self, platform: &PlatformId, at: Reading) -> Result<Vec<BranchSummary>, HostError> {
        self.for_adapter(self.list_branches(platform, at).await)
    }

    async fn writings(
        &self,
        platform: &PlatformId,
        at: Reading,
        kind: WritingKind,
        limit: usize,
    ) -> Result<Vec<ShownWriting>, HostError> {
        self.for_adapter(self.list_written(platform, at, kind, limit).await)
    }

    async fn mind(&self, platform: &PlatformId, at: Reading) -> Result<Option<MindSummary>, HostError> {
        self.for_adapter(self.read_mind(platform, at).await)
    }

    async fn models(&self) -> Result<Vec<ModelSummary>, HostError> {
        self.for_adapter(self.list_models().await)
    }
}
