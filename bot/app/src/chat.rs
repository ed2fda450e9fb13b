//! `azera chat`: talks in the terminal, or answers piped lines.

use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use azera_adapter_console::{
    Console, FIRST_CHAT, Format, Input, Options, Person, TerminalNames, chat_id, detect, run as talk,
};
use azera_config::{Config, TerminalHints};
use azera_engine::COMMANDS;
use azera_memory::ReadScope;
use azera_model_registry::{Kind, Machine, Registry};
use azera_types::{PersonaId, Place, PlaceKind, ReadableScopes, SystemClock};

use crate::bootstrap::{self, App, BootstrapOptions, ModelChoice};
use crate::cli::ChatOptions;
use crate::{catch_up, chosen, servers, speech, stores};

pub async fn run(config: &Config, options: ChatOptions) -> anyhow::Result<ExitCode> {
    let interactive = std::io::stdin().is_terminal() && std::io::stdout().is_terminal() && !options.json;
    let clock = Arc::new(SystemClock);
    let per = options.message_per.into();
    let person = Person::new(&options.name).context("the name in --as cannot be used")?;
    let persona = options.persona.as_deref().map(PersonaId::new).transpose().context("--persona")?;
    let answers = options.model.map_or(ModelChoice::Chosen, |name| ModelChoice::named(&name));
    if matches!(answers, ModelChoice::Chosen) {
        // Nothing listens for signals yet: Ctrl-C ends the question.
        crate::machine::choose_at_first_start(config).await?;
    }
    let app = bootstrap::open(
        config,
        BootstrapOptions { answers, clock: clock.clone(), seed: options.seed, on_trial: false },
    )
    .await?;
    if let Some(persona) = &persona {
        app.memory
            .personas()
            .get(None, persona)?
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
    if interactive && config.images.in_terminal {
        let TerminalHints { term, program, is_multiplexed } = config.terminal().clone();
        let names = TerminalNames { term, program, is_multiplexed };
        if let Some(inline) = detect(&names).await {
            console.show_pictures(inline);
        }
    }
    app.engine.attach(console.clone());
    speech::keep_samples(&app.engine, config)?;
    catch_up::prepare(&app).await;
    app.engine.start().await?;
    let options = Options {
        banner: banner(config, &app)?,
        commands: COMMANDS,
        persona_name: name_of(&app, persona.as_ref().unwrap_or(&PersonaId::new(&config.chat.persona)?))?,
        earlier: earlier(&app, &person, config)?,
        persona,
        ..Options::default()
    };
    let input = if interactive {
        Input::Terminal { colour }
    } else {
        Input::Pipe { from: Box::new(tokio::io::BufReader::new(tokio::io::stdin())), per }
    };
    let summary = talk(&console, &app.engine, options, input).await;
    if !interactive {
        // A pipe ends with its last line, and what that asked for is still to come.
        app.engine.draw_waiting().await;
    }
    app.engine.stop().await;
    let summary = summary?;
    Ok(if summary.failed > 0 && !interactive { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Number of earlier inputs that the arrow keys bring back.
const MAX_EARLIER_INPUTS: usize = 200;

fn name_of(app: &App, persona: &PersonaId) -> anyhow::Result<Option<String>> {
    let row = app.memory.personas().get(None, persona)?;
    Ok(row.and_then(|row| azera_personas::parse(&row.markdown).ok()).map(|persona| persona.name))
}

/// Returns the person's earlier inputs in this chat, read with their own read scope.
fn earlier(app: &App, person: &Person, config: &Config) -> anyhow::Result<Vec<String>> {
    let chat = chat_id(&person.id, FIRST_CHAT)?;
    let place = Place { chat: chat.clone(), kind: PlaceKind::Dm(person.id.clone()), since: None };
    let read_scope = ReadScope::in_place(PersonaId::new(&config.chat.persona)?, &place, &ReadableScopes::default());
    let history = app.memory.messages().history(&read_scope, &chat, MAX_EARLIER_INPUTS)?;
    let own = history.into_iter().filter(|row| row.author.person() == Some(&person.id));
    Ok(own.map(|row| row.text.as_str().to_owned()).collect())
}

/// Returns the greeting: the model, where the data stays, what one can do, and a larger model if the machine can run one.
fn banner(config: &Config, app: &App) -> anyhow::Result<Vec<String>> {
    let info = app.model.info();
    let mut lines = vec![
        format!("Azera, on the model {}. I am an AI; {}.", info.name, data_location(config, app)),
        "Tell me something and ask for it later, also in another chat (/new). /why shows the memories behind a reply, /forget \
         removes them for good."
            .to_owned(),
        "/persona list shows who can answer here; /persona use areza brings a Dungeon Master.".to_owned(),
    ];
    let models = bootstrap::models(config)?;
    lines.extend(about_model(&models.registry()?, &info.name, crate::machine::machine()));
    lines.extend(chosen::role_left_out(config, info));
    lines.push("/help lists all commands; /quit leaves.".to_owned());
    Ok(lines)
}

/// Says what the model can do, and which larger one this machine can run. That is the one that a first pull would
/// choose: nobody is sent from a model that was tried to a slower one that was not.
fn about_model(registry: &Registry, name: &str, machine: Machine) -> Option<String> {
    let present = registry.get(name)?;
    let mut line = format!("{name}: {}", present.description);
    let chosen = registry.choose(machine).map(|choice| choice.entry);
    if let Some(better) = chosen.filter(|better| better.parameters > present.parameters) {
        line.push_str(&format!(
            " This machine can run a larger model, {0}: {1} `azera models pull {0} && azera models use {0}` fetches {2} MB.",
            better.name, better.description, better.download_mib
        ));
    }
    Some(line)
}

/// Describes where Azera stores messages and which servers it sends them to.
fn data_location(config: &Config, app: &App) -> String {
    let servers = [Kind::Chat, Kind::Embedding].into_iter().filter_map(|kind| servers::configured(config, kind));
    let mut urls: Vec<String> = servers.map(|server| server.url).collect();
    urls.dedup();
    let data = app.data.display();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_greeting_names_what_a_larger_model_would_give() {
        const GIB: u64 = 1 << 30;
        let registry = Registry::built_in().unwrap();
        let machine = |gib: u64| Machine { ram_bytes: gib * GIB, free_bytes: gib * GIB, cores: 2, gpu_bytes: None };
        let small = about_model(&registry, "smollm2-135m", machine(1)).unwrap();
        assert!(small.starts_with("smollm2-135m: Runs on anything") && !small.contains("larger"), "{small}");
        let roomy = about_model(&registry, "smollm2-135m", machine(8)).unwrap();
        assert!(roomy.contains("a larger model, qwen2.5-coder-1.5b: ") && roomy.contains("1066 MB"), "{roomy}");
        for gib in [4, 8, 16, 64] {
            let talking = about_model(&registry, "qwen2.5-coder-1.5b", machine(gib)).unwrap();
            assert!(!talking.contains("larger"), "{talking}");
        }
        let with_gpu = Machine { gpu_bytes: Some(8 * GIB), ..machine(16) };
        let on_gpu = about_model(&registry, "qwen2.5-coder-1.5b", with_gpu).unwrap();
        assert!(on_gpu.contains("a larger model, qwen3-8b: "), "{on_gpu}");
        assert_eq!(about_model(&registry, "a model of my own", machine(8)), None);
    }
}
