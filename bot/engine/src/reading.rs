//! The [`Reader`] interface: lists of personas, chats, messages and writings for platforms that show them. Every read makes
//! its [`ReadScope`] from what the platform reports at that moment.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use async_trait::async_trait;
use azera_adapter::{
    BranchSummary, ChatSummary, HostError, MindSummary, ModelSummary, PersonaSummary, Platform, Reader, Reading,
    ShownMessage, ShownWriting, State, WritingKind,
};
use azera_memory::words::fold;
use azera_memory::{ChatRow, Kind, PersonaRow, ReadScope};
use azera_personas::PersonaKind;
use azera_types::{PersonaId, Place, PlaceKind, PlatformId, Text};

use crate::engine::Engine;
use crate::error::Error;
use crate::turn::spoken_words;

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
        let Some(here) = self.here(platform, &at).await? else { return Ok(Vec::new()) };
        let rows = self.rows_to_list(platform, &at, &here).await?;
        self.summaries(&here, rows).await
    }

    async fn find_listed(&self, platform: &PlatformId, at: Reading, words: &Text) -> Result<Vec<ChatSummary>, Error> {
        let Some(here) = self.here(platform, &at).await? else { return Ok(Vec::new()) };
        let rows = self.rows_to_list(platform, &at, &here).await?;
        let scopes = self.scopes_of(&here, &rows).await?;
        let (words, now) = (words.clone(), self.0.services.clock.now());
        let rows = self
            .0
            .services
            .blocking(move |memory| {
                let mut saying = BTreeMap::new();
                for (persona, read_scope) in scopes {
                    saying.insert(persona, memory.recall().chats_saying(&read_scope, &words, now)?);
                }
                let says = |row: &ChatRow| saying.get(&row.persona).is_some_and(|chats| chats.contains(&row.id));
                Ok(rows.into_iter().filter(|row| is_titled(row, &words) || says(row)).collect())
            })
            .await?;
        self.summaries(&here, rows).await
    }

    async fn read_chat(&self, platform: &PlatformId, at: Reading) -> Result<Option<ChatSummary>, Error> {
        let Some(here) = self.here(platform, &at).await? else { return Ok(None) };
        let (of, id) = (platform.clone(), at.chat);
        let row = self.0.services.blocking(move |memory| memory.chats().get(&id)).await?;
        let row = row.filter(|row| row.platform == of);
        Ok(self.summaries(&here, row.into_iter().collect()).await?.pop())
    }

    /// Returns the chats that the person can read, and that everybody who reads in this chat may know of.
    async fn rows_to_list(&self, platform: &PlatformId, at: &Reading, here: &Here) -> Result<Vec<ChatRow>, Error> {
        let services = &self.0.services;
        let is_direct = matches!(here.place.kind, PlaceKind::Dm(_));
        let (id, prefix) = (platform.clone(), here.adapter.chat_prefix(&at.person).unwrap_or_default());
        let rows = services.blocking(move |memory| memory.chats().list_under(&id, &prefix)).await?;
        let mut listed = Vec::with_capacity(rows.len());
        for row in rows {
            // A chat that the platform cannot vouch for now is not listed.
            let Ok(Some(place)) = services.place(here.adapter.as_ref(), &row.id, &at.person).await else { continue };
            // Where others read along, only chats are listed that they may know of.
            if is_direct || here.read_scope.grants().iter().any(|grant| grant.scope == place.scope()) {
                listed.push(row);
            }
        }
        Ok(listed)
    }

    /// Returns what each persona of these chats may show here.
    async fn scopes_of(&self, here: &Here, rows: &[ChatRow]) -> Result<BTreeMap<PersonaId, ReadScope>, Error> {
        let reach = self.0.access.readable_scopes(here.adapter.as_ref(), &here.place).await?;
        let personas: BTreeSet<&PersonaId> = rows.iter().map(|row| &row.persona).collect();
        let scope = |persona: &PersonaId| ReadScope::in_place(persona.clone(), &here.place, &reach);
        Ok(personas.into_iter().map(|persona| (persona.clone(), scope(persona))).collect())
    }

    /// Returns the chats, newest first.
    async fn summaries(&self, here: &Here, rows: Vec<ChatRow>) -> Result<Vec<ChatSummary>, Error> {
        let scopes = self.scopes_of(here, &rows).await?;
        let mut found = self
            .0
            .services
            .blocking(move |memory| {
                let mut found = Vec::with_capacity(rows.len());
                for row in rows {
                    let last_at = match scopes.get(&row.persona) {
                        Some(read_scope) => memory.messages().newest_at(read_scope, row.head.as_ref())?,
                        None => None,
                    };
                    found.push(chat_summary(row, last_at));
                }
                Ok(found)
            })
            .await?;
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
                spoken: spoken_words(&row),
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

/// Returns true if a chat's title contains all words, in any case.
fn is_titled(row: &ChatRow, words: &str) -> bool {
    let title = row.title.as_deref().map(fold);
    let sought = fold(words);
    title.is_some_and(|title| sought.split_whitespace().all(|word| title.contains(word)))
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

    async fn find_chats(
        &self,
        platform: &PlatformId,
        at: Reading,
        words: &Text,
    ) -> Result<Vec<ChatSummary>, HostError> {
        self.for_adapter(self.find_listed(platform, at, words).await)
    }

    async fn chat(&self, platform: &PlatformId, at: Reading) -> Result<Option<ChatSummary>, HostError> {
        self.for_adapter(self.read_chat(platform, at).await)
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
