//! Sections of the configuration that are wrong and left out: whoever needs them is told, and everything else goes on.

use anyhow::bail;
use azera_config::Config;

use crate::cli::{Command, VoiceOptions};

/// Fails if the command is for a server whose section is left out. Says in the log what else is left out, if the command
/// would use it.
///
/// # Errors
/// What is wrong in the section.
pub fn check(config: &Config, command: &Command) -> anyhow::Result<()> {
    let needed: &[&str] = match command {
        Command::Say(_) => &["speech_server"],
        Command::Transcribe(_) => &["recognition_server"],
        Command::Voice(VoiceOptions { command: None, .. }) => &["recognition_server", "speech_server"],
        _ => &[],
    };
    for left_out in config.left_out() {
        let (section, why) = (left_out.section, left_out.why());
        if needed.contains(&section) {
            bail!("{why}");
        }
        if uses_servers(command) {
            tracing::error!("[{section}] is left out: {why}; `azera doctor` lists what is wrong");
        }
    }
    Ok(())
}

/// Returns true if a command talks, draws, hears or recalls by servers. `azera doctor` tells about them itself.
fn uses_servers(command: &Command) -> bool {
    matches!(
        command,
        Command::Run(_)
            | Command::Chat(_)
            | Command::Tour(_)
            | Command::Voice(VoiceOptions { command: None, .. })
            | Command::Mcp(_)
            | Command::Replay(_)
            | Command::Eval { .. }
            | Command::Bench { .. }
    )
}

/// Returns a server that is configured in a way that can work. The log says why another one is left out.
pub fn unless_wrong<T, E: Into<anyhow::Error>>(section: &str, server: Result<Option<T>, E>) -> Option<T> {
    server.unwrap_or_else(|error| {
        let error: anyhow::Error = error.into();
        tracing::error!("[{section}] is left out: {error:#}; `azera doctor` lists what is wrong");
        None
    })
}
