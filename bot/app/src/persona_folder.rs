//! New files in the personas folder: a persona file that somebody put there becomes a persona at the next start.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use anyhow::Context;
use azera_memory::{Memory, NewPersona};
use azera_personas::{Persona, Severity};
use azera_types::{PersonaId, Timestamp};

/// A file of the folder that is not used, with the reason and what to do.
#[derive(Debug, PartialEq, Eq)]
pub struct Unused {
    pub file: PathBuf,
    pub why: String,
}

/// Adds the personas of new files to the record, and renames the files to the ids in them. Logs files that cannot be
/// used.
pub fn add_new_files(memory: &Memory, folder: &Path, now: Timestamp) -> anyhow::Result<()> {
    for file in markdown_files(folder)? {
        match new_persona(memory, &file)? {
            Err(unused) => tracing::warn!(file = %unused.file.display(), why = unused.why, "ignoring a persona's file"),
            Ok(None) => {}
            Ok(Some(persona)) => {
                let id = PersonaId::new(persona.id.as_str())?;
                let markdown = Some(persona.to_markdown());
                let new = NewPersona { id: id.clone(), owner: None, markdown, card: None, added_by: None };
                if let Err(error) = memory.personas().put(new, now) {
                    tracing::warn!(file = %file.display(), %error, "cannot add the persona of a new file");
                    continue;
                }
                let named = folder.join(format!("{id}.md"));
                if file != named {
                    std::fs::rename(&file, &named).with_context(|| format!("renaming {}", file.display()))?;
                }
                tracing::info!(persona = %id, file = %named.display(), "added the persona of a new file");
            }
        }
    }
    Ok(())
}

/// Returns the files of the folder that are not used.
pub fn unused_files(memory: &Memory, folder: &Path) -> anyhow::Result<Vec<Unused>> {
    let mut unused = Vec::new();
    for file in markdown_files(folder)? {
        unused.extend(new_persona(memory, &file)?.err());
    }
    for row in memory.personas().list(None)? {
        let file = folder.join(format!("{}.md", row.id));
        if let Ok(bytes) = std::fs::read(&file)
            && let Some(why) = mistake(&bytes)
        {
            unused.push(Unused { file, why: format!("{why}; the last version without a mistake is used") });
        }
    }
    Ok(unused)
}

/// Returns the ids in the files of the folder that can be used.
pub fn ids_in(folder: &Path) -> anyhow::Result<Vec<String>> {
    let mut ids = Vec::new();
    for file in markdown_files(folder)? {
        let bytes = std::fs::read(&file).with_context(|| format!("reading {}", file.display()))?;
        ids.extend(azera_personas::check_bytes(&bytes).persona.map(|persona| persona.id.to_string()));
    }
    Ok(ids)
}

/// Returns the persona of a file that belongs to none in the record, if it can be used.
fn new_persona(memory: &Memory, file: &Path) -> anyhow::Result<Result<Option<Persona>, Unused>> {
    let unused = |why: String| Ok(Err(Unused { file: file.to_owned(), why }));
    let stem = file.file_stem().and_then(OsStr::to_str).unwrap_or_default();
    if PersonaId::new(stem).ok().map(|id| memory.personas().get(None, &id)).transpose()?.flatten().is_some() {
        return Ok(Ok(None));
    }
    let size = std::fs::metadata(file).with_context(|| format!("opening {}", file.display()))?.len();
    if size > azera_personas::limits::MAX_CARD_BYTES as u64 {
        return unused(format!("it has {} MB; no persona is that large", size >> 20));
    }
    let bytes = std::fs::read(file).with_context(|| format!("reading {}", file.display()))?;
    let Some(persona) = azera_personas::check_bytes(&bytes).persona else {
        return unused(mistake(&bytes).unwrap_or_else(|| "it is no persona".into()));
    };
    if memory.personas().get(None, &PersonaId::new(persona.id.as_str())?)?.is_some() {
        let id = persona.id.as_str();
        return unused(format!("there is a persona `{id}` already, whose file is {id}.md; give this one another id"));
    }
    Ok(Ok(Some(persona)))
}

/// Returns the first mistake that keeps a file from being used.
fn mistake(bytes: &[u8]) -> Option<String> {
    let checked = azera_personas::check_bytes(bytes);
    let mistakes = checked.problems.iter().filter(|problem| problem.severity == Severity::Error);
    if checked.persona.is_some() { None } else { mistakes.map(ToString::to_string).next() }
}

fn markdown_files(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(files),
        entries => entries.with_context(|| format!("reading {}", folder.display()))?,
    };
    for entry in entries {
        let path = entry.with_context(|| format!("reading {}", folder.display()))?.path();
        if path.is_file() && path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("md")) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}
