//! `azera restore`: restores a backup, salvages a damaged record, or undoes the last restore.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, bail, ensure};
use azera_config::Config;
use azera_memory::{BlobStore, PendingBackupForgets, Record, relink, restore};
use azera_memory_backup::{Backup, Error, Folder};
use azera_memory_blobs::DiskBlobs;
use azera_memory_sled::{SalvageReport, SledStore};
use azera_types::{Clock, SystemClock};

use crate::backup::{check, find, forget_in, line};
use crate::bootstrap::{self, BootstrapOptions, ModelChoice};
use crate::catch_up::catch_up;
use crate::cli::RestoreOptions;
use crate::data::DataFolder;
use crate::doctor::has_embedder;
use crate::progress::Bar;
use crate::vault;

/// Restores, and builds the indexes of the record that is there then.
pub async fn run(config: &Config, options: &RestoreOptions) -> anyhow::Result<ExitCode> {
    let code = replace_record(config, options)?;
    if !has_embedder(config)? {
        println!("the embedding model is not here yet; the next start builds the indexes anew");
        return Ok(code);
    }
    let opening =
        BootstrapOptions { answers: ModelChoice::Scripted, clock: Arc::new(SystemClock), seed: None, on_trial: false };
    // The record is back, whatever becomes of the indexes.
    let indexed = async { catch_up(&bootstrap::open_without_inner_life(config, opening).await?).await };
    match indexed.await {
        Ok(indexed) => println!("the indexes are built: {indexed} memories"),
        Err(error) => eprintln!("the indexes are not built yet ({error:#}); the next start goes on"),
    }
    Ok(code)
}

/// Puts another record in the place of the present one.
fn replace_record(config: &Config, options: &RestoreOptions) -> anyhow::Result<ExitCode> {
    let data = config.data_dir()?;
    let mut folder = DataFolder::take(&data)?;
    let backups = bootstrap::backups(config)?;
    if options.undo {
        return undo(&mut folder, &backups, &data);
    }
    if folder.has_record() && !options.replace {
        bail!(
            "{} holds a record already. `azera restore --replace` puts it aside; `azera restore --undo` then brings it back",
            data.display()
        );
    }
    if options.salvage {
        return salvage(&mut folder, &backups, &data);
    }
    let present = present(&folder, &backups, &data);
    let backup = match &options.backup {
        Some(backup) => {
            let backup = find(&backups, backup)?;
            check(&backup)?;
            backup
        }
        None => newest(&backups, present.identity.as_deref())?,
    };
    let sealed = write_new_record(&folder, &backup, &present)?;
    let aside = folder.exchange(SystemClock.now())?;
    println!("restored {}", backup.path.display());
    println!("{}", line(&backup));
    if let Some(sealed) = sealed {
        tell_of_vaults(config, &sealed);
    }
    if let Some(aside) = aside {
        println!("what was there is in {}; `azera restore --undo` brings it back", aside.display());
    }
    Ok(ExitCode::SUCCESS)
}

/// Says which key the vaults of people need, of which `sealed` is one, and notes it. The record is back, whatever becomes of that.
fn tell_of_vaults(config: &Config, sealed: &[u8]) {
    let noted = vault::keys(config).and_then(|keys| {
        println!(
            "the vaults of people in it open with the key file that they were made with: {}",
            keys.path().display()
        );
        Ok(keys.note_for(sealed)?)
    });
    if let Err(error) = noted {
        eprintln!("which key the vaults of people need is not noted: {error:#}");
    }
}

