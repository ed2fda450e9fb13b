//! `azera persona`: lists, shows, adds, removes and exports personas, and keeps the personas folder in step with the
//! record.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, bail};
use azera_config::Config;
use azera_memory::{MAX_PICTURE_BYTES, Memory, NewPersona, PersonaRow};
use azera_personas::{CardData, CardSpec, Persona, Severity};
use azera_types::{Clock, PersonaId, RealmId, SystemClock};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::bootstrap;
use crate::cli::PersonaCommand;
use crate::persona_add::{Adding, NewFile};

pub async fn run(config: &Config, command: PersonaCommand) -> anyhow::Result<ExitCode> {
    // These commands need no record.
    match &command {
        PersonaCommand::Template { name } => {
            print!("{}", azera_personas::template(name));
            return Ok(ExitCode::SUCCESS);
        }
        PersonaCommand::Add { file, check: true, .. } => {
            print!("{}", read(file)?.persona.to_markdown());
            return Ok(ExitCode::SUCCESS);
        }
        _ => {}
    }
    let data = config.data_dir()?;
    let stores = bootstrap::open_stores(config, &data, &bootstrap::present_embedder_info(config).await?)?;
    let memory = &stores.memory;
    bring_personas(memory, &data, &SystemClock)?;
    match command {
        PersonaCommand::List { realm } => list(memory, owner(realm)?.as_ref())?,
        PersonaCommand::Show { id, version, realm } => {
            print!("{}", row(memory, owner(realm)?.as_ref(), &id, version)?.markdown);
        }
        PersonaCommand::Add { file, realm, replace, keep_memories, .. } => {
            let user_role = PersonaId::new(&config.chat.user_persona).context("chat.user_persona")?;
            let adding = Adding { memory, data: &data, owner: owner(realm)?, user_role };
            adding.add(read(&file)?, replace.as_deref(), keep_memories)?;
        }
        PersonaCommand::Remove { id, realm } => remove(memory, &data, &id, owner(realm)?)?,
        PersonaCommand::Export { id, card, realm } => {
            let row = row(memory, owner(realm)?.as_ref(), &id, None)?;
            if card {
                let data = row.card.map(serde_json::from_value::<CardData>).transpose()?.unwrap_or_default();
                let card = azera_personas::to_card(&parsed(&row.id, &row.markdown)?, &data, CardSpec::V3);
                println!("{}", serde_json::to_string_pretty(&card)?);
            } else {
                print!("{}", row.markdown);
            }
        }
        PersonaCommand::Template { .. } => {}
    }
    Ok(ExitCode::SUCCESS)
}

fn owner(realm: Option<String>) -> anyhow::Result<Option<RealmId>> {
    Ok(realm.map(RealmId::new).transpose()?)
}

fn list(memory: &Memory, owner: Option<&RealmId>) -> anyhow::Result<()> {
    if let Some(realm) = owner
        && !memory.knows_realm(realm)?
    {
        bail!("no such realm is known: {realm}");
    }
    for row in memory.personas().list(owner)? {
        let Ok(persona) = azera_personas::parse(&row.markdown) else {
            println!("{:<20} its file has mistakes; `azera persona show {}`", row.id, row.id);
            continue;
        };
        let intent = persona.intent.lines().next().unwrap_or_default();
        println!("{:<20} {:<10} version {:<3} {intent}", row.id, persona.kind.as_str(), row.version);
    }
    Ok(())
}

pub(super) fn row(
    memory: &Memory,
    owner: Option<&RealmId>,
    id: &str,
    version: Option<u32>,
) -> anyhow::Result<PersonaRow> {
    let id = PersonaId::new(id)?;
    let row = match version {
        None => memory.personas().get(owner, &id)?,
        Some(version) => {
            let versions = memory.personas().versions(owner, &id)?;
            versions.into_iter().find(|row| row.version == version && !row.removed)
        }
    };
    row.with_context(|| match version {
        None => format!("there is no persona {id}; `azera persona list` names them"),
        Some(version) => format!("there is no version {version} of {id}"),
    })
}

fn parsed(id: &PersonaId, markdown: &str) -> anyhow::Result<Persona> {
    azera_personas::parse(markdown).map_err(|problems| {
        let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
        anyhow::anyhow!("the file of {id} has mistakes:\n{}", lines.join("\n"))
    })
}

/// Reads a persona from a Markdown file or a character card. Prints problems and the changes that the import made.
fn read(file: &Path) -> anyhow::Result<NewFile> {
    let size = std::fs::metadata(file).with_context(|| format!("opening {}", file.display()))?.len();
    if size > azera_personas::limits::MAX_CARD_BYTES as u64 {
        bail!("{} has {} MB; no persona is that large", file.display(), size >> 20);
    }
    let bytes = std::fs::read(file).with_context(|| format!("reading {}", file.display()))?;
    let markdown = file.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("md"));
    if !markdown {
        let card = azera_personas::import_card(&bytes).with_context(|| file.display().to_string())?;
        for note in &card.notes {
            eprintln!("{note}");
        }
        return Ok(NewFile { persona: card.persona, card: Some(card.data), picture: card.avatar });
    }
    let checked = azera_personas::check_bytes(&bytes);
    for problem in &checked.problems {
        eprintln!("{}: {problem}", file.display());
    }
    let errors = checked.problems.iter().filter(|problem| problem.severity == Severity::Error).count();
    let persona = checked.persona.with_context(|| format!("{}: {errors} mistakes, see above", file.display()))?;
    Ok(NewFile { persona, card: None, picture: None })
}

