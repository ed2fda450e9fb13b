//! Fills a data folder with a made-up community, through the record's own write path.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, bail};
use azera_config::Config;
use azera_memory::{Batch, Durability, Entry, Error, Memory, NewChat, Order, Store, Table};
use azera_memory_sled::SledStore;
use azera_model_api::EmbedderInfo;
use azera_types::{Inbound, PlatformId, Text, Timestamp};
use serde::{Deserialize, Serialize};

use super::crowd::{self, Crowd};
use crate::lab::measure;
use crate::{bootstrap, stores};

/// Memories indexed at a time.
const INDEX_BATCH: usize = 4_096;

/// Minimum number of messages between two reorganisations of the vector index.
const WRITE_BATCH: usize = 20_000;

/// Maximum number of reorganisations; each rebuilds what it merges.
const REORGANISATIONS: usize = 5;

/// The file that describes the content of a filled folder.
const FILLED_FILE: &str = "filled.json";

/// The content of a filled folder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Filled {
    /// Number of memories.
    pub memories: usize,
    /// Seconds to write, index and optimize them.
    pub build_s: f64,
}

/// Returns the time of the first message.
pub fn start() -> Timestamp {
    // 2024-01-01T00:00:00Z.
    Timestamp::from_second(1_704_067_200).unwrap_or(Timestamp::UNIX_EPOCH)
}

/// Returns a time after the last message.
pub fn end(memories: usize) -> anyhow::Result<Timestamp> {
    let last = Crowd::new(0, 1).message(memories, start())?.at;
    Ok(last.checked_add(jiff::SignedDuration::from_hours(24))?)
}

/// Returns the embedding model that the stores are made for. It does not run.
pub async fn embedder(config: &Config) -> anyhow::Result<EmbedderInfo> {
    bootstrap::present_embedder_info(config).await
}

/// A store that makes all writes durable at the end. Filling is not measured, and a half-filled folder is thrown away.
struct Relaxed(SledStore);

impl Store for Relaxed {
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        self.0.get(table, key)
    }

    fn scan(
        &self,
        table: Table,
        prefix: &[u8],
        after: Option<&[u8]>,
        order: Order,
        limit: usize,
    ) -> Result<Vec<Entry>, Error> {
        self.0.scan(table, prefix, after, order, limit)
    }

    fn ready(&self) -> Result<(), Error> {
        self.0.ready()
    }

    fn commit(&self, batch: Batch, _durability: Durability) -> Result<(), Error> {
        self.0.commit(batch, Durability::Soon)
    }

    fn flush(&self) -> Result<(), Error> {
        Ok(())
    }

    fn rewrite(&self) -> Result<(), Error> {
        self.0.rewrite()
    }

    fn dump(&self, take: &mut dyn FnMut(Batch) -> Result<(), Error>) -> Result<u64, Error> {
        self.0.dump(take)
    }

    fn revision(&self) -> u64 {
        self.0.revision()
    }

    fn disk_bytes(&self) -> Result<u64, Error> {
        self.0.disk_bytes()
    }
}

/// Runs `azera bench fill`: fills an empty folder with `memories` memories.
pub async fn fill(config: &Config, folder: &Path, memories: usize) -> anyhow::Result<serde_json::Value> {
    if folder.join(FILLED_FILE).exists() {
        bail!("{} is filled already", folder.display());
    }
    if folder.read_dir().is_ok_and(|mut entries| entries.next().is_some()) {
        bail!("{} is not empty: made-up memories and real ones must not mix", folder.display());
    }
    let begun = Instant::now();
    let info = embedder(config).await?;
    let stores = open_relaxed(config, folder, &info)?;
    let memory = &stores.memory;
    let mut crowd = Crowd::new(0, info.dimension);
    let bar = indicatif::ProgressBar::new(memories as u64).with_message("memories");
    let mut written = 0;
    let batch = WRITE_BATCH.max(memories.div_ceil(REORGANISATIONS));
    while written < memories {
        let until = memories.min(written + batch);
        tokio::task::block_in_place(|| -> anyhow::Result<()> {
            write(memory, &mut crowd, written..until)?;
            index(memory, &crowd)?;
            Ok(memory.indexing().optimize()?)
        })?;
        written = until;
        bar.set_position(written as u64);
    }
    // Dropping the last handle flushes, so the folder is on disk before it is marked as filled.
    drop(stores);
    bar.finish_and_clear();
    let filled = Filled { memories, build_s: begun.elapsed().as_secs_f64() };
    std::fs::write(folder.join(FILLED_FILE), serde_json::to_vec(&filled)?).context("marking the folder as filled")?;
    Ok(serde_json::json!({
        "memories": memories,
        "build_s": super::rounded(filled.build_s),
        "disk_mb": super::rounded(measure::folder_mb(folder)?),
    }))
}

