//! Connects the web to the configuration and to the opened parts. `store` keeps its accounts in the record, `personas`
//! changes the personas that everybody may use, `samples` keeps recordings of voices, `backups` lists and makes backups,
//! `operations` measures the program and shows its log, `local` does what commands on this machine ask for, and `running` asks
//! for it.

mod backups;
mod local;
mod mcp;
mod operations;
mod personas;
mod running;
mod samples;
mod store;

use std::net::IpAddr;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, bail};
use async_trait::async_trait;
use azera_adapter::{Host, Platform};
use azera_adapter_http::{Error, Local, LocalError, Parts, Settings, Web};
use azera_config::Config;
use azera_engine::COMMANDS;
use azera_types::{PersonaId, SystemClock};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::bootstrap::App;
use crate::cli::{KeyCommand, WebCommand, WebOptions};
use crate::data::DataFolder;
use crate::log_ring::LogRing;
use crate::run::Connection;

pub use running::RunningAzera;

fn settings(config: &Config) -> anyhow::Result<Settings> {
    let http = &config.http;
    let proxies = http.trusted_proxies.iter().map(|proxy| proxy.parse::<IpAddr>());
    Ok(Settings {
        listen: http.listen.parse().context("http.listen")?,
        trusted_proxies: proxies.collect::<Result<_, _>>().context("http.trusted_proxies")?,
        allowed_hosts: http.allowed_hosts.clone(),
        folder: config.data_dir()?,
        commands: COMMANDS,
        version: env!("CARGO_PKG_VERSION"),
    })
}

/// Takes the web's address; `None` if the web is switched off, or if another program has the address.
pub async fn connect(config: &Config, log: &Arc<LogRing>) -> anyhow::Result<Option<Arc<dyn Connection>>> {
    if !config.http.enabled {
        return Ok(None);
    }
    let settings = settings(config)?;
    // The folder holds the file by which commands find the web.
    std::fs::create_dir_all(&settings.folder).with_context(|| format!("making {}", settings.folder.display()))?;
    let role = PersonaId::new(&config.chat.user_persona).context("chat.user_persona")?;
    match Web::bind(settings, Arc::new(SystemClock)).await {
        Ok(web) => Ok(Some(Arc::new(Connected { web, config: config.clone(), role, log: log.clone() }))),
        Err(error @ Error::Taken { .. }) => {
            tracing::warn!("the web is not served: {error}. Set http.listen to another port, or http.enabled to false");
            Ok(None)
        }
        Err(error) => Err(error).context("the web (http.listen)"),
    }
}

struct Connected {
    web: Arc<Web>,
    config: Config,
    /// The role that people play.
    role: PersonaId,
    log: Arc<LogRing>,
}

#[async_trait]
impl Connection for Connected {
    fn platform(&self) -> Arc<dyn Platform> {
        self.web.as_platform()
    }

    fn open(&self, app: &App) {
        self.web.open(Parts {
            accounts: Arc::new(store::RecordAccounts::new(app.memory.clone(), self.web.as_platform().id().clone())),
            reader: Arc::new(app.engine.clone()),
            pictures: Arc::new(app.engine.clone()),
            speech: Arc::new(app.engine.clone()),
            moods: Arc::new(app.engine.clone()),
            known: Arc::new(app.engine.clone()),
            memories: Arc::new(app.engine.clone()),
            places: Arc::new(app.engine.clone()),
            samples: Arc::new(samples::FolderSamples::new(&app.data)),
            operations: Arc::new(operations::AppOperations::new(app, &self.config, self.log.clone())),
            backups: Arc::new(backups::RecordBackups::new(app, &self.config)),
            commands: Arc::new(local::RunningCommands::new(app, &self.config)),
            mcp: Some(Arc::new(mcp::Mounted::new(app, self.web.as_platform().id().clone()))),
            personas: Arc::new(personas::RecordPersonas::new(
                app.memory.clone(),
                &app.data,
                &self.config.chat.persona,
                self.role.clone(),
            )),
        });
    }