/// Restores the record that was set aside last, without content that was forgotten since.
fn undo(folder: &mut DataFolder, backups: &Folder, data: &Path) -> anyhow::Result<ExitCode> {
    let Some(last) = folder.aside()?.pop() else { bail!("nothing was put aside in {}", data.display()) };
    let now = SystemClock.now();
    let mut pending_forgets = pending_backup_forgets(&folder.record()).unwrap_or_else(|error| {
        eprintln!("the present record cannot be read ({error:#})");
        PendingBackupForgets::default()
    });
    if pending_forgets.what.is_empty() {
        let revoke_consent = || -> anyhow::Result<()> {
            Ok(Record::of(&SledStore::open(DataFolder::record_aside(&last))?)?.revoke_training_consent()?)
        };
        if let Err(error) = revoke_consent() {
            // A record that cannot be read does not start either.
            eprintln!("the record that was put aside cannot be read ({error:#}); it comes back as it is");
        }
        folder.undo(now)?;
    } else {
        let why = "the record that was put aside cannot be read, so what was forgotten since would come back with it";
        let store = SledStore::open(DataFolder::record_aside(&last)).context(why)?;
        let aside = Record::of(&store)?;
        pending_forgets.join(aside.pending_backup_forgets()?);
        let cleaned = SledStore::open(folder.new_record()?).context("making a record")?;
        let mut cleaning = pending_forgets.what.cleaning();
        restore::<azera_memory::Error>(&cleaned, |take| {
            aside.dump(&mut |batch| take(cleaning.clean(&batch)?.0)).map(drop)
        })
        .context(why)?;
        let cleaned = Record::of(&cleaned)?;
        cleaned.add_backup_folders(aside.backup_folders()?)?;
        cleaned.take_over(&pending_forgets)?;
        if let Err(error) = backups.forget(&cleaned) {
            eprintln!("not every backup could forget what was forgotten ({error}); the next start tries again");
        }
        let owned = cleaned.owned_blobs()?;
        drop(store);
        folder.undo_with_new(now)?;
        let blobs = DiskBlobs::open(folder.blobs())?;
        for (id, _) in blobs.list()?.into_iter().filter(|(id, _)| !owned.contains(id)) {
            blobs.remove(&id)?;
        }
    }
    println!("undid the last restore; the record that it brought is set aside now");
    Ok(ExitCode::SUCCESS)
}

/// Returns what a record still has to forget in backups.
fn pending_backup_forgets(record: &Path) -> anyhow::Result<PendingBackupForgets> {
    Ok(Record::of(&SledStore::open(record)?)?.pending_backup_forgets()?)
}

/// Facts from the current record, as far as it can be read.
#[derive(Default)]
struct Present {
    identity: Option<String>,
    /// Forgotten content that may still be in a backup.
    pending_forgets: PendingBackupForgets,
    /// True if all of it has left every backup.
    backups_forgot: bool,
    /// Folders that backups were made into.
    backup_folders: BTreeMap<String, PathBuf>,
}

/// Reads the current record, if there is a readable one. Removes its forgotten content from the backups and from
/// records set aside, before one of them is restored. If that fails, the result still says what must not come back.
fn present(folder: &DataFolder, backups: &Folder, data: &Path) -> Present {
    let confirm = || -> anyhow::Result<Present> {
        if !folder.has_record() {
            return Ok(Present::default());
        }
        let store = SledStore::open(folder.record())?;
        let record = Record::of(&store)?;
        let pending_forgets = record.pending_backup_forgets()?;
        let forgot = forget_in(&record, backups, data);
        if let Err(error) = &forgot {
            eprintln!("not every backup could forget what was forgotten ({error:#}); the restored record forgets it");
        }
        Ok(Present {
            identity: Some(record.identity().to_owned()),
            pending_forgets,
            backups_forgot: forgot.is_ok(),
            backup_folders: record.backup_folders()?,
        })
    };
    confirm().unwrap_or_else(|error| {
        eprintln!("the present record cannot be read ({error:#})");
        Present::default()
    })
}

/// Returns the newest whole backup, of this record if its identity is known.
fn newest(backups: &Folder, record: Option<&str>) -> anyhow::Result<Backup> {
    let mut found = backups.list()?.backups;
    match record {
        Some(record) => found.retain(|backup| backup.manifest.record == record),
        None => {
            let several = found.windows(2).any(|pair| pair[0].manifest.record != pair[1].manifest.record);
            ensure!(
                !several,
                "{} holds backups of several records; say which to bring back (`azera backup list`)",
                backups.dir().display()
            );
        }
    }
    while let Some(backup) = found.pop() {
        match check(&backup) {
            Ok(()) => return Ok(backup),
            Err(error @ Error::Damaged { .. }) => eprintln!("{error}; trying the one before it"),
            Err(error) => return Err(error.into()),
        }
    }
    bail!("there is no whole backup in {}", backups.dir().display())
}

