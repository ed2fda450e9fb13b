//! Finds the project that a session is in already. The folder that named it may be gone by now, or have lost its `.git`.

use std::fs::File;
use std::io::BufReader;
use std::ops::ControlFlow;
use std::path::Path;

use azera_import::{Format, Found, ImportedMessage, Source, read};
use azera_memory::{ImportState, Memory, project_realm};
use azera_types::TimeZone;

use crate::import::Target;

/// Returns the target. If its project does not know the transcript and another one of these names does, it gets that one. A
/// project also knows what was forgotten or undone in it: that must not come back in another one.
pub fn in_known_project(
    memory: &Memory,
    transcript: &Path,
    target: Target,
    around: &[String],
) -> anyhow::Result<Target> {
    let Some(first) = Some(transcript).filter(|_| !around.is_empty()).and_then(first_message) else {
        return Ok(target);
    };
    // Not every folder has a name that a project may have.
    let others = around.iter().filter_map(|name| project_realm(&target.person.id, name).ok());
    let others = others.map(|project| Target { project: Some(project), ..target.clone() });
    for known in std::iter::once(target.clone()).chain(others) {
        let id = known.message_id(Format::ClaudeCode, &first.chat.id, &first.id, 0)?;
        if memory.imports().message_state(&id)? != ImportState::New {
            return Ok(known);
        }
    }
    Ok(target)
}

/// Returns the first message of a transcript; `None` if it cannot be read, which the import reports.
fn first_message(transcript: &Path) -> Option<Box<ImportedMessage>> {
    let file = File::open(transcript).ok()?;
    let source = Source { format: Format::ClaudeCode, stem: String::new(), zone: TimeZone::UTC };
    let mut first = None;
    let mut take = |found: Found| match found {
        Found::Message(message) => {
            first = Some(message);
            ControlFlow::Break(())
        }
        Found::LeftOut(_) | Found::Flaw(_) | Found::Ran(_) => ControlFlow::Continue(()),
    };
    read(&source, BufReader::new(file), &mut take).ok();
    first
}
