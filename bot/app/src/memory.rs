//! `azera memory`: searches, shows, forgets, exports, rebuilds and checks memories.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use azera_adapter::{Host, InboundEvent, SearchRequest, Searched};
use azera_adapter_console::{Console, FIRST_CHAT, Format, PLATFORM, Person, chat_id};
use azera_config::Config;
use azera_engine::{Voice, exported_recordings, exported_samples, exported_vault, forgotten_calls};
use azera_memory::{Audit, DataSubject, Forget, ForgetReceipt, Memory, ReadScope};
use azera_types::{
    ChatId, MemoryId, MessageId, PersonId, PersonaId, Place, PlaceKind, PlatformId, ReadableScopes, RealmId,
    SystemClock, Text, Timestamp,
};
use serde_json::json;

use azera_voice_api::{CallRecordings as _, SampleStore as _};

use crate::bootstrap::{self, App, BootstrapOptions, ModelChoice, Stores};
use crate::call_recordings;
use crate::catch_up::catch_up;
use crate::cli::{ForgetWhat, MemoryCommand, Viewer};
use crate::vault;
use crate::voice_clones::GivenSamples;

/// How long forgetting waits for each store server to forget as well, while the server answers.
const FORGET_WAIT: Duration = Duration::from_secs(600);

pub async fn run(config: &Config, command: MemoryCommand) -> anyhow::Result<ExitCode> {
    match command {
        MemoryCommand::Search { query, limit, json, viewer } => search(config, &query, limit, json, &viewer).await?,
        MemoryCommand::Show { id, viewer } => {
            let Stores { memory, .. } = &stores(config).await?;
            let id: MemoryId = id.parse()?;
            let of = persona(config, &viewer)?;
            ensure!(
                viewer.persona.is_none() || of.as_str().contains('@') || memory.personas().get(None, &of)?.is_some(),
                "there is no persona {of}; `azera persona list` names them"
            );
            let row = memory.memories().get(&read_scope(config, memory, &viewer)?, id)?;
            let row = row.with_context(|| format!("{id} is not there, or not for {} to see", viewer.name))?;
            println!("{}", serde_json::to_string_pretty(&row)?);
        }
        MemoryCommand::Forget { what, quotes, yes } => forget(config, &target(what)?, quotes, yes).await?,
        MemoryCommand::Export { person } => {
            let Stores { memory, .. } = &stores(config).await?;
            let person = PersonId::new(person)?;
            if !memory.knows_person(&person)? {
                bail!("no such person is known: {person}");
            }
            let mut export = memory.export(&DataSubject(person.clone()), u64::MAX)?;
            export["vault"] = exported_vault(memory, &vault::keys(config)?, &person);
            let recordings = call_recordings::open(config, &config.data_dir()?)?;
            let samples = GivenSamples::without_server(&config.data_dir()?)?.list().await?;
            export["voice_samples"] = exported_samples(&samples, &person);
            export["recordings"] = exported_recordings(&recordings.of(&person)?);
            println!("{}", serde_json::to_string_pretty(&export)?);
        }
        MemoryCommand::Rebuild => {
            let app = open(config).await?;
            let queued = app.memory.indexing().rebuild()?;
            eprintln!("building the indexes of {queued} memories anew");
            let indexed = catch_up(&app).await?;
            println!("{indexed} memories indexed");
        }
        MemoryCommand::Check { deep, mend, json } => return check(config, deep, mend, json).await,
        MemoryCommand::Stats { json } => stats(config, json).await?,
    }
    Ok(ExitCode::SUCCESS)
}

