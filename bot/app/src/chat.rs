//! `azera chat`.

use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use azera_adapter_console::{CommandHint, Console, FIRST_CHAT, Format, Input, Options, Person, chat_id, run as talk};
use azera_chat::COMMANDS;
use azera_config::Config;
use azera_ledger::Kind;
use azera_memory::Right;
use azera_types::{PersonaId, Place, PlaceKind, Reach, SystemClock};

use crate::cli::ChatOptions;
use crate::house::{self, Answers, House, Opening};
use crate::{servers, stores};

pub async fn run(config: &Config, options: ChatOptions) -> anyhow::Result<ExitCode> {
    let interactive = std::io::stdin().is_terminal() && std::io::stdout().is_terminal() && !options.json;
    let clock = Arc::new(SystemClock);
    let person = Person::new(&options.name).context("--as")?;
    let persona = options.persona.as_deref().map(PersonaId::new).transpose().context("--persona")?;
    let answers = options.model.map_or(Answers::Chosen, |name| Answers::named(&name));
    let house =
        house::open(config, Opening { answers, clock: clock.clone(), seed: options.seed, on_trial: false }).await?;
    if let Some(persona) = &persona {
        house
            .memory
            .persona(None, persona)?
            .with_context(|| format!("there is no persona {persona}; `azera persona list` names them"))?;
    }
    let colour = config.colour();
    let format = if options.json {
        Format::Json
    } else if interactive {
        Format::Terminal { colour }
    } else {
        Format::Plain
    };
    let (out, err) = (Box::new(std::io::stdout()), Box::new(std::io::stderr()));
    let console = Arc::new(Console::new(person.clone(), format, out, err, clock)?);
    house.azera.attach(console.clone());
    house.azera.start().await?;
    let options = Options {
        banner: banner(config, &house)?,
        commands: COMMANDS
            .iter()
            .map(|command| CommandHint {
                name: command.name.to_owned(),
                args: command.arguments(),
                help: command.help.to_owned(),
            })
            .collect(),
        persona_name: name_of(&house, persona.as_ref().unwrap_or(&PersonaId::new(&config.chat.persona)?))?,
        earlier: earlier(&house, &person, config)?,
        persona,
        ..Options::default()
    };
    let input = if interactive {
        Input::Terminal { colour }
    } else {
        Input::Lines(Box::new(tokio::io::BufReader::new(tokio::io::stdin())))
    };
    let summary = talk(&console, &house.azera, options, input).await;
    house.azera.stop().await;
    let summary = summary?;
    Ok(if summary.failed > 0 && !interactive { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Inputs an arrow key calls back.
const EARLIER: usize = 200;

fn name_of(house: &House, persona: &PersonaId) -> anyhow::Result<Option<String>> {
    let row = house.memory.persona(None, persona)?;
    Ok(row.and_then(|row| azera_personas::parse(&row.markdown).ok()).map(|persona| persona.name))
}

/// What the person typed in this chat before, read from the record with their own right.
fn earlier(house: &House, person: &Person, config: &Config) -> anyhow::Result<Vec<String>> {
    let chat = chat_id(&person.id, FIRST_CHAT)?;
    let place = Place { chat: chat.clone(), kind: PlaceKind::Dm(person.id.clone()), since: None };
    let right = Right::in_place(PersonaId::new(&config.chat.persona)?, &place, &Reach::default());
    let history = house.memory.history(&right, &chat, EARLIER)?;
    let own = history.into_iter().filter(|row| row.author.person() == Some(&person.id));
    Ok(own.map(|row| row.text.as_str().to_owned()).collect())
}

/// Which model runs, where everything lies, and how to get something better.
fn banner(config: &Config, house: &House) -> anyhow::Result<Vec<String>> {
    let info = house.model.info();
    let mut lines = vec![
        format!("Azera, on the model {}. I am an AI; {}.", info.name, whereabouts(config, house)),
        "/help lists what there is besides talking; /quit leaves.".to_owned(),
    ];
    let models = house::models(config)?;
    let machine = azera_ledger::Machine { ram_bytes: crate::doctor::ram_bytes().unwrap_or(0), gpu_bytes: None };
    let ledger = models.ledger()?;
    if let Some(better) = ledger
        .recommend(Kind::Chat, machine)
        .filter(|better| ledger.get(&info.name).is_some_and(|present| better.parameters > present.parameters))
    {
        lines.push(format!(
            "This machine can run a better one: `azera models pull {0} && azera models use {0}` ({1} MB).",
            better.name, better.download_mib
        ));
    }
    Ok(lines)
}

/// Where what is said is kept, and where it is sent.
fn whereabouts(config: &Config, house: &House) -> String {
    let servers = [Kind::Chat, Kind::Embedding].into_iter().filter_map(|kind| servers::configured(config, kind));
    let mut urls: Vec<String> = servers.map(|server| server.url).collect();
    urls.dedup();
    let data = house.data.display();
    let vectors = match stores::addresses(config).as_slice() {
        [] => String::new(),
        stores => format!("; vectors, from which much of it can be guessed, are sent to {}", stores.join(" and ")),
    };
    match urls.as_slice() {
        [] if vectors.is_empty() => format!("what you say stays in {data}"),
        [] => format!("what you say is kept in {data}{vectors}"),
        urls => format!("what you say is kept in {data} and sent to {}{vectors}", urls.join(" and ")),
    }
}
