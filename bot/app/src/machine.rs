//! What this machine offers to a model, and the chat model that suits it.

use std::io::{BufRead, IsTerminal, Write};
use std::process::Command;

use azera_config::Config;
use azera_model_registry::{Kind, Machine, ModelEntry, Models, Registry};

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

/// Chooses the chat model of a first pull, says why, and asks before a large download. Without a terminal, and in CI,
/// it asks nothing and chooses the small default. `None` if somebody chose a model before.
pub async fn first_choice(config: &Config, models: &Models) -> anyhow::Result<Option<String>> {
    if config.models.chat.is_some() || models.is_chosen(Kind::Chat)? {
        return Ok(None);
    }
    let registry = models.registry()?;
    let Some(default) = registry.default_of(Kind::Chat) else { return Ok(None) };
    if models.find(&default.name)?.is_some() {
        return Ok(None);
    }
    let default = default.clone();
    let is_terminal = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    if !is_terminal || config.in_ci() {
        eprintln!("choosing {}, because nobody is at a terminal; `azera models recommend` shows others", default.name);
        return Ok(Some(default.name));
    }
    let Some(choice) = registry.choose(machine()) else { return Ok(None) };
    if choice.entry.name == default.name {
        eprintln!("choosing {}, because {}", default.name, choice.reason);
        return Ok(Some(default.name));
    }
    if !models.hub_has(&choice.entry).await {
        eprintln!(
            "choosing {}, because the model hub cannot be reached; {} would run here",
            default.name, choice.entry.name
        );
        return Ok(Some(default.name));
    }
    eprintln!("{} suits this machine, because {}", choice.entry.name, choice.reason);
    let larger = ask_for(&choice.entry, &default, &mut std::io::stdin().lock(), &mut std::io::stderr())?;
    Ok(Some(if larger { choice.entry.name } else { default.name }))
}

/// Asks whether to fetch the larger model. An empty line means yes; the end of the input means no.
fn ask_for(
    larger: &ModelEntry,
    small: &ModelEntry,
    input: &mut dyn BufRead,
    out: &mut dyn Write,
) -> std::io::Result<bool> {
    write!(
        out,
        "fetch it ({} MB)? [Y/n] n fetches {} ({} MB), which remembers but cannot hold a conversation: ",
        larger.download_mib, small.name, small.download_mib
    )?;
    out.flush()?;
    let mut answer = String::new();
    if input.read_line(&mut answer)? == 0 {
        return Ok(false);
    }
    Ok(matches!(answer.trim().to_lowercase().as_str(), "" | "y" | "yes"))
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

    #[test]
    fn a_large_download_needs_a_yes() {
        let registry = Registry::built_in().unwrap();
        let (large, small) = (registry.get("qwen2.5-coder-1.5b").unwrap(), registry.get("smollm2-135m").unwrap());
        let check = |answer: &str, want: bool| {
            let mut out = Vec::new();
            assert_eq!(ask_for(large, small, &mut answer.as_bytes(), &mut out).unwrap(), want, "{answer:?}");
            assert!(String::from_utf8(out).unwrap().contains("1066 MB"));
        };
        check("\n", true);
        check("Yes\n", true);
        check("n\n", false);
        check("what?\n", false);
        check("", false);
    }

    #[test]
    fn this_machine_has_memory_and_cores() {
        let machine = machine();
        assert!(machine.ram_bytes >= machine.free_bytes && machine.free_bytes > 0 && machine.cores > 0, "{machine:?}");
    }
}
