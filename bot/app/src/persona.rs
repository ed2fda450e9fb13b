//! `azera persona`.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, bail};
use azera_config::Config;
use azera_ledger::Kind;
use azera_memory::{Memory, NewPersona};
use azera_personas::{CardData, CardSpec, Persona, Severity};
use azera_types::{Clock, PersonaId, SystemClock};

use crate::cli::PersonaCommand;
use crate::house;

pub async fn run(config: &Config, command: PersonaCommand) -> anyhow::Result<ExitCode> {
    // What needs no record works without one.
    match &command {
        PersonaCommand::Template { name } => {
            print!("{}", azera_personas::template(name));
            return Ok(ExitCode::SUCCESS);
        }
        PersonaCommand::Add { file, check: true } => {
            let persona = read(file)?;
            print!("{}", persona.to_markdown());
            return Ok(ExitCode::SUCCESS);
        }
        _ => {}
    }
    let data = config.data_dir()?;
    let models = house::models(config)?;
    let embedding = house::installed(&models, &house::chosen(config, &models, Kind::Embedding)?).await?;
    let memory = house::open_memory(config, &data, &house::embedder_info(config, &embedding)?)?;
    house::bring_personas(&memory, &data, &SystemClock)?;
    match command {
        PersonaCommand::List => list(&memory)?,
        PersonaCommand::Show { id } => print!("{}", known(&memory, &id)?.to_markdown()),
        PersonaCommand::Add { file, .. } => add(&memory, &data, &file)?,
        PersonaCommand::Remove { id } => remove(&memory, &data, &id)?,
        PersonaCommand::Export { id, card } => {
            let persona = known(&memory, &id)?;
            if card {
                let card = azera_personas::to_card(&persona, &CardData::default(), CardSpec::V3);
                println!("{}", serde_json::to_string_pretty(&card)?);
            } else {
                print!("{}", persona.to_markdown());
            }
        }
        PersonaCommand::Template { .. } => {}
    }
    Ok(ExitCode::SUCCESS)
}

fn list(memory: &Memory) -> anyhow::Result<()> {
    for row in memory.personas(None)? {
        let Ok(persona) = azera_personas::parse(&row.markdown) else {
            println!("{:<20} its file has mistakes; `azera persona show {}`", row.id, row.id);
            continue;
        };
        let intent = persona.intent.lines().next().unwrap_or_default();
        println!("{:<20} {:<10} version {:<3} {intent}", row.id, persona.kind.as_str(), row.version);
    }
    Ok(())
}

fn known(memory: &Memory, id: &str) -> anyhow::Result<Persona> {
    let id = PersonaId::new(id)?;
    let row = memory.persona(None, &id)?;
    let row = row.with_context(|| format!("there is no persona {id}; `azera persona list` names them"))?;
    azera_personas::parse(&row.markdown).map_err(|problems| {
        let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
        anyhow::anyhow!("the file of {id} has mistakes:\n{}", lines.join("\n"))
    })
}

/// Reads a persona from a markdown file or a character card, and says what is wrong or was changed on the way.
fn read(file: &Path) -> anyhow::Result<Persona> {
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
        return Ok(card.persona);
    }
    let checked = azera_personas::check_bytes(&bytes);
    for problem in &checked.problems {
        eprintln!("{}:{problem}", file.display());
    }
    let errors = checked.problems.iter().filter(|problem| problem.severity == Severity::Error).count();
    checked.persona.with_context(|| format!("{}: {errors} mistakes, see above", file.display()))
}

fn add(memory: &Memory, data: &Path, file: &Path) -> anyhow::Result<()> {
    let persona = read(file)?;
    let id = PersonaId::new(persona.id.as_str())?;
    let markdown = persona.to_markdown();
    let new = NewPersona { id: id.clone(), owner: None, markdown: Some(markdown.clone()), added_by: None };
    let row = memory.put_persona(new, SystemClock.now())?;
    let path = data.join("personas").join(format!("{id}.md"));
    std::fs::write(&path, markdown).with_context(|| format!("writing {}", path.display()))?;
    println!("{} is here as `{id}`, version {}; `/persona use {id}` in a chat brings it in", persona.name, row.version);
    Ok(())
}

fn remove(memory: &Memory, data: &Path, id: &str) -> anyhow::Result<()> {
    let id = PersonaId::new(id)?;
    memory.persona(None, &id)?.with_context(|| format!("there is no persona {id}"))?;
    memory.put_persona(NewPersona { id: id.clone(), owner: None, markdown: None, added_by: None }, SystemClock.now())?;
    let path = data.join("personas").join(format!("{id}.md"));
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(error).with_context(|| format!("removing {}", path.display()));
        }
        _ => {}
    }
    println!("{id} is removed. What it remembers stays until it is forgotten.");
    Ok(())
}
