//! What this machine offers to a model, and the chat model that suits it.

use std::io::{BufRead, IsTerminal, Write};
use std::process::Command;

use azera_config::Config;
use azera_model_registry::{Kind, Machine, ModelEntry, Models, Registry};

use crate::bootstrap::{installed, models};
use crate::servers::configured;

/// Measures this machine. What cannot be read counts as nothing.
pub fn machine() -> Machine {
    Machine {
        ram_bytes: memory("MemTotal:").unwrap_or(0),
        free_bytes: memory("MemAvailable:").unwrap_or(0),
        cores: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
        gpu_bytes: gpu_bytes(),
    }
}

/// Returns this machine's main memory in bytes.
pub fn ram_bytes() -> Option<u64> {
    memory("MemTotal:")
}

fn memory(key: &str) -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find(|line| line.starts_with(key))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kib| kib * 1024)
}

/// Returns the memory of the largest NVIDIA GPU, if this build can use one.
fn gpu_bytes() -> Option<u64> {
    if !cfg!(feature = "cuda") {
        return None;
    }
    let query = ["--query-gpu=memory.total", "--format=csv,noheader,nounits"];
    let output = Command::new("nvidia-smi").args(query).output().ok().filter(|output| output.status.success())?;
    let text = String::from_utf8(output.stdout).ok()?;
    text.lines().filter_map(|line| line.trim().parse::<u64>().ok()).max().map(|mib| mib << 20)
}

/// The most models that a person is asked about.
const MAX_ASKED: usize = 6;

/// Chooses the chat model of a first pull. A person at a terminal is asked. Otherwise it says that it chooses the small
/// default. `None` if somebody chose a model before.
pub async fn first_choice(config: &Config, models: &Models) -> anyhow::Result<Option<String>> {
    let Some(default) = unchosen(config, models)? else { return Ok(None) };
    if !is_somebody_there(config) {
        eprintln!("choosing {}, because nobody is at a terminal; `azera models recommend` shows others", default.name);
        return Ok(Some(default.name));
    }
    ask(models, default).await.map(Some)
}

/// Asks a person at a terminal which chat model to use, if nobody chose one and the default is not here, and fetches it.
///
/// For commands that talk in the terminal alone. A service may have a terminal where nobody answers, and whoever stops it
/// there waits for no answer.
pub async fn choose_at_first_start(config: &Config) -> anyhow::Result<()> {
    if !is_somebody_there(config) || configured(config, Kind::Chat).is_some() {
        return Ok(());
    }
    let models = models(config)?;
    let Some(default) = unchosen(config, &models)? else { return Ok(()) };
    let name = ask(&models, default.clone()).await?;
    installed(&models, &name).await?;
    // The default needs no choice.
    if name != default.name {
        models.select(&name)?;
    }
    Ok(())
}

/// Returns the small default, if nobody chose a chat model and the default is not here.
fn unchosen(config: &Config, models: &Models) -> anyhow::Result<Option<ModelEntry>> {
    if config.models.chat.is_some() || models.is_chosen(Kind::Chat)? {
        return Ok(None);
    }
    let default = models.registry()?.default_of(Kind::Chat).cloned();
    Ok(match default {
        Some(default) if models.find(&default.name)?.is_none() => Some(default),
        _ => None,
    })
}

/// Returns true if a person can answer a question.
fn is_somebody_there(config: &Config) -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal() && !config.in_ci()
}

/// Asks which chat model to fetch, unless only the small default can be had. Returns its name.
async fn ask(models: &Models, default: ModelEntry) -> anyhow::Result<String> {
    let (registry, machine) = (models.registry()?, machine());
    let Some(choice) = registry.choose(machine) else { return Ok(default.name) };
    if choice.entry.name != default.name && !models.hub_has(&choice.entry).await {
        eprintln!(
            "choosing {}, because the model hub cannot be reached; {} would run here",
            default.name, choice.entry.name
        );
        return Ok(default.name);
    }
    eprintln!("{} suits this machine, because {}", choice.entry.name, choice.reason);
    let offered = offered(&registry, &choice.entry, &default, machine);
    let chosen = ask_which(&offered, &mut std::io::stdin().lock(), &mut std::io::stderr())?;
    Ok(chosen.unwrap_or(&default).name.clone())
}

/// Returns the models to ask about: the one that suits the machine, the small default, and others that run well.
fn offered<'a>(
    registry: &'a Registry,
    choice: &'a ModelEntry,
    default: &'a ModelEntry,
    machine: Machine,
) -> Vec<&'a ModelEntry> {
    let mut offered = vec![choice];
    let mut others: Vec<&ModelEntry> = registry.entries().iter().filter(|entry| entry.kind == Kind::Chat).collect();
    others.retain(|entry| !entry.sources.is_empty() && Registry::runs_well(entry, machine));
    // Those that were tried come first.
    others.sort_by_key(|entry| (!entry.talks, entry.parameters));
    for entry in std::iter::once(default).chain(others) {
        if offered.iter().all(|known| known.name != entry.name) {
            offered.push(entry);
        }
    }
    offered.truncate(MAX_ASKED);
    offered
}