/// Writes the backup's record beside the current one. Returns one of the vaults of people in it.
fn write_new_record(folder: &DataFolder, backup: &Backup, present: &Present) -> anyhow::Result<Option<Vec<u8>>> {
    let bar = Bar::new();
    let store = SledStore::open(folder.new_record()?).context("making a record")?;
    let mut cleaning = present.pending_forgets.what.cleaning();
    restore::<Error>(&store, |take| {
        backup.read(&mut |done| bar.bytes("restoring", done, Some(backup.manifest.bytes)), &mut |batch| {
            Ok(take(cleaning.clean(&batch)?.0)?)
        })
    })?;
    let record = Record::of(&store)?;
    restore_files(folder, backup, &record)?;
    // Folders that belong to another record stay out.
    if present.identity.as_deref() == Some(record.identity()) {
        record.add_backup_folders(present.backup_folders.clone())?;
    }
    if !present.backups_forgot {
        record.take_over(&present.pending_forgets)?;
    }
    Ok(record.any_vault()?)
}

/// Writes the files of messages that the new record still has. A missing one does not stop the restore.
fn restore_files(folder: &DataFolder, backup: &Backup, record: &Record<'_>) -> anyhow::Result<()> {
    let blobs = DiskBlobs::open(folder.new_blobs()?)?;
    let mut missing = 0;
    for id in record.owned_blobs()? {
        match backup.file(&id) {
            Ok(Some(bytes)) => blobs.put(&id, &bytes)?,
            Ok(None) | Err(Error::Damaged { .. } | Error::Record(azera_memory::Error::Damaged { .. })) => missing += 1,
            Err(error) => return Err(error.into()),
        }
    }
    if missing > 0 {
        eprintln!("{missing} files of messages are missing from the backup; their messages are there");
    }
    Ok(())
}

/// Builds a record from the readable rows of the current one, and sets the damaged one aside.
fn salvage(folder: &mut DataFolder, backups: &Folder, data: &Path) -> anyhow::Result<ExitCode> {
    ensure!(folder.has_record(), "there is no record to salvage");
    let store = SledStore::open(folder.new_record()?).context("making a record")?;
    let mut salvaged = SalvageReport::default();
    restore::<azera_memory::Error>(&store, |take| {
        salvaged = SledStore::salvage(folder.record(), take)?;
        Ok(())
    })
    .context("reading the damaged record (`azera restore --replace` brings back the newest backup instead)")?;
    let relinked = relink(&store)?;
    let rows_kept = |table: &str| relinked.rows_kept.get(table).copied().unwrap_or(0);
    ensure!(
        rows_kept("messages") + rows_kept("memories") > 0,
        "no message of the damaged record can be read, so it was left as it is; `azera restore --replace` brings back the \
         newest backup"
    );
    // If the record's name is lost as well, it takes the name of the backups, provided that they all share one.
    let names: BTreeSet<String> = backups.list()?.backups.into_iter().map(|backup| backup.manifest.record).collect();
    let name = names.first().filter(|_| names.len() == 1);
    let record = Record::named(&store, name.map(String::as_str))?;
    let identity = record.identity().to_owned();
    // Damage can bring back an older state of some rows.
    record.forget_again()?;
    if let Err(error) = forget_in(&record, backups, data) {
        eprintln!("not every backup could forget what was forgotten ({error:#}); the next start tries again");
    }
    drop(store);
    folder.link_blobs(&folder.blobs())?;
    let aside = folder.exchange(SystemClock.now())?;
    println!("salvaged {} messages and {} memories", rows_kept("messages"), rows_kept("memories"));
    if salvaged.gaps > 0 {
        println!("at {} places rows could not be read", salvaged.gaps);
    }
    for (table, count) in &relinked.removed {
        println!("{count} rows of {table} were left out, for they could not be read or named what is gone");
    }
    println!("some may be as they were before a change that is lost");
    match newest(backups, Some(&identity)) {
        Ok(backup) => {
            println!("the newest whole backup, for comparison: {} ({})", backup.path.display(), line(&backup))
        }
        Err(_) => println!("there is no whole backup to compare it with"),
    }
    if let Some(aside) = aside {
        println!("the damaged record is in {}; `azera restore --undo` brings it back", aside.display());
    }
    Ok(ExitCode::SUCCESS)
}