fn target(what: ForgetWhat) -> anyhow::Result<Forget> {
    let ForgetWhat { memory, message, person, chat, realm, from, to } = what;
    Ok(match (memory, message, person, chat, realm) {
        (Some(id), ..) => Forget::Memory(id.parse()?),
        (_, Some(id), ..) => Forget::Message(MessageId::new(id)?),
        (_, _, Some(person), ..) => Forget::Person(PersonId::new(person)?),
        (_, _, _, Some(chat), _) => {
            let chat = ChatId::new(chat)?;
            match (from, to) {
                (None, None) => Forget::Chat(chat),
                (from, to) => {
                    Forget::Span { chat, from: from.unwrap_or(Timestamp::MIN), to: to.unwrap_or(Timestamp::MAX) }
                }
            }
        }
        (.., Some(realm)) => Forget::Realm(RealmId::new(realm)?, Vec::new()),
        _ => bail!("say what: --memory, --message, --person, --chat or --realm, each with its id"),
    })
}

/// Opens only the stores, for commands that need no model.
pub async fn stores(config: &Config) -> anyhow::Result<Stores> {
    bootstrap::open_stores(config, &config.data_dir()?, &bootstrap::present_embedder_info(config).await?)
}

/// Opens everything except a chat model.
async fn open(config: &Config) -> anyhow::Result<App> {
    let opening =
        BootstrapOptions { answers: ModelChoice::Scripted, clock: Arc::new(SystemClock), seed: None, on_trial: false };
    bootstrap::open(config, opening).await
}

fn persona(config: &Config, viewer: &Viewer) -> anyhow::Result<PersonaId> {
    Ok(PersonaId::new(viewer.persona.as_deref().unwrap_or(&config.chat.persona))?)
}

/// Returns what a person at this terminal may see: what they said here, their projects, and what the operator wrote for
/// everyone.
fn read_scope(config: &Config, memory: &Memory, viewer: &Viewer) -> anyhow::Result<ReadScope> {
    let person = Person::new(&viewer.name).context("--as")?;
    let chat = chat_id(&person.id, FIRST_CHAT)?;
    let place = Place { chat, kind: PlaceKind::Dm(person.id.clone()), since: None };
    let projects = memory.imports().projects_of(&person.id)?;
    let realms = projects.into_iter().map(|realm| (realm, None)).collect();
    Ok(ReadScope::in_place(persona(config, viewer)?, &place, &ReadableScopes { realms, ..ReadableScopes::default() }))
}

async fn search(config: &Config, query: &str, limit: usize, json: bool, viewer: &Viewer) -> anyhow::Result<()> {
    let app = open(config).await?;
    // After a restore, or when an index was lost, nothing could be found otherwise.
    if let Err(error) = catch_up(&app).await {
        eprintln!("not all memories are indexed yet: {error:#}");
    }
    let person = Person::new(&viewer.name).context("--as")?;
    let console = Console::new(
        person.clone(),
        Format::Plain,
        Box::new(std::io::stdout()),
        Box::new(std::io::stderr()),
        Arc::new(SystemClock),
    )?;
    app.engine.attach(Arc::new(console));
    let platform = PlatformId::new(PLATFORM)?;
    // Use a separate chat, so that a search with another persona changes no real chat.
    let chat = chat_id(&person.id, &format!("search-{}", persona(config, viewer)?))?;
    let info = azera_adapter::ChatInfo { chat: chat.clone(), title: None, persona: Some(persona(config, viewer)?) };
    app.engine.submit(&platform, InboundEvent::Chat(info)).await?;
    let line = SearchRequest { chat, person: person.id, query: Text::new(query), limit: Some(limit), as_of: None };
    let Searched { hits, missing } = app.engine.search(&platform, line).await?;
    if !missing.is_empty() {
        eprintln!("not available just now: {}", missing.join(", "));
    }
    if json {
        println!("{}", serde_json::to_string_pretty(&hits)?);
        return Ok(());
    }
    for hit in &hits {
        println!("{}  {:.2}  {}  {}", hit.memory.0, hit.score, hit.signals.join("+"), hit.text.as_str());
    }
    if hits.is_empty() {
        println!("nothing like that is remembered that {} may see", viewer.name);
    }
    Ok(())
}