/// Opens the stores of a folder so that nothing is durable before the end.
pub fn open_relaxed(config: &Config, folder: &Path, info: &EmbedderInfo) -> anyhow::Result<bootstrap::Stores> {
    bootstrap::open_stores_with(&stores::scratch_config(config, folder), folder, info, &|store| {
        Arc::new(Relaxed(store))
    })
}

/// Writes the messages of these numbers.
pub fn write(memory: &Memory, crowd: &mut Crowd, numbers: std::ops::Range<usize>) -> anyhow::Result<()> {
    let platform = PlatformId::new(azera_fake_sim::PLATFORM)?;
    for number in numbers {
        let said = crowd.message(number, start())?;
        let (person, chat) = (crowd::person(said.person)?, crowd::chat(said.spot, said.person)?);
        let place = crowd::place(said.spot, said.person)?;
        let new = NewChat { id: chat.clone(), platform: platform.clone(), title: None, persona: crowd::persona()? };
        memory.chats().open(new, said.at)?;
        let inbound = Inbound {
            id: said.id,
            chat,
            person,
            name: crowd::name(said.person),
            text: Text::new(&said.text),
            at: said.at,
            parts: Vec::new(),
            mentions_bot: false,
            mentions: Vec::new(),
            reply_to: None,
        };
        memory.turns().receive(&platform, &inbound, place.scope(), said.at)?;
        memory.turns().leave(&inbound.id)?;
    }
    Ok(())
}

/// Indexes all queued messages in both indexes.
pub fn index(memory: &Memory, crowd: &Crowd) -> Result<(), Error> {
    loop {
        let work = memory.indexing().work(INDEX_BATCH)?;
        if work.is_empty() {
            return Ok(());
        }
        let embedded = work.into_iter().filter_map(|work| {
            let texts: Vec<String> = work.to_embed().cloned().collect();
            work.with_vectors(&mut texts.iter().map(|text| crowd.vector(text)))
        });
        memory.indexing().index(embedded.collect())?;
    }
}

/// Returns a folder with `memories` memories: the given one, filled first if empty, or a scratch folder. Another
/// process fills it, so that its memory use is not counted here.
pub fn filled(config_file: Option<&Path>, folder: Option<&Path>, memories: usize) -> anyhow::Result<(Folder, Filled)> {
    let folder = match folder {
        Some(folder) => Folder { path: folder.to_path_buf(), _scratch: None },
        None => {
            let scratch = tempfile::tempdir().context("making a folder for the benchmark")?;
            Folder { path: scratch.path().join("data"), _scratch: Some(scratch) }
        }
    };
    if !folder.path.join(FILLED_FILE).exists() {
        let mut command = std::process::Command::new(std::env::current_exe()?);
        if let Some(file) = config_file {
            command.arg("--config").arg(file);
        }
        command.args(["bench", "fill", "--memories", &memories.to_string()]).arg(&folder.path);
        let status = command.stdout(std::process::Stdio::null()).status().context("filling the folder")?;
        if !status.success() {
            bail!("the folder could not be filled: see above");
        }
    }
    let mark: Filled = serde_json::from_slice(&std::fs::read(folder.path.join(FILLED_FILE))?)?;
    if mark.memories != memories {
        bail!("{} holds {} memories, not {memories}", folder.path.display(), mark.memories);
    }
    Ok((folder, mark))
}

/// A filled folder. A scratch folder is deleted with this value.
pub struct Folder {
    pub path: PathBuf,
    _scratch: Option<tempfile::TempDir>,
}
