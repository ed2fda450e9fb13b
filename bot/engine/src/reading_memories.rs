//! The [`MemoryReader`] interface: whole memories for platforms that show them.

use std::collections::BTreeMap;

use async_trait::async_trait;
use azera_adapter::{
    HostError, KnownReader, MemoryCounts, MemoryPage, MemoryReader, Reading, ShownEntity, ShownKnown, ShownKnowns,
    ShownMemory, ShownRelation, ShownTheme, ShownThemes,
};
use azera_memory::{Entity, EntityLink, Known, Label, MemoryRow, Theme};
use azera_types::{MemoryId, PersonId, PlatformId};

use crate::engine::Engine;
use crate::error::Error;
use crate::reading::MAX_LISTED;

fn shown(row: MemoryRow) -> ShownMemory {
    ShownMemory {
        id: row.id,
        kind: row.kind.as_str(),
        evidence: row.kind.evidence().as_str(),
        scope: row.scope,
        author: row.author,
        sources: row.sources,
        text: row.text,
        at: row.at,
    }
}

impl Engine {
    async fn get_memory(&self, platform: &PlatformId, at: Reading, id: MemoryId) -> Result<Option<ShownMemory>, Error> {
        let Some(here) = self.here(platform, &at).await? else { return Ok(None) };
        let row = self.0.services.blocking(move |memory| memory.memories().get(&here.read_scope, id)).await?;
        Ok(row.map(shown))
    }

    async fn get_memories(
        &self,
        platform: &PlatformId,
        at: Reading,
        ids: Vec<MemoryId>,
    ) -> Result<Vec<ShownMemory>, Error> {
        let Some(here) = self.here(platform, &at).await? else { return Ok(Vec::new()) };
        let read = move |memory: &azera_memory::Memory| {
            let found = ids.into_iter().take(MAX_LISTED).map(|id| memory.memories().get(&here.read_scope, id));
            found.collect::<Result<Vec<_>, _>>()
        };
        let rows = self.0.services.blocking(read).await?;
        Ok(rows.into_iter().flatten().map(shown).collect())
    }

    async fn list_memories(
        &self,
        platform: &PlatformId,
        at: Reading,
        page: MemoryPage,
    ) -> Result<Vec<ShownMemory>, Error> {
        let Some(here) = self.here(platform, &at).await? else { return Ok(Vec::new()) };
        let MemoryPage { kinds, before, limit } = page;
        let list = move |memory: &azera_memory::Memory| {
            let accepts = |kind: azera_memory::Kind| kinds.is_empty() || kinds.iter().any(|name| name == kind.as_str());
            memory.memories().newest(&here.read_scope, accepts, before, limit.min(MAX_LISTED))
        };
        let rows = self.0.services.blocking(list).await?;
        Ok(rows.into_iter().map(shown).collect())
    }

    async fn count_memories(&self, platform: &PlatformId, at: Reading) -> Result<MemoryCounts, Error> {
        let Some(here) = self.here(platform, &at).await? else { return Ok(MemoryCounts::default()) };
        let stats = self.0.services.blocking(move |memory| memory.stats(&here.read_scope)).await?;
        let mut by_kind: BTreeMap<&'static str, usize> = BTreeMap::new();
        for (kind, _, count) in &stats.counts {
            *by_kind.entry(kind.as_str()).or_default() += count;
        }
        Ok(MemoryCounts { by_kind: by_kind.into_iter().collect(), queued: stats.queued })
    }
}

impl Engine {
    async fn list_entities(&self, platform: &PlatformId, at: Reading, name: String) -> Result<Vec<ShownEntity>, Error> {
        let Some(here) = self.here(platform, &at).await? else { return Ok(Vec::new()) };
        let found = self.0.services.blocking(move |memory| memory.graph().about(&here.read_scope, &name)).await?;
        Ok(found.into_iter().map(shown_entity).collect())
    }
}