pub(super) fn remove(memory: &Memory, data: &Path, id: &str, owner: Option<RealmId>) -> anyhow::Result<()> {
    let id = row(memory, owner.as_ref(), id, None)?.id;
    let own = owner.is_none();
    let new = NewPersona { id: id.clone(), owner, markdown: None, card: None, added_by: None };
    memory.personas().put(new, SystemClock.now())?;
    if own {
        let path = data.join("personas").join(format!("{id}.md"));
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(error).with_context(|| format!("removing {}", path.display()));
            }
            _ => {}
        }
    }
    println!("{id} is removed. What it remembers stays until it is forgotten.");
    Ok(())
}

/// Adds the built-in personas to the record, and those of new files in the personas folder. Writes the record's personas
/// into that folder, where people edit them. A valid file that someone changed there becomes a new version.
pub fn bring_personas(memory: &Memory, data: &Path, clock: &dyn Clock) -> anyhow::Result<()> {
    let now = clock.now();
    for built_in in azera_personas::BUILT_INS {
        let persona = built_in.persona();
        let id = PersonaId::new(persona.id.as_str())?;
        let versions = memory.personas().versions(None, &id)?;
        // A built-in persona that someone changed or removed stays as it is.
        if versions.is_empty() {
            let new = NewPersona { id, owner: None, markdown: Some(persona.to_markdown()), card: None, added_by: None };
            memory.personas().put(new, now)?;
        }
    }
    let folder = data.join("personas");
    std::fs::create_dir_all(&folder).with_context(|| format!("making the folder {}", folder.display()))?;
    crate::persona_folder::add_new_files(memory, &folder, now)?;
    for row in memory.personas().list(None)? {
        let file = folder.join(format!("{}.md", row.id));
        match std::fs::read(&file) {
            Ok(bytes) => import_changed_file(memory, &row, &bytes, now)?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                std::fs::write(&file, &row.markdown).with_context(|| format!("writing {}", file.display()))?;
            }
            Err(error) => return Err(error).with_context(|| format!("reading {}", file.display())),
        }
    }
    for row in memory.personas().list(None)? {
        import_picture(memory, &folder, &row)?;
    }
    Ok(())
}

/// Stores the picture that a persona names, if the folder has it and the record has another one.
fn import_picture(memory: &Memory, folder: &Path, row: &PersonaRow) -> anyhow::Result<()> {
    let named = azera_personas::parse(&row.markdown).ok().and_then(|persona| persona.avatar);
    // A URL is for platforms that fetch pictures themselves.
    let Some(name) = named.filter(|name| !name.contains("://")) else { return Ok(()) };
    let file = folder.join(&name);
    match std::fs::metadata(&file) {
        Ok(found) if found.len() > MAX_PICTURE_BYTES as u64 => {
            tracing::warn!(persona = %row.id, name, "the persona's picture is too large; ignoring it");
            return Ok(());
        }
        Ok(_) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error).with_context(|| format!("reading {}", file.display())),
    }
    let bytes = std::fs::read(&file).with_context(|| format!("reading {}", file.display()))?;
    if media_type(&bytes).is_none() {
        tracing::warn!(persona = %row.id, name, "the persona's picture has an unknown format; ignoring it");
        return Ok(());
    }
    let (picture, identity) = (STANDARD.encode(bytes), row.identity());
    if memory.personas().picture(&identity)?.as_ref() != Some(&picture) {
        memory.personas().set_picture(&identity, &picture)?;
    }
    Ok(())
}

/// Returns a picture's media type, by its first bytes.
pub fn media_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

fn import_changed_file(
    memory: &Memory,
    row: &PersonaRow,
    bytes: &[u8],
    now: azera_types::Timestamp,
) -> anyhow::Result<()> {
    let (id, stored_markdown) = (&row.id, &row.markdown);
    let checked = azera_personas::check_bytes(bytes);
    match checked.persona {
        Some(persona) if persona.id.as_str() == id.as_str() => {
            let markdown = persona.to_markdown();
            if markdown != *stored_markdown {
                tracing::info!(persona = %id, "the persona's file changed: storing a new version");
                let new = NewPersona {
                    id: id.clone(),
                    owner: None,
                    markdown: Some(markdown),
                    card: row.card.clone(),
                    added_by: None,
                };
                memory.personas().put(new, now)?;
            }
        }
        Some(persona) => {
            tracing::warn!(persona = %id, file_says = %persona.id.as_str(), "the persona's file names another id; ignoring it");
        }
        None => {
            for problem in checked.problems {
                tracing::warn!(persona = %id, %problem, "the persona's file has a mistake; using the last version");
            }
        }
    }
    Ok(())
}
