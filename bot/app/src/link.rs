//! `azera link`: links a person of this machine with their other accounts, through the Azera that runs. Codes live in its
//! memory.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use anyhow::ensure;
use azera_config::Config;
use azera_engine::LinkStep;

use crate::cli::LinkOptions;
use crate::data::DataFolder;
use crate::web::RunningAzera;

pub async fn run(config: &Config, options: LinkOptions) -> anyhow::Result<ExitCode> {
    let data = config.data_dir()?;
    ensure!(
        DataFolder::is_taken(&data),
        "no Azera runs on {}, and codes live in the running one. Start `azera run`, write `/link` to it in a direct message \
         from your other account, and give its code to `azera link CODE` within 10 minutes",
        data.display()
    );
    let running = RunningAzera::find(config)?;
    let LinkOptions { code, name, list, remove, yes, .. } = options;
    let step = match (code, remove) {
        (Some(code), _) => return enter(&running, &name, code, yes).await,
        (None, Some(other)) => LinkStep::Remove(other),
        (None, None) if list => LinkStep::List,
        (None, None) => LinkStep::Show,
    };
    tell(&running.link(&name, step).await?);
    Ok(ExitCode::SUCCESS)
}

/// Enters a code, and asks whether the account that it was shown to is the person's own.
async fn enter(running: &RunningAzera, name: &str, code: String, yes: bool) -> anyhow::Result<ExitCode> {
    // A code works once, so nothing else may be missing.
    ensure!(
        yes || std::io::stdin().is_terminal(),
        "to link accounts is a question, and there is no terminal to answer it: add --yes"
    );
    let question = running.link(name, LinkStep::Code(code)).await?;
    if !yes {
        tell(&question);
        if !is_agreed()? {
            println!("nothing was linked");
            return Ok(ExitCode::SUCCESS);
        }
    }
    tell(&running.link(name, LinkStep::Confirm).await?);
    Ok(ExitCode::SUCCESS)
}

fn is_agreed() -> anyhow::Result<bool> {
    print!("\nLink them? [y/N] ");
    std::io::stdout().flush()?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    Ok(answer.trim().eq_ignore_ascii_case("y"))
}

/// Prints an answer without the marks for bold letters.
fn tell(words: &str) {
    println!("{}", words.replace("**", ""));
}
