//! `/memory learnt`: what was learnt in the last days, with the memories that it rests on.

use azera_adapter::CommandAnswer;
use azera_memory::{Ending, Episode, Learnt, Memory, MemoryRow, Procedure, ReadScope, project_name, shortened};
use azera_types::{MessageId, PersonId, Scope, Span, Timestamp};

use super::{CommandContext, done};
use crate::coding_sessions::about_projects;
use crate::commands::Commands;
use crate::error::Error;

/// Days that are looked back.
const DAYS: i64 = 7;

/// Marks and kept facts that are read, and most lines of one part.
const READ: usize = 200;
const LINES: usize = 15;

/// Maximum number of characters shown of a memory.
const SHOWN: usize = 160;

/// What was learnt, as it is read.
struct Found {
    marked: Vec<MemoryRow>,
    kept: Vec<MemoryRow>,
    lines: Vec<String>,
}

impl Commands {
    pub(super) async fn learnt_memory(&self, at: &CommandContext<'_>) -> Result<CommandAnswer, Error> {
        let now = self.services.clock.now();
        let since = now.checked_sub(Span::new().hours(24 * DAYS)).unwrap_or(Timestamp::MIN);
        let (read_scope, person) = (at.read_scope.clone(), at.line.person.clone());
        let found = self.services.blocking(move |memory| read(memory, &read_scope, &person, since)).await?;
        let mut parts = Vec::new();
        let kept = found.kept.iter().map(|fact| {
            let body = shortened(&fact.text, "", SHOWN);
            format!("- `{}` {}: \"{}\"", fact.id, at.day(fact.at), body.as_str())
        });
        parts.push(part("You asked me to keep:", kept.collect()));
        let marked = found.marked.iter().filter_map(|memory| {
            let kind = &memory.salience.as_ref()?.kind;
            let body = shortened(memory.gist(), "", SHOWN);
            Some(format!("- `{}` {kind}, {}: \"{}\"", memory.id, at.day(memory.at), body.as_str()))
        });
        parts.push(part("You said:", marked.collect()));
        parts.push(part("In your projects:", found.lines));
        let text = parts.into_iter().flatten().collect::<Vec<_>>().join("\n");
        if text.is_empty() {
            return Ok(done(format!("I learnt nothing in the last {DAYS} days that may be shown here.")));
        }
        Ok(done(format!("What I learnt in the last {DAYS} days:\n{text}\n`/forget mNUMBER` forgets one.")))
    }
}

/// Returns lines under a heading; `None` if there are none.
fn part(heading: &str, mut lines: Vec<String>) -> Option<String> {
    let more = lines.len().saturating_sub(LINES);
    lines.truncate(LINES);
    if more > 0 {
        lines.push(format!("- and {more} more"));
    }
    (!lines.is_empty()).then(|| format!("{heading}\n{}", lines.join("\n")))
}

fn read(
    memory: &Memory,
    read_scope: &ReadScope,
    person: &PersonId,
    since: Timestamp,
) -> Result<Found, azera_memory::Error> {
    let recent = |mut rows: Vec<MemoryRow>| {
        rows.retain(|row| row.at >= since);
        rows
    };
    let marked = recent(memory.memories().salient(read_scope, person, READ)?);
    let kept = recent(memory.memories().kept_by(read_scope, person, READ)?);
    let lines = match about_projects(read_scope, None) {
        Some(projects) => of_projects(memory, &projects, since)?,
        None => Vec::new(),
    };
    Ok(Found { marked, kept, lines })
}

fn of_projects(memory: &Memory, read_scope: &ReadScope, since: Timestamp) -> Result<Vec<String>, azera_memory::Error> {
    let Learnt { episodes, procedures, .. } = memory.sessions().learnt(read_scope)?;
    let source = |message: &MessageId| -> Result<String, azera_memory::Error> {
        let id = memory.messages().memory_of(read_scope, message)?;
        Ok(id.map_or_else(String::new, |id| format!(" (`{id}`)")))
    };
    let mut lines = Vec::new();
    for episode in &episodes {
        if let Some((words, message)) = told(episode, since) {
            lines.push(format!("- {}: {words}{}", project(&episode.scope), source(message)?));
        }
    }
    let proven = |one: &&Procedure| one.is_proven && one.span.1 >= since;
    for procedure in procedures.iter().filter(proven) {
        let steps: Vec<String> = procedure.steps.iter().map(|step| format!("`{}`", step.as_str())).collect();
        let from = procedure.sources.first().map_or_else(|| Ok(String::new()), source)?;
        let what = if steps.len() > 1 { ": the last step worked" } else { " worked" };
        lines.push(format!(
            "- {}: {}{what} {} of {} times{from}",
            project(&procedure.scope),
            steps.join(", then "),
            procedure.worked,
            procedure.tries
        ));
    }
    Ok(lines)
}

/// Returns what a session left open or solved since a moment, with the message it rests on.
fn told(episode: &Episode, since: Timestamp) -> Option<(String, &MessageId)> {
    match &episode.ending {
        Ending::Open(problem) if problem.at >= since => {
            Some((format!("open, {}: {}", problem.kind.as_str(), problem.text.as_str()), &problem.message))
        }
        Ending::Resolved(problem, by) if by.at >= since => {
            Some((format!("solved, {}: {}", problem.kind.as_str(), problem.text.as_str()), &by.message))
        }
        _ => None,
    }
}

fn project(scope: &Scope) -> &str {
    match scope {
        Scope::Realm(realm) => project_name(realm).unwrap_or_default(),
        _ => "",
    }
}
