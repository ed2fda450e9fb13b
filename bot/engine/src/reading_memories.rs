//! The [`MemoryReader`] interface: whole memories for platforms that show them.

use std::collections::BTreeMap;

use async_trait::async_trait;
use azera_adapter::{HostError, MemoryCounts, MemoryPage, MemoryReader, Reading, ShownMemory};
use azera_memory::MemoryRow;
use azera_types::{MemoryId, PlatformId};

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

#[async_trait]
impl MemoryReader for Engine {
    async fn memory(&self, platform: &PlatformId, at: Reading, id: MemoryId) -> Result<Option<ShownMemory>, HostError> {
        self.for_adapter(self.get_memory(platform, at, id).await)
    }

    async fn memories(
        &self,
        platform: &PlatformId,
        at: Reading,
        page: MemoryPage,
    ) -> Result<Vec<ShownMemory>, HostError> {
        self.for_adapter(self.list_memories(platform, at, page).await)
    }

    async fn counts(&self, platform: &PlatformId, at: Reading) -> Result<MemoryCounts, HostError> {
        self.for_adapter(self.count_memories(platform, at).await)
    }
}
