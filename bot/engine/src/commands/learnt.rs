//! `/memory learnt`: what was learnt in the last days, with the memories that it rests on.

use std::collections::HashMap;

use azera_adapter::CommandAnswer;
use azera_memory::{Ending, Episode, ImportedChat, Learnt, Memory, MemoryRow, ReadScope, project_name, shortened};
use azera_types::{ChatId, MessageId, PersonId, Scope, Span, Timestamp};

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
        let until = self.replaced(at, &found.kept).await?;
        let kept = found.kept.iter().zip(until).map(|(fact, until)| {
            let body = shortened(&fact.text, "", SHOWN);
            format!("- `{}` {}{}: \"{}\"", fact.id, at.day(fact.at), at.until(until), body.as_str())
        });
        parts.push(part("You asked me to keep:", kept.collect()));
        let until = self.replaced(at, &found.marked).await?;
        let marked = found.marked.iter().zip(until).filter_map(|(memory, until)| {
            let kind = &memory.salience.as_ref()?.kind;
            let body = shortened(memory.gist(), "", SHOWN);
            let (day, over) = (at.day(memory.at), at.until(until));
            Some(format!("- `{}` {kind}, {day}{over}: \"{}\"", memory.id, body.as_str()))
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
    let mut recent = Recent { memory, since, imported: HashMap::new() };
    let marked = recent.of(memory.memories().salient(read_scope, person, READ)?)?;
    let kept = recent.of(memory.memories().kept_by(read_scope, person, READ)?)?;
    let lines = match about_projects(read_scope, None) {
        Some(projects) => of_projects(memory, &projects, &mut recent)?,
        None => Vec::new(),
    };
    Ok(Found { marked, kept, lines })
}

/// What was learnt since a moment: said since then, or in a chat that was imported since then.
struct Recent<'a> {
    memory: &'a Memory,
    since: Timestamp,
    /// Whether chats were imported since then.
    imported: HashMap<ChatId, bool>,
}

impl Recent<'_> {
    fn of(&mut self, rows: Vec<MemoryRow>) -> Result<Vec<MemoryRow>, azera_memory::Error> {
        let mut recent = Vec::new();
        for row in rows {
            if row.at >= self.since_in(row.chat.as_ref())? {
                recent.push(row);
            }
        }
        Ok(recent)
    }

    /// Returns the moment from which on what was said in a chat counts.
    fn since_in(&mut self, chat: Option<&ChatId>) -> Result<Timestamp, azera_memory::Error> {
        let Some(chat) = chat else { return Ok(self.since) };
        let is_imported = match self.imported.get(chat) {
            Some(is_imported) => *is_imported,
            None => {
                let imported = self.memory.chats().get(chat)?.and_then(|chat| chat.imported);
                let is_imported = match imported {
                    Some(ImportedChat::Kept { imports, .. }) => {
                        imports.values().any(|file| file.first_at >= self.since)
                    }
                    _ => false,
                };
                self.imported.insert(chat.clone(), is_imported);
                is_imported
            }
        };
        Ok(if is_imported { Timestamp::MIN } else { self.since })
    }
}

fn of_projects(
    memory: &Memory,
    read_scope: &ReadScope,
    recent: &mut Recent<'_>,
) -> Result<Vec<String>, azera_memory::Error> {
    let Learnt { episodes, procedures, .. } = memory.sessions().learnt(read_scope)?;
    let source = |message: &MessageId| -> Result<String, azera_memory::Error> {
        let id = memory.messages().memory_of(read_scope, message)?;
        Ok(id.map_or_else(String::new, |id| format!(" (`{id}`)")))
    };
    let mut lines = Vec::new();
    for episode in &episodes {
        if let Some((words, message)) = told(episode, recent.since_in(Some(&episode.chat))?) {
            lines.push(format!("- {}: {words}{}", project(&episode.scope), source(message)?));
        }
    }
    for procedure in procedures.iter().filter(|one| one.is_proven) {
        let mut is_recent = procedure.span.1 >= recent.since;
        for message in &procedure.sources {
            if !is_recent && let Some(message) = memory.messages().get(read_scope, message)? {
                is_recent = message.at >= recent.since_in(Some(&message.chat))?;
            }
        }
        if !is_recent {
            continue;
        }
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