/// Asks whether to forget, unless `yes` is set. Returns false, and says so, if the answer is no.
pub fn is_confirmed(yes: bool) -> anyhow::Result<bool> {
    if yes {
        return Ok(true);
    }
    if !std::io::stdin().is_terminal() {
        bail!("forgetting cannot be undone: add --yes");
    }
    print!("This cannot be undone. Forget? [y/N] ");
    std::io::stdout().flush()?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    let confirmed = answer.trim().eq_ignore_ascii_case("y");
    if !confirmed {
        println!("nothing was forgotten");
    }
    Ok(confirmed)
}

pub async fn forget(config: &Config, what: &Forget, quotes: bool, yes: bool) -> anyhow::Result<()> {
    if !is_confirmed(yes)? {
        return Ok(());
    }
    let app = open(config).await?;
    let store = Arc::new(GivenSamples::without_server(&app.data)?);
    app.engine.give_voice(Voice { samples: Some(store), ..Voice::default() });
    let samples = app.engine.forget_samples(what).await.context("removing samples of voices")?;
    let mut known = app.memory.is_known(what)? || samples > 0;
    // First, so that a failure leaves nothing that its person believes forgotten.
    let recordings = forgotten_calls(what).map(|calls| app.recordings.forget(&calls)).transpose();
    let recordings = recordings.context("removing recordings of calls")?.unwrap_or_default();
    known |= recordings > 0;
    let receipt = app.memory.forgetting().forget(what, quotes);
    let unlearned = app.engine.withdraw_unfounded(None).await;
    let receipt = receipt?;
    // Messages beside the forgotten ones are embedded anew. If no model can do that now, the receipt is due all the same.
    if let Err(error) = app.engine.scrub().await {
        tracing::warn!("forgotten bytes are overwritten at a later start: {error:#}");
    }
    // What came into the index meanwhile, or was forgotten meanwhile, puts it off to the next start.
    let on_disk = if app.memory.forgetting().scrub_due()? { "owed" } else { "overwritten" };
    // A running bot would do this later. It is not running, so do it now.
    let outcome = crate::backup::forget(&app.memory, app.backups.folder(), &app.data);
    let servers = app.servers.clone();
    let servers = match tokio::task::spawn_blocking(move || servers.wait(FORGET_WAIT)).await? {
        None => "none",
        Some(true) => "done",
        Some(false) => "owed",
    };
    let ForgetReceipt { messages, replies, memories, why, chats, quoted_by, .. } = receipt;
    println!(
        "{}",
        serde_json::to_string_pretty(&json!({
            "messages": messages,
            "replies": replies,
            "memories": memories,
            "why": why,
            "chats": chats,
            "voice_samples": samples,
            "recordings": recordings,
            "still_quoted_by": quoted_by,
            "bytes_on_disk": on_disk,
            "unlearnt": unlearned,
            "servers": servers,
            "backups_rewritten": outcome.as_ref().ok().map(|outcome| outcome.rewritten),
            "backups_removed": outcome.as_ref().ok().map(|outcome| outcome.removed),
        }))?
    );
    outcome.map(drop).context(crate::backup::STILL_THERE)?;
    ensure!(known, "{} is known: nothing was forgotten", unknown(what));
    Ok(())
}

/// Says that something is not known, for an error.
fn unknown(what: &Forget) -> String {
    match what {
        Forget::Message(id) => format!("no such message ({id})"),
        Forget::Memory(id) => format!("no such memory ({id})"),
        Forget::Span { chat, .. } | Forget::Chat(chat) => format!("no such chat ({chat})"),
        Forget::Person(person) => format!("no such person ({person})"),
        Forget::Realm(realm, _) => format!("no such realm ({realm})"),
        Forget::Import(id) => format!("no such import ({id})"),
    }
}

