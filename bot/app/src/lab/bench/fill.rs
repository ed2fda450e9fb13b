//! Fills a data folder with a made-up community, through the record's own write path.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, bail};
use azera_adapter_console::{PLATFORM, Person, chat_id};
use azera_config::Config;
use azera_memory::{
    Batch, Durability, Entry, Error, Kind, Memory, NewChat, NewWriting, Order, SourceScope, Store, Table,
};
use azera_memory_sled::SledStore;
use azera_model_api::EmbedderInfo;
use azera_types::{ChatId, Inbound, PersonId, PlatformId, Scope, Text, Timestamp};
use serde::{Deserialize, Serialize};

use super::crowd::{self, Crowd, MadeUpMessage};
use crate::cli::BenchFill;
use crate::data::DataFolder;
use crate::lab::measure;
use crate::{bootstrap, stores};

/// Memories indexed at a time.
const INDEX_BATCH: usize = 4_096;

/// Minimum number of messages between two reorganisations of the vector index.
const WRITE_BATCH: usize = 20_000;

/// Maximum number of reorganisations; each rebuilds what it merges.
const REORGANISATIONS: usize = 5;

/// The platform of the web. Builds without the web have its name, too.
const WEB: &str = "web";

/// Messages in each chat of an account.
const CHAT_MESSAGES: usize = 100;

/// Words of a chat's title.
const TITLE_WORDS: usize = 4;

/// Words of a dream.
const DREAM_WORDS: usize = 120;

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

