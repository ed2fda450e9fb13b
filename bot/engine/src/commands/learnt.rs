//! `/memory learnt`: what was learnt in the last days, with the memories that it rests on.

use std::collections::{HashMap, HashSet};

use azera_adapter::CommandAnswer;
use azera_memory::{
    Calendar, Ending, Episode, EpisodeQuery, ImportedChat, Learnt, MAX_EPISODES, MatterState, Memory, MemoryRow,
    NewName, NewNames, ReadScope, project_name, shortened,
};
use azera_types::{ChatId, MemoryId, MessageId, PersonId, Scope, Span, Timestamp};

use super::graph::relation_in_words;
use super::{CommandContext, done};
use crate::coding_sessions::about_projects;
use crate::commands::Commands;
use crate::error::Error;
use crate::zones::{day, stretch};

/// Days that are looked back.
const DAYS: i64 = 7;

/// Marks and kept facts that are read, and most lines of one part.
const READ: usize = 200;
const LINES: usize = 15;

/// Maximum number of characters shown of a memory.
const SHOWN: usize = 160;

/// Maximum number of characters shown of a name.
const NAME_CHARS: usize = 48;

/// What was learnt, each part as lines.
struct Found {
    changed: Vec<String>,
    kept: Vec<String>,
    marked: Vec<String>,
    known: Vec<String>,
    names: Vec<String>,
    settled: Vec<String>,
    projects: Vec<String>,
}

impl Commands {
    pub(super) async fn learnt_memory(&self, at: &CommandContext<'_>) -> Result<CommandAnswer, Error> {
        let now = self.services.clock.now();
        let since = now.checked_sub(Span::new().hours(24 * DAYS)).unwrap_or(Timestamp::MIN);
        let (read_scope, person, calendar) = (at.read_scope.clone(), at.line.person.clone(), at.calendar.clone());
        let to_you = at.is_at_the_terminal();
        let read = move |memory: &Memory| {
            let imported = HashMap::new();
            Recent { memory, read_scope: &read_scope, calendar: &calendar, since, to_you, imported }.read(&person)
        };
        let found = self.services.blocking(read).await?;
        let parts = [
            part("What changed:", found.changed),
            part("You asked me to keep:", found.kept),
            part("You said:", found.marked),
            part("Now known in a whole place:", found.known),
            part("Names that are new to me:", found.names),
            part("What was settled:", found.settled),
            part("In your projects:", found.projects),
        ];
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

/// What was learnt since a moment: said since then, or in a chat that was imported since then.
struct Recent<'a> {
    memory: &'a Memory,
    read_scope: &'a ReadScope,
    calendar: &'a Calendar,
    since: Timestamp,
    /// True if the reader sits at the terminal.
    to_you: bool,
    /// Whether chats were imported since then.
    imported: HashMap<ChatId, bool>,
}

type Read<T> = Result<T, azera_memory::Error>;

impl Recent<'_> {
    fn read(mut self, person: &PersonId) -> Read<Found> {
        let marked = self.memory.memories().salient(self.read_scope, person, READ)?;
        let kept = self.memory.memories().kept_by(self.read_scope, person, READ)?;
        let (changed, told) = self.changed(kept.iter().chain(&marked))?;
        let kept = self.lines(kept, &told, |_| Some(String::new()))?;
        let marked = self.lines(marked, &told, |row| Some(format!("{}, ", row.salience.as_ref()?.kind)))?;
        let projects = match about_projects(self.read_scope, None) {
            Some(projects) => self.of_projects(&projects)?,
            None => Vec::new(),
        };
        Ok(Found {
            changed,
            kept,
            marked,
            known: self.known()?,
            names: self.names()?,
            settled: self.settled()?,
            projects,
        })
    }

    fn day(&self, at: Timestamp) -> String {
        day(at, &self.calendar.zone)
    }

