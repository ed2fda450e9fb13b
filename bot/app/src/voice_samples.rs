//! `azera voice samples`: recordings of voices for an XTTS server.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, bail};
use azera_config::{Config, SpeechApi};
use azera_voice_api::CLONE_MARK;
use azera_voice_samples::{GivenSample, MAX_SAMPLE_BYTES, prepare};

use crate::bootstrap::now_text;
use crate::cli::SamplesCommand;
use crate::memory::stores;
use crate::speech_servers::samples;
use crate::voice_clones::Clones;

pub async fn run(config: &Config, command: SamplesCommand) -> anyhow::Result<ExitCode> {
    let folder = samples(config)?;
    match command {
        SamplesCommand::Add { file, name, consent } => {
            let bytes = read(&file).with_context(|| file.display().to_string())?;
            let sample = prepare(bytes).with_context(|| file.display().to_string())?;
            let stored = folder.add(&name, &consent, &sample, &now_text())?;
            println!("{}: {:.1} s, loudness {:.0} LUFS before", stored.name, stored.seconds, sample.recorded_lufs);
            if config.speech_server.api != SpeechApi::Xtts {
                println!("Only an XTTS server speaks with it: see [speech_server] in the configuration.");
            }
        }
        SamplesCommand::List => {
            let listed = folder.list()?;
            let clones = Clones::of(&config.data_dir()?);
            let given = clones.given().list()?;
            if listed.is_empty() && given.is_empty() {
                println!("There is no sample yet; `azera voice samples add` adds one.");
            }
            for sample in listed {
                println!("{:<20} {:>5.1} s  {}  {}", sample.name, sample.seconds, sample.added_at, sample.consent);
            }
            // Nobody sees what the person whose voice it is has not agreed to.
            for (id, sample) in given {
                if let Some(agreed_at) = sample.agreed_at {
                    let GivenSample { name, seconds, whose, .. } = sample;
                    println!("{CLONE_MARK}{id:<19} {seconds:>5.1} s  {agreed_at}  {name}: {whose} agreed in a chat");
                }
            }
        }
        SamplesCommand::Remove { name } => {
            match name.strip_prefix(CLONE_MARK) {
                Some(given) => {
                    Clones::of(&config.data_dir()?).given().remove(given)?;
                    drop_from_chats(config, &name).await;
                }
                None => folder.remove(&name)?,
            }
            println!("{name} is removed. A server that cloned the voice forgets it when it is restarted.");
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Lets no chat name a voice that is gone. A running Azera, which alone can write its record, does so itself when it would
/// speak with that voice next.
async fn drop_from_chats(config: &Config, voice: &str) {
    let dropped = match stores(config).await {
        Ok(stores) => stores.memory.chats().drop_voice(voice).map(drop).map_err(anyhow::Error::from),
        Err(error) => Err(error),
    };
    if let Err(error) = dropped {
        eprintln!("A chat may still name {voice} until it would speak there next: {error:#}");
    }
}

/// Reads a file of at most the size of a sample.
fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    let metadata = std::fs::metadata(path)?;
    if !metadata.is_file() {
        bail!("it is no file");
    }
    if metadata.len() > MAX_SAMPLE_BYTES as u64 {
        bail!("it has {} MB; a sample has at most {} MB", metadata.len() >> 20, MAX_SAMPLE_BYTES >> 20);
    }
    Ok(std::fs::read(path)?)
}