/// Runs `azera bench fill`: fills an empty folder with made-up memories. With an account, these are the messages of its
/// chats on the web, and the folder holds that account and nothing that anybody said.
pub async fn fill(config: &Config, options: &BenchFill) -> anyhow::Result<serde_json::Value> {
    let (folder, memories) = (options.folder.as_path(), options.memories);
    let account = options.account.as_deref();
    let speaker = options.person.as_deref().map(Person::new).transpose().context("--as")?;
    if folder.join(FILLED_FILE).exists() {
        bail!("{} is filled already", folder.display());
    }
    let is_empty = folder.read_dir().is_ok_and(|mut entries| entries.next().is_none());
    if account.is_none() && folder.exists() && !is_empty {
        bail!("{} is not empty: made-up memories and real ones must not mix", folder.display());
    }
    let begun = Instant::now();
    let info = embedder(config).await?;
    let stores = open_relaxed(config, folder, &info)?;
    let memory = &stores.memory;
    let home = account.map(|account| Home::new(memory, account)).transpose()?;
    let mut crowd = Crowd::new(0, info.dimension);
    let bar = indicatif::ProgressBar::new(memories as u64).with_message("memories");
    let mut written = 0;
    let batch = WRITE_BATCH.max(memories.div_ceil(REORGANISATIONS));
    while written < memories {
        let until = memories.min(written + batch);
        tokio::task::block_in_place(|| -> anyhow::Result<()> {
            match &home {
                Some(home) => home.write(memory, &mut crowd, written..until)?,
                None => write(memory, &mut crowd, written..until, speaker.as_ref())?,
            }
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
    let held = DataFolder::take(folder)?;
    bootstrap::open_stores_with(&stores::scratch_config(config, folder), held, info, &|store| Arc::new(Relaxed(store)))
}

/// An account of the web whose chats are filled.
struct Home {
    person: PersonId,
    platform: PlatformId,
}

impl Home {
    /// Fails if somebody said something already.
    fn new(memory: &Memory, account: &str) -> anyhow::Result<Self> {
        let person = PersonId::new(format!("{WEB}:{account}")).context("--account")?;
        let platform = PlatformId::new(WEB)?;
        if !memory.accounts().list(&platform)?.iter().any(|(known, _)| *known == person) {
            bail!("there is no account {account}; `GET /api/accounts` lists them");
        }
        let said = memory.indexing().row_counts()?.into_iter().find(|(table, _)| *table == "messages");
        if said.is_some_and(|(_, messages)| messages > 0) {
            bail!("the folder is not empty: made-up memories and real ones must not mix");
        }
        Ok(Self { person, platform })
    }

    /// Writes the messages of these numbers, and a dream for each chat.
    fn write(&self, memory: &Memory, crowd: &mut Crowd, numbers: std::ops::Range<usize>) -> anyhow::Result<()> {
        for number in numbers {
            let said = crowd.message(number, start())?;
            let begins = number % CHAT_MESSAGES == 0;
            let chat = ChatId::new(format!("{}:made-up-{}", self.person, number / CHAT_MESSAGES))?;
            if begins {
                let title = Some(crowd.prose(TITLE_WORDS));
                let (id, platform) = (chat.clone(), self.platform.clone());
                memory.chats().open(NewChat { id, platform, title, persona: crowd::persona()? }, said.at)?;
            }
            let inbound = inbound(said, chat.clone(), self.person.clone(), "Ann".to_owned());
            memory.turns().receive(&self.platform, &inbound, Scope::Dm(self.person.clone()), inbound.at)?;
            memory.turns().leave(&inbound.id)?;
            if begins {
                self.dream(memory, crowd, chat, inbound)?;
            }
        }
        Ok(())
    }

    fn dream(&self, memory: &Memory, crowd: &mut Crowd, chat: ChatId, source: Inbound) -> anyhow::Result<()> {
        let scope = Scope::Dm(self.person.clone());
        memory.writings().write(NewWriting {
            persona: crowd::persona()?,
            persona_name: "Azera".to_owned(),
            kind: Kind::Dream,
            chat,
            source_scopes: vec![SourceScope { scope: scope.clone(), from: source.at }],
            scope,
            sources: vec![source.id],
            text: Text::new(crowd.prose(DREAM_WORDS)),
            at: source.at,
            prompt: None,
            model: None,
            title: None,
            themes: Vec::new(),
            mood: None,
            imported_by: None,
            post: None,
            tended: None,
        })?;
        Ok(())
    }
}

fn inbound(said: MadeUpMessage, chat: ChatId, person: PersonId, name: String) -> Inbound {
    Inbound {
        id: said.id,
        chat,
        person,
        name,
        text: Text::new(&said.text),
        at: said.at,
        parts: Vec::new(),
        mentions_bot: false,
        mentions: Vec::new(),
        reply_to: None,
    }
}

/// Who says a message, and where.
struct Seat {
    platform: PlatformId,
    chat: ChatId,
    person: PersonId,
    name: String,
    scope: Scope,
}

impl Seat {
    fn in_crowd(said: &MadeUpMessage) -> anyhow::Result<Self> {
        Ok(Self {
            platform: PlatformId::new(azera_fake_sim::PLATFORM)?,
            chat: crowd::chat(said.spot, said.person)?,
            person: crowd::person(said.person)?,
            name: crowd::name(said.person),
            scope: crowd::place(said.spot, said.person)?.scope(),
        })
    }

    /// Returns a direct chat of a person of the console. There are as many as the crowd has people.
    fn of(speaker: &Person, said: &MadeUpMessage) -> anyhow::Result<Self> {
        Ok(Self {
            platform: PlatformId::new(PLATFORM)?,
            chat: chat_id(&speaker.id, &format!("made-up-{}", said.person))?,
            person: speaker.id.clone(),
            name: speaker.name.clone(),
            scope: Scope::Dm(speaker.id.clone()),
        })
    }
}

/// Writes the messages of these numbers, in the crowd or in direct chats of one speaker.
pub fn write(
    memory: &Memory,
    crowd: &mut Crowd,
    numbers: std::ops::Range<usize>,
    speaker: Option<&Person>,
) -> anyhow::Result<()> {
    for number in numbers {
        let said = crowd.message(number, start())?;
        let seat = match speaker {
            Some(speaker) => Seat::of(speaker, &said)?,
            None => Seat::in_crowd(&said)?,
        };
        let Seat { platform, chat, person, name, scope } = seat;
        let new = NewChat { id: chat.clone(), platform: platform.clone(), title: None, persona: crowd::persona()? };
        memory.chats().open(new, said.at)?;
        let inbound = inbound(said, chat, person, name);
        memory.turns().receive(&platform, &inbound, scope, inbound.at)?;
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