    /// Returns what a person replaced by something else since then, and the memories that these lines tell.
    fn changed<'m>(&self, rows: impl Iterator<Item = &'m MemoryRow>) -> Read<(Vec<String>, HashSet<MemoryId>)> {
        let (mut lines, mut told) = (Vec::new(), HashSet::new());
        for row in rows {
            let Some(by) = self.memory.memories().replaced(self.read_scope, row)? else { continue };
            if by.at < self.since || told.contains(&row.id) {
                continue;
            }
            let validity = self.memory.memories().validity(self.read_scope, row, self.calendar)?;
            let Some((from, to)) = validity.until else { continue };
            let newer = validity.replaced_by.map(|id| self.memory.memories().get(self.read_scope, id)).transpose()?;
            let now = newer.flatten().map_or_else(String::new, |newer| {
                told.insert(newer.id);
                format!("; now `{}`: \"{}\"", newer.id, shortened(newer.gist(), "", SHOWN).as_str())
            });
            told.insert(row.id);
            let (until, was) = (stretch(from, to, &self.calendar.zone), shortened(row.gist(), "", SHOWN));
            lines.push(format!("- `{}` until {until}: \"{}\"{now}", row.id, was.as_str()));
        }
        Ok((lines, told))
    }

    /// Returns lines of what was said since then and is not told yet, each with what stands before its day.
    fn lines(
        &mut self,
        rows: Vec<MemoryRow>,
        told: &HashSet<MemoryId>,
        before: impl Fn(&MemoryRow) -> Option<String>,
    ) -> Read<Vec<String>> {
        let mut lines = Vec::new();
        for row in rows.into_iter().filter(|row| !told.contains(&row.id)) {
            if row.at < self.since_in(row.chat.as_ref())? {
                continue;
            }
            let until = self.memory.memories().validity(self.read_scope, &row, self.calendar)?.until;
            let until = until.map(|(from, to)| format!(", until {}", stretch(from, to, &self.calendar.zone)));
            let Some(before) = before(&row) else { continue };
            let (body, until) = (shortened(row.gist(), "", SHOWN), until.unwrap_or_default());
            lines.push(format!("- `{}` {before}{}{until}: \"{}\"", row.id, self.day(row.at), body.as_str()));
        }
        Ok(lines)
    }

    /// Returns what was said in so many chats since then that it counts as known.
    fn known(&self) -> Read<Vec<String>> {
        let (known, _) = self.memory.memories().known(self.read_scope, 0, READ)?;
        let mut lines = Vec::new();
        for one in known.into_iter().filter(|one| !one.is_apart && one.newest.at >= self.since) {
            if !one.was_known_before(self.since) {
                let body = shortened(one.newest.gist(), "", SHOWN);
                let people = if one.people > 1 { format!(", by {} people", one.people) } else { String::new() };
                lines.push(format!("- `{}` in {} chats{people}: \"{}\"", one.newest.id, one.chats, body.as_str()));
            }
        }
        Ok(lines)
    }

    /// Returns the names that were mentioned first since then.
    fn names(&self) -> Read<Vec<String>> {
        let NewNames { names, is_cut } = self.memory.graph().new_names(self.read_scope, self.since, READ)?;
        if is_cut {
            return Ok(vec!["- more names were mentioned than I can compare".to_owned()]);
        }
        let line = |new: NewName| {
            let name = shortened(&new.name, "", NAME_CHARS);
            let said = new.relation.map_or_else(String::new, |(label, subject, object)| {
                let said = relation_in_words(label, &subject, &object, self.to_you);
                format!(": {}", shortened(&said, "", SHOWN).as_str())
            });
            format!("- {}, {}{said} (`{}`)", name.as_str(), self.day(new.at), new.memory)
        };
        Ok(names.into_iter().map(line).collect())
    }

    /// Returns the plans, problems and questions of which somebody said since then how they went.
    fn settled(&self) -> Read<Vec<String>> {
        let query = EpisodeQuery { limit: MAX_EPISODES, ..EpisodeQuery::default() };
        let episodes = self.memory.episodes().list(self.read_scope, self.calendar, &query)?.episodes;
        let mut lines = Vec::new();
        for matter in episodes.into_iter().flat_map(|episode| episode.matters) {
            let MatterState::Resolved(report) = &matter.state else { continue };
            if report.at < self.since {
                continue;
            }
            let (kind, who) = (matter.problem.kind.as_str(), matter.author.name());
            let (was, said) = (shortened(&matter.problem.text, "", SHOWN), shortened(&report.text, "", SHOWN));
            let source = self.source(self.read_scope, &report.message)?;
            let day = self.day(report.at);
            lines.push(format!("- {kind} of {who}: \"{}\"; {day}: \"{}\"{source}", was.as_str(), said.as_str()));
        }
        Ok(lines)
    }

    /// Returns the memory of a message, to follow what it says.
    fn source(&self, read_scope: &ReadScope, message: &MessageId) -> Read<String> {
        let id = self.memory.messages().memory_of(read_scope, message)?;
        Ok(id.map_or_else(String::new, |id| format!(" (`{id}`)")))
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

    /// Returns what sessions with coding assistants left open, solved or showed to work.
    fn of_projects(&mut self, read_scope: &ReadScope) -> Read<Vec<String>> {
        let Learnt { episodes, procedures, .. } = self.memory.sessions().learnt(read_scope)?;
        let mut lines = Vec::new();
        for episode in &episodes {
            if let Some((words, message)) = told(episode, self.since_in(Some(&episode.chat))?) {
                lines.push(format!("- {}: {words}{}", project(&episode.scope), self.source(read_scope, message)?));
            }
        }
        for procedure in procedures.iter().filter(|one| one.is_proven) {
            let mut is_recent = procedure.span.1 >= self.since;
            for message in &procedure.sources {
                if !is_recent && let Some(message) = self.memory.messages().get(read_scope, message)? {
                    is_recent = message.at >= self.since_in(Some(&message.chat))?;
                }
            }
            if !is_recent {
                continue;
            }
            let steps: Vec<String> = procedure.steps.iter().map(|step| format!("`{}`", step.as_str())).collect();
            let from = procedure
                .sources
                .first()
                .map_or_else(|| Ok(String::new()), |message| self.source(read_scope, message))?;
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
