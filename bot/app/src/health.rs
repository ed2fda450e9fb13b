//! Health of a running bot: `azera run` writes a heartbeat, and `azera health` reads it.
//!
//! A heartbeat is written only after a read of the record, on the threads that turns use. So a process that hangs stops
//! writing it, even though the process is still there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use azera_config::Config;
use azera_memory::Memory;
use azera_types::{Clock, SystemClock, Timestamp};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// The file in the data folder: the process id and the time, each on a line.
const HEARTBEAT: &str = "alive";

/// Time between two heartbeats.
const EVERY: Duration = Duration::from_secs(15);

/// Age from which the last heartbeat says that the bot hangs or is gone. Four of them may be late under load.
const TOO_OLD_S: i64 = 60;

fn heartbeat(data: &Path) -> PathBuf {
    data.join(HEARTBEAT)
}

/// Writes the first heartbeat, then further ones in a task until `stop` is cancelled. The task removes the file.
pub async fn start(data: PathBuf, memory: Arc<Memory>, stop: CancellationToken) -> JoinHandle<()> {
    beat(&data, &memory).await;
    tokio::spawn(async move {
        loop {
            tokio::select! {
                () = stop.cancelled() => break,
                () = tokio::time::sleep(EVERY) => beat(&data, &memory).await,
            }
        }
        if let Err(error) = fs::remove_file(heartbeat(&data)) {
            tracing::debug!(%error, "there is no heartbeat to remove");
        }
    })
}

/// Writes a heartbeat, if the record can be read.
async fn beat(data: &Path, memory: &Arc<Memory>) {
    let (path, memory) = (heartbeat(data), memory.clone());
    let written = tokio::task::spawn_blocking(move || {
        memory.indexing().queued()?;
        write(&path, SystemClock.now())
    });
    match written.await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::warn!("cannot write a heartbeat: {error:#}"),
        Err(error) => tracing::warn!(%error, "cannot write a heartbeat"),
    }
}

/// Writes the heartbeat through a second file, so that a reader never sees half of it.
fn write(path: &Path, now: Timestamp) -> anyhow::Result<()> {
    let new = path.with_extension("new");
    fs::write(&new, format!("{}\n{now}\n", std::process::id()))?;
    fs::rename(&new, path).with_context(|| format!("writing {}", path.display()))
}

/// What the last heartbeat says.
#[derive(Debug, PartialEq, Eq)]
enum Health {
    Alive { process: String, seconds: i64 },
    Silent { process: String, seconds: i64 },
    Unknown,
}

fn read(text: &str, now: Timestamp) -> Health {
    let mut lines = text.lines();
    let (Some(process), Some(Ok(at))) = (lines.next(), lines.next().map(str::parse::<Timestamp>)) else {
        return Health::Unknown;
    };
    let (process, seconds) = (process.to_owned(), now.duration_since(at).as_secs());
    if seconds.abs() <= TOO_OLD_S { Health::Alive { process, seconds } } else { Health::Silent { process, seconds } }
}

/// `azera health`: succeeds if `azera run` works in the data folder and answers.
pub fn run(config: &Config) -> anyhow::Result<ExitCode> {
    let data = config.data_dir()?;
    let health = fs::read_to_string(heartbeat(&data)).map_or(Health::Unknown, |text| read(&text, SystemClock.now()));
    Ok(match health {
        Health::Alive { process, seconds } => {
            println!("Azera runs (process {process}). Its last heartbeat is {seconds} s old.");
            ExitCode::SUCCESS
        }
        Health::Silent { process, seconds } => {
            eprintln!(
                "azera: process {process} wrote its last heartbeat {seconds} s ago. It hangs, or it was killed. Restart it."
            );
            ExitCode::FAILURE
        }
        Health::Unknown => {
            eprintln!("azera: no `azera run` works in {}.", data.display());
            ExitCode::FAILURE
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_heartbeat_is_read_and_grows_old() {
        let folder = tempfile::tempdir().unwrap();
        let path = heartbeat(folder.path());
        let at: Timestamp = "2026-03-01T12:00:00Z".parse().unwrap();
        write(&path, at).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        let process = std::process::id().to_string();
        let after = |seconds| read(&text, at.checked_add(azera_types::Span::new().seconds(seconds)).unwrap());
        assert_eq!(after(59), Health::Alive { process: process.clone(), seconds: 59 });
        assert_eq!(after(61), Health::Silent { process, seconds: 61 });
    }

    #[test]
    fn half_a_heartbeat_says_nothing() {
        for text in ["", "12", "12\nyesterday"] {
            assert_eq!(read(text, Timestamp::UNIX_EPOCH), Health::Unknown, "{text:?}");
        }
    }
}