fn shown_entity(entity: Entity) -> ShownEntity {
    let relation = |link: EntityLink| ShownRelation {
        said: link.label.phrase(&link.subject, &link.object),
        other: link.other,
        is_plain: link.label == Label::Together,
        confidence: link.confidence,
        since: link.said.0,
        sources: link.sources,
    };
    ShownEntity {
        name: entity.name,
        kind: entity.kind.map(azera_memory::EntityKind::as_str),
        other_names: entity.other_names.into_iter().map(|(name, _)| name).collect(),
        mentions: entity.mentions,
        is_cut: entity.is_cut,
        relations: entity.links.into_iter().map(relation).collect(),
    }
}

impl Engine {
    async fn list_themes(
        &self,
        platform: &PlatformId,
        at: Reading,
        skip: usize,
        limit: usize,
    ) -> Result<ShownThemes, Error> {
        let Some(here) = self.here(platform, &at).await? else { return Ok(ShownThemes::default()) };
        let list =
            move |memory: &azera_memory::Memory| memory.themes().list(&here.read_scope, skip, limit.min(MAX_LISTED));
        let found = self.0.services.blocking(list).await?;
        let (is_cut, total) = (found.is_cut, found.total);
        Ok(ShownThemes { is_cut, themes: found.themes.into_iter().map(shown_theme).collect(), total })
    }
}

fn shown_theme(theme: Theme) -> ShownTheme {
    ShownTheme {
        words: theme.words,
        scope: theme.scope,
        memories: theme.memories,
        said: theme.said,
        typical: shown(theme.typical),
        newest: shown(theme.newest),
        parts: theme.parts.into_iter().map(shown_theme).collect(),
    }
}

impl Engine {
    async fn list_known(
        &self,
        platform: &PlatformId,
        at: Reading,
        skip: usize,
        limit: usize,
    ) -> Result<ShownKnowns, Error> {
        let Some(here) = self.here(platform, &at).await? else { return Ok(ShownKnowns::default()) };
        let list =
            move |memory: &azera_memory::Memory| memory.memories().known(&here.read_scope, skip, limit.min(MAX_LISTED));
        let (found, total) = self.0.services.blocking(list).await?;
        Ok(ShownKnowns { known: found.into_iter().map(|known| shown_known(known, &at.person)).collect(), total })
    }
}

fn shown_known(known: Known, reader: &PersonId) -> ShownKnown {
    ShownKnown {
        is_own: known.newest.author.person() == Some(reader),
        also: known.again.iter().map(|again| again.memory).collect(),
        chats: known.chats,
        counts: !known.is_apart,
        memory: shown(known.newest),
    }
}

#[async_trait]
impl KnownReader for Engine {
    async fn known(
        &self,
        platform: &PlatformId,
        at: Reading,
        skip: usize,
        limit: usize,
    ) -> Result<ShownKnowns, HostError> {
        self.for_adapter(self.list_known(platform, at, skip, limit).await)
    }
}

#[async_trait]
impl MemoryReader for Engine {
    async fn memory(&self, platform: &PlatformId, at: Reading, id: MemoryId) -> Result<Option<ShownMemory>, HostError> {
        self.for_adapter(self.get_memory(platform, at, id).await)
    }

    async fn memories_by_id(
        &self,
        platform: &PlatformId,
        at: Reading,
        ids: Vec<MemoryId>,
    ) -> Result<Vec<ShownMemory>, HostError> {
        self.for_adapter(self.get_memories(platform, at, ids).await)
    }

    async fn memories(
        &self,
        platform: &PlatformId,
        at: Reading,
        page: MemoryPage,
    ) -> Result<Vec<ShownMemory>, HostError> {
        self.for_adapter(self.list_memories(platform, at, page).await)
    }

    async fn entities(&self, platform: &PlatformId, at: Reading, name: String) -> Result<Vec<ShownEntity>, HostError> {
        self.for_adapter(self.list_entities(platform, at, name).await)
    }

    async fn themes(
        &self,
        platform: &PlatformId,
        at: Reading,
        skip: usize,
        limit: usize,
    ) -> Result<ShownThemes, HostError> {
        self.for_adapter(self.list_themes(platform, at, skip, limit).await)
    }

    async fn counts(&self, platform: &PlatformId, at: Reading) -> Result<MemoryCounts, HostError> {
        self.for_adapter(self.count_memories(platform, at).await)
    }
}
