//! `azera import` beside a running Azera, which has the data folder and does the work.

use std::process::ExitCode;

use super::{AUTO, INTERRUPTED};
use crate::cli::ImportOptions;
use crate::memory::is_confirmed;
use crate::web::RunningAzera;

/// Lets the running Azera list, undo or import.
pub async fn run(running: &RunningAzera, options: &ImportOptions) -> anyhow::Result<ExitCode> {
    let viewer = &options.viewer;
    if options.list {
        let done = running.imports(viewer).await?;
        match options.json {
            true => println!("{}", serde_json::to_string_pretty(&done.report)?),
            false => println!("{}", done.words),
        }
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(id) = &options.undo {
        if is_confirmed(options.yes)? {
            let done = running.undo_import(viewer, id, options.quotes).await?;
            match options.json {
                true => println!("{}", serde_json::to_string_pretty(&done.report)?),
                false => println!("{}", done.words),
            }
        }
        return Ok(ExitCode::SUCCESS);
    }
    let format = Some(options.format.clone()).filter(|format| format != AUTO);
    let mut interrupted = false;
    for path in &options.files {
        let how = (options.project.clone(), format.clone(), options.me.clone());
        let done = running.import(viewer, path, how, options.dry_run).await?;
        match options.json {
            true => println!("{}", done.report),
            false => println!("{}", done.words),
        }
        interrupted |= done.interrupted;
    }
    Ok(if interrupted { ExitCode::from(INTERRUPTED) } else { ExitCode::SUCCESS })
}