/// Asks which of these models to fetch. An empty line takes the first. `None` at the end of the input.
fn ask_which<'a>(
    offered: &[&'a ModelEntry],
    input: &mut dyn BufRead,
    out: &mut dyn Write,
) -> std::io::Result<Option<&'a ModelEntry>> {
    writeln!(out, "Which model should answer? It is fetched once; `azera models use NAME` changes it later.")?;
    for (number, entry) in (1..).zip(offered) {
        let (download, memory) = (entry.download_mib, entry.ram_mib);
        writeln!(
            out,
            "  {number}  {:<20} {download:>5} MB to fetch, {memory:>5} MB of memory. {}",
            entry.name, entry.description
        )?;
    }
    loop {
        write!(out, "A number or a name, or Enter for 1: ")?;
        out.flush()?;
        let mut answer = String::new();
        if input.read_line(&mut answer)? == 0 {
            return Ok(None);
        }
        let answer = answer.trim().to_lowercase();
        let is_meant = |number: usize, entry: &ModelEntry| match answer.as_str() {
            "" => number == 1,
            answer => answer == entry.name || answer == number.to_string(),
        };
        if let Some((_, entry)) = (1..).zip(offered).find(|(number, entry)| is_meant(*number, entry)) {
            return Ok(Some(entry));
        }
        writeln!(out, "There is no {answer:?} in this list. `azera models recommend` shows every model.")?;
    }
}

/// Prints the chat models with what each needs, and the one that suits this machine.
pub fn recommend(models: &Models) -> anyhow::Result<()> {
    let (registry, machine) = (models.registry()?, machine());
    let gpu = machine
        .gpu_bytes
        .map_or_else(|| "no GPU that this build can use".to_owned(), |bytes| format!("a GPU with {} MB", bytes >> 20));
    println!(
        "this machine: {} MB of memory, {} MB free, {} cores, {gpu}",
        machine.ram_bytes >> 20,
        machine.free_bytes >> 20,
        machine.cores
    );
    println!("{:<22} {:>9} {:>9}  {:<16} about", "model", "memory", "download", "here");
    for entry in registry.entries().iter().filter(|entry| entry.kind == Kind::Chat) {
        let here = if Registry::runs_well(entry, machine) { "runs well" } else { "too large" };
        println!(
            "{:<22} {:>6} MB {:>6} MB  {here:<16} {}",
            entry.name, entry.ram_mib, entry.download_mib, entry.description
        );
    }
    if let Some(choice) = registry.choose(machine) {
        println!("recommended: {}, because {}", choice.entry.name, choice.reason);
        println!("azera models pull {0} && azera models use {0}", choice.entry.name);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(registry: &Registry, machine: Machine) -> Vec<&ModelEntry> {
        let default = registry.default_of(Kind::Chat).unwrap();
        let choice = registry.choose(machine).unwrap().entry;
        let choice = registry.get(&choice.name).unwrap();
        offered(registry, choice, default, machine)
    }

    #[test]
    fn the_first_start_asks_with_the_model_that_suits_first_and_enter_takes_it() {
        let registry = Registry::built_in().unwrap();
        let bytes = 16 << 30;
        let machine = Machine { ram_bytes: bytes, free_bytes: bytes, cores: 8, gpu_bytes: None };
        let offered = first(&registry, machine);
        let names: Vec<&str> = offered.iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(names[..2], ["qwen2.5-coder-1.5b", "smollm2-135m"]);
        assert!(names.len() > 2 && names.len() <= MAX_ASKED, "{names:?}");
        let check = |answer: &str, want: Option<&str>| {
            let mut out = Vec::new();
            let chosen = ask_which(&offered, &mut answer.as_bytes(), &mut out).unwrap();
            assert_eq!(chosen.map(|entry| entry.name.as_str()), want, "{answer:?}");
            String::from_utf8(out).unwrap()
        };
        let asked = check("\n", Some("qwen2.5-coder-1.5b"));
        assert!(asked.contains("1066 MB to fetch") && asked.contains("MB of memory"), "{asked}");
        check("2\n", Some("smollm2-135m"));
        check(" SmolLM2-135m \n", Some("smollm2-135m"));
        let asked = check("99\nwhat?\n1\n", Some("qwen2.5-coder-1.5b"));
        assert!(asked.contains("no \"99\"") && asked.contains("no \"what?\""), "{asked}");
        check("", None);
        check("nonsense\n", None);
    }

    #[test]
    fn a_small_machine_is_offered_the_small_model_first() {
        let registry = Registry::built_in().unwrap();
        let machine = Machine { ram_bytes: 2 << 30, free_bytes: 1 << 30, cores: 1, gpu_bytes: None };
        let offered = first(&registry, machine);
        assert_eq!(offered[0].name, "smollm2-135m");
        assert_eq!(offered.iter().filter(|entry| entry.name == "smollm2-135m").count(), 1);
    }

    #[test]
    fn this_machine_has_memory_and_cores() {
        let machine = machine();
        assert!(machine.ram_bytes >= machine.free_bytes && machine.free_bytes > 0 && machine.cores > 0, "{machine:?}");
    }
}
