//! The vault: `azera vault`, the secrets of the configuration, and the check of `azera doctor`. `resolve` puts secrets into the
//! configuration, `prompt` reads one from the terminal, `rotate` replaces keys.

mod prompt;
mod resolve;
mod rotate;

use std::io::{IsTerminal, Read, Write};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, bail, ensure};
use azera_config::Config;
use azera_engine::Engine;
use azera_memory::Record;
use azera_memory_sled::SledStore;
use azera_memory_vault::{EntryName, KeyFile, MAX_VALUE_BYTES, SecretText, VaultFile};
use azera_types::{Clock, SystemClock};
use serde_json::json;

use crate::cli::{VaultCommand, VaultOptions};
use crate::data::DataFolder;
pub use resolve::{Unresolved, check, resolve};

/// The folder of the vault in the data folder.
const FOLDER: &str = "vault";

/// Returns the key file. It may be missing, or lie where it must not; that is checked once a key is needed.
///
/// # Errors
/// Neither the configuration nor the environment names a place for it.
pub fn keys(config: &Config) -> anyhow::Result<KeyFile> {
    let (path, data) = (std::path::absolute(config.vault_key_file()?)?, std::path::absolute(config.data_dir()?)?);
    let protected = [data.clone(), std::path::absolute(config.backup_dir()?)?];
    Ok(KeyFile::new(path, data.join(FOLDER)).kept_out_of(protected))
}

/// Notes which master key the vaults of people in a record need, unless that is noted. Backups hold the vaults and not the
/// note, and without it a new key could be made.
fn note_key(keys: &KeyFile, record: &Record<'_>) -> anyhow::Result<()> {
    if keys.noted()?.is_none()
        && let Some(sealed) = record.any_vault()?
    {
        keys.note_for(&sealed)?;
    }
    Ok(())
}

/// Gives the engine the keys of the vault.
///
/// # Errors
/// As [`keys`].
pub fn give_keys(engine: &Engine, config: &Config, record: &Record<'_>) -> anyhow::Result<()> {
    let keys = keys(config)?;
    if let Err(error) = note_key(&keys, record) {
        tracing::warn!("which key the vaults of people need is not noted: {error:#}");
    }
    engine.give_vault_keys(Arc::new(keys));
    Ok(())
}

/// Notes it with the record of the data folder. An Azera that works there did it when it started.
fn note_key_of_record(config: &Config, keys: &KeyFile) -> anyhow::Result<()> {
    let data = config.data_dir()?;
    if keys.noted()?.is_some() || !data.exists() || DataFolder::is_taken(&data) {
        return Ok(());
    }
    let folder = DataFolder::take(&data)?;
    if !folder.has_record() {
        return Ok(());
    }
    let store = SledStore::open(folder.record()).context("reading whether people have vaults")?;
    note_key(keys, &Record::of(&store)?)
}

/// Returns the operator's vault.
fn vault_file(config: &Config) -> anyhow::Result<VaultFile> {
    Ok(VaultFile::new(config.data_dir()?.join(FOLDER)))
}

/// `azera vault`.
pub fn run(config: &Config, options: VaultOptions) -> anyhow::Result<ExitCode> {
    match options.command {
        VaultCommand::Set { name } => set(config, name)?,
        VaultCommand::Get { name, show } => get(config, &name, show)?,
        VaultCommand::List { json } => list(config, json)?,
        VaultCommand::Delete { name } => delete(config, &name)?,
        VaultCommand::Rotate { what } => rotate::run(config, what)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn set(config: &Config, name: EntryName) -> anyhow::Result<()> {
    let value = match std::io::stdin().is_terminal() {
        true => prompt::hidden(&format!("Value of {name} (it is not shown): "))?,
        false => read_value()?,
    };
    let (keys, now) = (keys(config)?, SystemClock.now());
    note_key_of_record(config, &keys)?;
    let had_key = keys.path().exists();
    let replaced = vault_file(config)?.change(&keys, false, |vault| vault.set(name.clone(), &value, now))?;
    eprintln!("{name} is {} the vault.", if replaced { "replaced in" } else { "in" });
    if !had_key {
        eprintln!(
            "The vault's key is the new file {}. Keep a copy of it apart from your backups.",
            keys.path().display()
        );
    }
    Ok(())
}

/// Reads a value from the input, without the line end that editors and `echo` append.
fn read_value() -> anyhow::Result<SecretText> {
    let mut text = String::new();
    let most = MAX_VALUE_BYTES as u64 + 3;
    std::io::stdin().take(most).read_to_string(&mut text).context("reading the value from the input")?;
    let end = text.strip_suffix('\n').map_or(text.as_str(), |text| text.strip_suffix('\r').unwrap_or(text)).len();
    text.truncate(end);
    Ok(SecretText::new(text)?)
}

fn get(config: &Config, name: &EntryName, show: bool) -> anyhow::Result<()> {
    let mut output = std::io::stdout();
    ensure!(
        show || !output.is_terminal(),
        "the output is a terminal, where others could read {name}; `azera vault get {name} --show` prints it all the same"
    );
    let vault = vault_file(config)?.read(&keys(config)?)?;
    let value = vault.map(|vault| vault.get(name)).transpose()?.flatten();
    let Some(value) = value else { bail!(missing(name)) };
    output.write_all(value.expose().as_bytes())?;
    if output.is_terminal() {
        output.write_all(b"\n")?;
    }
    Ok(output.flush()?)
}

fn missing(name: &EntryName) -> String {
    format!("there is no {name} in the vault; `azera vault list` names what there is")
}

fn list(config: &Config, json: bool) -> anyhow::Result<()> {
    let keys = keys(config)?;
    let entries = vault_file(config)?.read(&keys)?.map(|vault| vault.list()).unwrap_or_default();
    if json {
        let entries: Vec<_> =
            entries.iter().map(|entry| json!({"name": entry.name, "changed_at": entry.changed_at})).collect();
        println!("{}", serde_json::to_string_pretty(&json!({"key_file": keys.path(), "entries": entries}))?);
        return Ok(());
    }
    for entry in &entries {
        println!("{}  changed {}", entry.name, entry.changed_at.strftime("%F %T UTC"));
    }
    if entries.is_empty() {
        eprintln!("The vault is empty; `azera vault set NAME` stores a secret.");
    }
    eprintln!("The key is in {}.", keys.path().display());
    Ok(())
}

fn delete(config: &Config, name: &EntryName) -> anyhow::Result<()> {
    let (vault, keys) = (vault_file(config)?, keys(config)?);
    let deleted = match vault.read(&keys)? {
        None => false,
        Some(_) => vault.change(&keys, true, |vault| Ok(vault.remove(name)))?,
    };
    ensure!(deleted, missing(name));
    eprintln!("{name} is deleted.");
    Ok(())
}
