//! The [`MemoryReader`] interface: whole memories for platforms that show them.

use std::collections::BTreeMap;

use async_trait::async_trait;
use azera_adapter::{
    FactPage, HostError, KnownReader, MemoryCounts, MemoryPage, MemoryReader, OwnFacts, Reading, ShownEntity,
    ShownKnown, ShownKnowns, ShownMemory, ShownNames, ShownRelation, ShownTheme, ShownThemes, Steps,
};
use azera_memory::{Calendar, Entity, EntityLink, Known, Label, Memory, MemoryRow, ReadScope, Theme};
use azera_types::{MemoryId, PersonId, PlatformId};

use crate::engine::Engine;
use crate::error::Error;
use crate::reading::MAX_LISTED;
use crate::report::holding;
use crate::zones::stretch;

/// Most facts of a person that one call looks at.
const ROWS_AT_ONCE: usize = 8_192;

/// What may be shown to somebody, and the calendar by which it is told.
struct Telling<'a> {
    memory: &'a Memory,
    read_scope: &'a ReadScope,
    calendar: &'a Calendar,
}

impl Telling<'_> {
    fn shown(&self, row: MemoryRow) -> Result<ShownMemory, azera_memory::Error> {
        let validity = self.memory.memories().validity(self.read_scope, &row, self.calendar)?;
        Ok(ShownMemory {
            id: row.id,
            kind: row.kind.as_str(),
            evidence: row.kind.evidence().as_str(),
            scope: row.scope,
            author: row.author,
            sources: row.sources,
            text: row.text,
            at: row.at,
            holding: holding(&validity, &self.calendar.zone),
        })
    }

    fn shown_entity(&self, entity: Entity) -> ShownEntity {
        let relation = |link: EntityLink| ShownRelation {
            said: link.label.phrase(&link.subject, &link.object),
            other: link.other,
            is_plain: link.label == Label::Together,
            confidence: link.confidence,
            since: link.said.0,
            until: link.until.map(|(from, to)| stretch(from, to, &self.calendar.zone)),
            sources: link.sources,
        };
        ShownEntity {
            name: entity.name,
            kind: entity.kind.map(azera_memory::EntityKind::as_str),
            other_names: entity.other_names,
            mentions: entity.mentions,
            is_cut: entity.is_cut,
            relations: entity.links.into_iter().map(relation).collect(),
        }
    }

    fn shown_theme(&self, theme: Theme) -> Result<ShownTheme, azera_memory::Error> {
        let parts: Result<Vec<ShownTheme>, _> = theme.parts.into_iter().map(|part| self.shown_theme(part)).collect();
        Ok(ShownTheme {
            words: theme.words,
            scope: theme.scope,
            memories: theme.memories,
            said: theme.said,
            typical: self.shown(theme.typical)?,
            newest: self.shown(theme.newest)?,
            parts: parts?,
        })
    }

    fn shown_known(&self, known: Known, reader: &PersonId) -> Result<ShownKnown, azera_memory::Error> {
        Ok(ShownKnown {
            is_own: known.was_said_by(reader),
            own_counts: !known.is_set_apart_by(reader),
            counts: !known.is_apart,
            also: known.again.iter().map(|again| again.memory).collect(),
            chats: known.chats,
            people: known.people,
            memory: self.shown(known.newest)?,
        })
    }
}

impl Engine {
    /// Reads in the background what may be shown to somebody; the default if they cannot read the chat.
    async fn told<T: Default + Send + 'static>(
        &self,
        platform: &PlatformId,
        at: &Reading,
        read: impl FnOnce(&Telling<'_>) -> Result<T, azera_memory::Error> + Send + 'static,
    ) -> Result<T, Error> {
        let Some(here) = self.here(platform, at).await? else { return Ok(T::default()) };
        let calendar = self.0.minds.calendar(&self.0.access, platform, &here.place.scope()).await?;
        let read = move |memory: &Memory| read(&Telling { memory, read_scope: &here.read_scope, calendar: &calendar });
        self.0.services.blocking(read).await
    }
}