async fn stats(config: &Config, json: bool) -> anyhow::Result<()> {
    let Stores { memory, .. } = &stores(config).await?;
    let audit = memory.indexing().audit()?;
    let (bytes, files) = (memory.disk_bytes()?, memory.files().totals()?);
    let commands = memory.sessions().kept_commands()?;
    if json {
        let value = json!({
            "memories": audit.memories,
            "queued": audit.queued,
            "missing_vectors": audit.missing_vectors.len(),
            "stray_vectors": audit.stray_vectors.len(),
            "missing_text": audit.missing_text.len(),
            "stray_text": audit.stray_text.len(),
            "unaccounted": audit.unaccounted.len(),
            "record_bytes": bytes,
            "files": files.files,
            "file_bytes": files.bytes,
            "commands": commands,
        });
        println!("{}", serde_json::to_string_pretty(&value)?);
        return Ok(());
    }
    println!("{} memories, {} waiting to be indexed, {} KB of record", audit.memories, audit.queued, bytes >> 10);
    println!("{} files of messages, {} KB", files.files, files.bytes.div_ceil(1024));
    println!("{commands} commands of coding sessions");
    println!("{}", indexes(&audit));
    Ok(())
}

/// Says how the indexes stand to the record.
pub fn indexes(audit: &Audit) -> String {
    match (audit.unaccounted.len(), audit.queued) {
        (0, 0) => "the indexes hold what the record holds".to_owned(),
        (0, queued) => {
            format!("the indexes lack what waits ({queued}); a running Azera indexes it, or `azera memory rebuild` now")
        }
        (others, _) => {
            format!("the indexes differ from the record in {others} memories; `azera memory check --mend` mends that")
        }
    }
}

async fn check(config: &Config, deep: bool, mend: bool, json: bool) -> anyhow::Result<ExitCode> {
    // Only comparing or making vectors needs the embedding model.
    let (opened, app) =
        if deep || mend { (None, Some(open(config).await?)) } else { (Some(stores(config).await?), None) };
    let memory = match (&opened, &app) {
        (Some(stores), _) => &stores.memory,
        (None, Some(app)) => app.memory.as_ref(),
        (None, None) => return Ok(ExitCode::FAILURE),
    };
    let record = memory.check()?;
    let mut mended = 0;
    let mut differ = Vec::new();
    if let Some(app) = &app {
        if mend {
            mended += memory.indexing().mend()?;
            app.engine.index_all().await?;
            app.engine.scrub().await?;
        }
        if deep {
            differ = app.engine.compare_vectors().await?;
        }
        if mend && !differ.is_empty() {
            memory.indexing().index_again(&differ)?;
            app.engine.index_all().await?;
            mended += differ.len();
            differ = app.engine.compare_vectors().await?;
        }
    }
    let audit = memory.indexing().audit()?;
    let good = record.is_sound() && audit.unaccounted.is_empty() && differ.is_empty();
    if json {
        let value = json!({
            "good": good,
            "record": record,
            "queued": audit.queued,
            "unaccounted": audit.unaccounted.len(),
            "wrong_vectors": deep.then_some(differ.len()),
            "mended": mended,
        });
        println!("{}", serde_json::to_string_pretty(&value)?);
        return Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    println!(
        "{} messages, {} replies, {} memories, {} files; {} open turns, {} replies not delivered, {} entries waiting to be \
         indexed",
        record.messages,
        record.replies,
        record.memories,
        record.files,
        record.open_turns,
        record.undelivered,
        audit.queued
    );
    for (table, count) in &record.unreadable {
        println!("{count} rows of {table} cannot be read");
    }
    for (what, count) in &record.broken {
        println!("{count} {what}");
    }
    if !record.is_sound() {
        println!(
            "the record is damaged: `azera restore --replace` brings back the newest backup, `azera restore --salvage \
             --replace` makes a record of what can still be read; either puts what is there aside"
        );
    }
    if !audit.unaccounted.is_empty() {
        println!(
            "{} memories differ between the indexes and the record; --mend indexes them again",
            audit.unaccounted.len()
        );
    }
    if !differ.is_empty() {
        println!("{} memories have vectors of other texts; --mend makes them anew", differ.len());
    }
    if mended > 0 {
        println!("{mended} memories were indexed anew");
    }
    println!("{}", if good { "nothing is wrong" } else { "something is wrong" });
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
