//! Secrets of the configuration that stand in the vault.

use anyhow::bail;
use azera_config::{Config, Secret, VaultReference};
use azera_memory_vault::{EntryName, MasterKeys, Vault};

use super::{keys, vault_file};
use crate::cli::{Command, ModelsCommand, VoiceOptions};
use crate::doctor::Found;

/// A setting that names an entry of the vault, and why it has no value.
pub type Unresolved = (VaultReference, String);

/// What a secret is to a command.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    /// Without it the command does not begin.
    Needed,
    /// Without it a part of the command may fail, and says so.
    Helpful,
    /// The command never reads it.
    Unused,
}

/// The servers that keep and search memories.
const STORES: [&str; 3] = ["embedding_server", "working_server", "vector_server"];

/// The servers of a conversation in the terminal, besides [`STORES`].
const CONVERSATION: [&str; 4] = ["chat_server", "rerank_server", "images", "vision_server"];

/// The servers that hear and speak.
const SPEECH: [&str; 2] = ["recognition_server", "speech_server"];

/// Returns what the secrets of a section are to a command. Whoever repairs or restores must not need a vault: backups hold none.
fn use_of(command: &Command, section: &str) -> Use {
    let (needed, helpful): (&[&[&str]], &[&[&str]]) = match command {
        Command::Run(_) | Command::Doctor(_) => return Use::Needed,
        Command::Vault(_)
        | Command::Web(_)
        | Command::Health(_)
        | Command::Link(_)
        | Command::Config
        | Command::Backup { .. }
        | Command::Voice(VoiceOptions { command: Some(_), .. }) => return Use::Unused,
        Command::Discord { .. } => (&[&["discord"]], &[]),
        Command::Models { command: ModelsCommand::Pull { .. } } => (&[&["models"]], &[]),
        Command::Models { .. } => (&[], &[&["models"]]),
        Command::Say(_) => (&[&["speech_server"]], &[&["models"]]),
        Command::Transcribe(_) => (&[&["recognition_server"]], &[&["models"]]),
        Command::Mcp(_) => (&[&STORES], &[&["models"], &CONVERSATION]),
        Command::Chat(_)
        | Command::Tour(_)
        | Command::Replay(_)
        | Command::Eval { .. }
        | Command::Hearth { .. }
        | Command::Bench { .. } => (&[&STORES, &CONVERSATION], &[&["models"]]),
        Command::Voice(VoiceOptions { command: None, .. }) => (&[&STORES, &CONVERSATION, &SPEECH], &[&["models"]]),
        Command::Persona { .. }
        | Command::Memory { .. }
        | Command::Import(_)
        | Command::Hook(_)
        | Command::Restore(_) => (&[], &[&STORES, &["models"]]),
    };
    let names = |groups: &[&[&str]]| groups.iter().any(|group| group.contains(&section));
    match (names(needed), names(helpful)) {
        (true, _) => Use::Needed,
        (false, true) => Use::Helpful,
        (false, false) => Use::Unused,
    }
}

/// Finds entries, and opens the vault for the first one.
struct Entries<'a> {
    config: &'a Config,
    vault: Option<Result<Option<Vault>, String>>,
}

impl Entries<'_> {
    fn open(&self) -> Result<Option<Vault>, String> {
        let opened = keys(self.config).and_then(|keys| Ok(vault_file(self.config)?.read(&keys)?));
        opened.map_err(|error| format!("{error:#}"))
    }

    fn find(&mut self, name: &str) -> Result<Secret, String> {
        let entry: EntryName = name.parse().map_err(|error: azera_memory_vault::Error| error.to_string())?;
        if self.vault.is_none() {
            self.vault = Some(self.open());
        }
        let vault = match &self.vault {
            Some(Ok(vault)) => vault.as_ref(),
            Some(Err(error)) => return Err(error.clone()),
            None => None,
        };
        let value = vault.map(|vault| vault.get(&entry)).transpose().map_err(|error| error.to_string())?.flatten();
        let value = value.ok_or_else(|| format!("it is not there; `azera vault set {entry}` stores it"))?;
        Ok(Secret::new(value.expose()))
    }
}

fn in_words((of, why): &Unresolved) -> String {
    format!("{}.{} names the vault entry {:?}: {why}", of.section, of.key, of.name)
}

/// Puts the values of the vault into the configuration. Returns what is missing, for `azera doctor`.
///
/// # Errors
/// Something is missing that the command needs.
pub fn resolve(config: &mut Config, command: &Command) -> anyhow::Result<Vec<Unresolved>> {
    let before = config.clone();
    let mut entries = Entries { config: &before, vault: None };
    let missing = config.resolve_secrets(&mut |reference| match use_of(command, reference.section) {
        Use::Needed | Use::Helpful => entries.find(&reference.name),
        Use::Unused => Err(String::new()),
    });
    if matches!(command, Command::Doctor(_)) {
        return Ok(missing);
    }
    let of = |wanted: Use| missing.iter().filter(move |(of, _)| use_of(command, of.section) == wanted).map(in_words);
    let needed: Vec<String> = of(Use::Needed).collect();
    if !needed.is_empty() {
        bail!("{}", needed.join("\n  "));
    }
    for missing in of(Use::Helpful) {
        tracing::warn!("going on without a secret: {missing}");
    }
    Ok(missing)
}

/// Checks the vault, and what the configuration wants of it.
pub fn check(config: &Config, missing: &[Unresolved]) -> Found {
    if !missing.is_empty() {
        let names: Vec<String> = missing.iter().map(in_words).collect();
        return Found::Bad(names.join("; "), "`azera vault set NAME` stores an entry".into());
    }
    let opened = keys(config).and_then(|keys| {
        let vault = vault_file(config)?.read(&keys)?;
        // The vaults of people need the key as well.
        let needs_key = keys.noted()?.is_some();
        if needs_key {
            keys.masters()?;
        }
        Ok((vault, needs_key, keys))
    });
    match opened {
        Ok((None, false, _)) => Found::Good("empty; `azera vault set NAME` stores a secret".into()),
        Ok((vault, _, keys)) => {
            let entries = vault.map_or(0, |vault| vault.list().len());
            Found::Good(format!("{entries} entries, with the key in {}", keys.path().display()))
        }
        Err(error) => Found::Bad(format!("{error:#}"), "see vault.key_file in the configuration".into()),
    }
}