    async fn begin(&self) -> anyhow::Result<()> {
        let address = self.web.address();
        match self.web.begin().await? {
            None => eprintln!("The web is at http://{address}."),
            Some(link) => eprintln!(
                "The web is at http://{address}. Nobody owns this Azera yet. Make your account with this link, which works \
                 once:\n  {link}"
            ),
        }
        Ok(())
    }

    fn announce(&self) -> anyhow::Result<()> {
        Ok(self.web.announce()?)
    }

    async fn listen(&self, host: Arc<dyn Host>, stop: CancellationToken) -> anyhow::Result<()> {
        self.web.listen(host, stop).await;
        Ok(())
    }
}

/// `azera web`: prints the address of the running web, and manages the owner's keys.
pub fn run(config: &Config, options: WebOptions) -> anyhow::Result<ExitCode> {
    let data = config.data_dir()?;
    let local = match Local::read(&data) {
        // Somebody else may listen where a web that was killed did.
        Ok(local) if DataFolder::is_taken(&data) && local.is_running() => local,
        Ok(_) | Err(LocalError::NotRunning) => bail!("no web runs here: start it with `azera run`"),
        Err(error) => return Err(error.into()),
    };
    match options.command {
        None => {
            println!("{}", local.setup.as_ref().unwrap_or(&local.address));
            if local.setup.is_some() {
                eprintln!("Nobody owns this Azera yet. Open the link to make your account; it works once.");
            }
        }
        Some(WebCommand::Key { command }) => {
            running::check_is_here(&local)?;
            key(&local, command)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The path of the owner's keys, for commands on this machine.
const KEYS: &str = "/api/local/keys";

/// The path of the programs to which the owner gave access by OAuth.
const GRANTS: &str = "/api/local/grants";

/// Prints keys, or programs with access, one a line.
fn print_keys(list: &Value, mark: &str) {
    for key in list.get("items").and_then(Value::as_array).into_iter().flatten() {
        let scopes = key.get("scopes").and_then(Value::as_array).into_iter().flatten();
        let scopes: Vec<&str> = scopes.filter_map(Value::as_str).collect();
        let used = match text(key, "used_at") {
            "" => "never used".to_owned(),
            at => format!("last used {at}"),
        };
        println!("{}  {}  {}  {used}{mark}", text(key, "id"), text(key, "name"), scopes.join(","));
    }
}

fn key(local: &Local, command: KeyCommand) -> anyhow::Result<()> {
    if local.setup.is_some() {
        bail!("nobody owns this Azera yet: `azera web` prints the link that makes your account");
    }
    match command {
        KeyCommand::Create { name, scopes } => {
            let made = local.call("POST", KEYS, Some(&json!({"name": name, "scopes": scopes})))?;
            println!("{}", text(&made, "key"));
            eprintln!("This key is shown once. `azera web key revoke {}` revokes it.", text(&made, "id"));
        }
        KeyCommand::List => {
            print_keys(&local.call("GET", KEYS, None)?, "");
            print_keys(&local.call("GET", GRANTS, None)?, "  (a program that was given access)");
        }
        KeyCommand::Revoke { id } => {
            if !id.chars().all(|c| c.is_ascii_alphanumeric()) {
                bail!("{id:?} is no id of a key; `azera web key list` prints them");
            }
            println!("{}", revoked(local, &id)?);
        }
    }
    Ok(())
}

/// Revokes a key, or ends the access of a program: the id is one of either. Returns what was done.
fn revoked(local: &Local, id: &str) -> anyhow::Result<String> {
    for (path, done) in [(KEYS, format!("The key {id} is revoked.")), (GRANTS, format!("The access {id} is ended."))] {
        match local.call("DELETE", &format!("{path}/{id}"), None) {
            Err(LocalError::Missing(_)) => {}
            answer => return Ok(answer.map(|_| done)?),
        }
    }
    bail!("no key and no program with access has the id {id}; `azera web key list` prints them")
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}