impl Engine {
    async fn get_memory(&self, platform: &PlatformId, at: Reading, id: MemoryId) -> Result<Option<ShownMemory>, Error> {
        let read = move |telling: &Telling<'_>| {
            let row = telling.memory.memories().get(telling.read_scope, id)?;
            row.map(|row| telling.shown(row)).transpose()
        };
        self.told(platform, &at, read).await
    }

    async fn get_memories(
        &self,
        platform: &PlatformId,
        at: Reading,
        ids: Vec<MemoryId>,
    ) -> Result<Vec<ShownMemory>, Error> {
        let read = move |telling: &Telling<'_>| {
            let mut found = Vec::new();
            for id in ids.into_iter().take(MAX_LISTED) {
                if let Some(row) = telling.memory.memories().get(telling.read_scope, id)? {
                    found.push(telling.shown(row)?);
                }
            }
            Ok(found)
        };
        self.told(platform, &at, read).await
    }

    async fn list_memories(
        &self,
        platform: &PlatformId,
        at: Reading,
        page: MemoryPage,
    ) -> Result<Vec<ShownMemory>, Error> {
        let MemoryPage { kinds, before, limit } = page;
        let list = move |telling: &Telling<'_>| {
            let accepts = |row: &MemoryRow| kinds.is_empty() || kinds.iter().any(|name| name == row.kind.as_str());
            let rows = telling.memory.memories().newest(telling.read_scope, accepts, before, limit.min(MAX_LISTED))?;
            rows.into_iter().map(|row| telling.shown(row)).collect()
        };
        self.told(platform, &at, list).await
    }

    async fn list_own_facts(&self, platform: &PlatformId, at: Reading, page: FactPage) -> Result<OwnFacts, Error> {
        let person = at.person.clone();
        let list = move |telling: &Telling<'_>| {
            let (memories, most) = (telling.memory.memories(), (page.limit.min(MAX_LISTED), ROWS_AT_ONCE));
            let found = memories.kept_within(telling.read_scope, &person, page.label, page.before, most)?;
            let facts: Result<Vec<ShownMemory>, _> = found.facts.into_iter().map(|row| telling.shown(row)).collect();
            Ok(OwnFacts { facts: facts?, looked: found.looked, rest: found.rest })
        };
        self.told(platform, &at, list).await
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
    async fn list_names(&self, platform: &PlatformId, at: Reading) -> Result<ShownNames, Error> {
        let read = |telling: &Telling<'_>| {
            let names = telling.memory.graph().names(telling.read_scope)?;
            Ok(ShownNames { most: names.most, is_cut: names.is_cut })
        };
        self.told(platform, &at, read).await
    }

    async fn list_entities(&self, platform: &PlatformId, at: Reading, name: String) -> Result<Vec<ShownEntity>, Error> {
        let read = move |telling: &Telling<'_>| {
            let found = telling.memory.graph().about(telling.read_scope, &name, telling.calendar)?;
            Ok(found.into_iter().map(|entity| telling.shown_entity(entity)).collect())
        };
        self.told(platform, &at, read).await
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
        let list = move |telling: &Telling<'_>| {
            let found = telling.memory.themes().list(telling.read_scope, skip, limit.min(MAX_LISTED))?;
            let (is_cut, total) = (found.is_cut, found.total);
            let themes: Result<Vec<ShownTheme>, _> =
                found.themes.into_iter().map(|theme| telling.shown_theme(theme)).collect();
            Ok(ShownThemes { is_cut, themes: themes?, total })
        };
        self.told(platform, &at, list).await
    }
}

impl Engine {
    async fn regroup_themes(&self, platform: &PlatformId, at: Reading, steps: Steps) -> Result<Option<usize>, Error> {
        match self.here(platform, &at).await? {
            Some(here) => self.0.indexer.group_readable(here.read_scope, &*steps).await,
            None => Ok(Some(0)),
        }
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
        let person = at.person.clone();
        let list = move |telling: &Telling<'_>| {
            let (found, total) = telling.memory.memories().known(telling.read_scope, skip, limit.min(MAX_LISTED))?;
            let known: Result<Vec<ShownKnown>, _> =
                found.into_iter().map(|known| telling.shown_known(known, &person)).collect();
            Ok(ShownKnowns { known: known?, total })
        };
        self.told(platform, &at, list).await
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

    async fn own_facts(&self, platform: &PlatformId, at: Reading, page: FactPage) -> Result<OwnFacts, HostError> {
        self.for_adapter(self.list_own_facts(platform, at, page).await)
    }

    async fn graph_names(&self, platform: &PlatformId, at: Reading) -> Result<ShownNames, HostError> {
        self.for_adapter(self.list_names(platform, at).await)
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

    async fn group_themes(&self, platform: &PlatformId, at: Reading, steps: Steps) -> Result<Option<usize>, HostError> {
        self.for_adapter(self.regroup_themes(platform, at, steps).await)
    }

    async fn counts(&self, platform: &PlatformId, at: Reading) -> Result<MemoryCounts, HostError> {
        self.for_adapter(self.count_memories(platform, at).await)
    }
}
