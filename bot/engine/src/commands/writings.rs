//! `/dream` and `/journal`: writings of the persona, as far as they may be shown here. `/garden` uses the same
//! functions.

use azera_adapter::CommandAnswer;
use azera_memory::{JournalChannel, Kind, MemoryRow, NewWriting, WritingRow, shortened};
use azera_types::{MemoryId, Text, TimeZone};

use super::archive::{json_of, read};
use super::mind::may_configure_place;
use super::{CommandContext, done, refused};
use crate::background::Background;
use crate::commands::Commands;
use crate::display_names::DisplayNames;
use crate::error::Error;
use crate::zones;

/// Number of writings that a list shows.
const LISTED: usize = 20;

/// Number of hits that a search shows.
const FOUND: usize = 10;

/// Number of hits from which those of the right kind are taken.
const SEARCHED: usize = 100;

/// Maximum number of writings in an export.
const EXPORTED: usize = 1_000;

/// Maximum number of characters shown of a writing in a list.
const SHOWN: usize = 120;

/// Which writings a command is about.
#[derive(Clone, Copy)]
pub(super) struct WritingFilter {
    pub(super) command: &'static str,
    /// Their name in the plural.
    pub(super) name: &'static str,
    /// Their name in the singular.
    pub(super) one: &'static str,
    pub(super) kinds: &'static [Kind],
    /// The kind that imported entries get.
    pub(super) imported: Kind,
}

const DREAMS: WritingFilter =
    WritingFilter { command: "dream", name: "dreams", one: "dream", kinds: &[Kind::Dream], imported: Kind::Dream };

const JOURNAL: WritingFilter = WritingFilter {
    command: "journal",
    name: "journal entries",
    one: "journal entry",
    kinds: &[Kind::Reflection, Kind::Diary],
    imported: Kind::Reflection,
};

impl Commands {
    pub(super) async fn dream_command(&self, at: &CommandContext<'_>, arguments: &str) -> Result<CommandAnswer, Error> {
        match self.writings_command(at, DREAMS, arguments).await? {
            Some(answer) => Ok(answer),
            None => Ok(refused(
                "`/dream list`, `/dream show 1`, `/dream search WORDS`, `/dream import TEXT` or `/dream export`."
                    .into(),
            )),
        }
    }

    pub(super) async fn journal_command(
        &self,
        at: &CommandContext<'_>,
        arguments: &str,
    ) -> Result<CommandAnswer, Error> {
        if let Some(answer) = self.writings_command(at, JOURNAL, arguments).await? {
            return Ok(answer);
        }
        match arguments.split_once(char::is_whitespace).map_or((arguments, ""), |(verb, rest)| (verb, rest.trim())) {
            ("trigger", "") => self.journal_trigger(at).await,
            ("channel", "") => self.show_journal_channel(at).await,
            ("channel", "here") => self.set_journal_channel(at, true).await,
            ("channel", "off") => self.set_journal_channel(at, false).await,
            _ => Ok(refused(
                "`/journal list`, `/journal show 1`, `/journal search WORDS`, `/journal trigger`, `/journal import TEXT`, \
                 `/journal export` or `/journal channel here`."
                    .into(),
            )),
        }
    }

    pub(super) async fn writings_command(
        &self,
        at: &CommandContext<'_>,
        filter: WritingFilter,
        arguments: &str,
    ) -> Result<Option<CommandAnswer>, Error> {
        let (verb, rest) = arguments.split_once(char::is_whitespace).unwrap_or((arguments, ""));
        Ok(Some(match (verb, rest.trim()) {
            ("" | "list", "") => self.list_writings(at, filter).await?,
            ("show", which) if !which.is_empty() => self.show_writing(at, filter, which).await?,
            ("search", words) if !words.is_empty() => self.search_writings(at, filter, words).await?,
            ("import", text) if !text.is_empty() => self.import_writings(at, filter, text).await?,
            ("export", "") => {
                let written = self.writings_here(at, filter, EXPORTED).await?;
                done(serde_json::to_string_pretty(&json_of(&written)).unwrap_or_default())
            }
            _ => return Ok(None),
        }))
    }

    async fn writings_here(
        &self,
        at: &CommandContext<'_>,
        filter: WritingFilter,
        limit: usize,
    ) -> Result<Vec<(MemoryRow, WritingRow)>, Error> {
        let read_scope = at.read_scope.clone();
        self.services.blocking(move |memory| memory.writings().list(&read_scope, filter.kinds, limit)).await
    }

    async fn list_writings(&self, at: &CommandContext<'_>, filter: WritingFilter) -> Result<CommandAnswer, Error> {
        let written = self.writings_here(at, filter, LISTED).await?;
        if written.is_empty() {
            return Ok(done(format!("There are no {} that may be shown here.", filter.name)));
        }
        let mut text = format!("The newest {}; `/{} show NUMBER` shows one whole:\n", filter.name, filter.command);
        for (number, (memory, writing)) in written.iter().enumerate() {
            text.push_str(&format!("{}. {}\n", number + 1, glimpse(at, memory, writing, "")));
        }
        Ok(done(text))
    }

    /// Finds a writing by its number in the list, or by its id.
    pub(super) async fn find_writing(
        &self,
        at: &CommandContext<'_>,
        filter: WritingFilter,
        which: &str,
    ) -> Result<Option<(MemoryRow, WritingRow)>, Error> {
        Ok(match (which.parse::<usize>(), which.parse::<MemoryId>()) {
            (Ok(number), _) => {
                let written = self.writings_here(at, filter, number.min(EXPORTED)).await?;
                number.checked_sub(1).and_then(|index| written.into_iter().nth(index))
            }
            (_, Ok(id)) => {
                let read_scope = at.read_scope.clone();
                let found = self.services.blocking(move |memory| memory.writings().written(&read_scope, id)).await?;
                found.filter(|(memory, _)| filter.kinds.contains(&memory.kind))
            }
            _ => None,
        })
    }

    async fn show_writing(
        &self,
        at: &CommandContext<'_>,
        filter: WritingFilter,
        which: &str,
    ) -> Result<CommandAnswer, Error> {
        let found = match self.find_writing(at, filter, which).await? {
            Some((memory, _)) => self.whole(at, memory.id, Shown::WithPrompt).await?,
            None => None,
        };
        Ok(found.map_or_else(
            || {
                refused(format!(
                    "There is nothing with that number here; `/{} list` shows the numbers.",
                    filter.command
                ))
            },
            done,
        ))
    }

    async fn search_writings(
        &self,
        at: &CommandContext<'_>,
        filter: WritingFilter,
        words: &str,
    ) -> Result<CommandAnswer, Error> {
        let name = self.services.persona(at.place.shared_realm(), &at.chat.persona).await?.persona.name;
        let query = Text::new(words);
        let recall = self.recall.search(&at.read_scope, &query, at.asking(&name), SEARCHED).await?;
        let mut text = String::new();
        for hit in recall.hits.iter().filter(|hit| filter.kinds.contains(&hit.memory.kind)).take(FOUND) {
            let (read_scope, id) = (at.read_scope.clone(), hit.memory.id);
            if let Some((memory, writing)) =
                self.services.blocking(move |memory| memory.writings().written(&read_scope, id)).await?
            {
                text.push_str(&format!("- {}\n", glimpse(at, &memory, &writing, words)));
            }
        }
        if text.is_empty() {
            return Ok(done(format!("There are no such {} that may be shown here.", filter.name)));
        }
        Ok(done(text))
    }

    /// Imports writings for this place, as if they had been said here.
    async fn import_writings(
        &self,
        at: &CommandContext<'_>,
        filter: WritingFilter,
        text: &str,
    ) -> Result<CommandAnswer, Error> {
        if !may_configure_place(at) {
            return Ok(refused("Only admins can import here, because several people read this place.".into()));
        }
        if is_file_name(text) {
            return Ok(refused(format!(
                "`{text}` is the name of a file, not its text. Attach the file, paste its text, or name a file that \
                 exists in the terminal of `azera chat`."
            )));
        }
        let now = self.services.clock.now();
        let entries = match read(text, &at.calendar.zone, now) {
            Ok(entries) => entries,
            Err(why) => return Ok(refused(format!("Nothing was imported: {why}."))),
        };
        let name = self.services.persona(at.place.shared_realm(), &at.chat.persona).await?.persona.name;
        let count = entries.len();
        for entry in entries {
            let new = NewWriting {
                persona: at.chat.persona.clone(),
                persona_name: name.clone(),
                kind: filter.imported,
                chat: at.chat.id.clone(),
                scope: at.place.scope(),
                // It counts as said here now, whenever it was written.
                source_scopes: vec![azera_memory::SourceScope { scope: at.place.scope(), from: now }],
                sources: Vec::new(),
                text: Text::new(entry.text),
                at: entry.at.unwrap_or(now),
                prompt: None,
                model: None,
                title: entry.title,
                themes: entry.themes,
                mood: entry.mood,
                imported_by: Some(at.line.person.clone()),
                post: None,
                tended: None,
            };
            self.services.blocking(move |memory| memory.writings().write(new)).await?;
        }
        self.indexer.wake();
        let name = if count == 1 { filter.one } else { filter.name };
        Ok(done(format!("Imported: {count} {name}. `/{} list` shows the newest.", filter.command)))
    }

    async fn journal_trigger(&self, at: &CommandContext<'_>) -> Result<CommandAnswer, Error> {
        if !may_configure_place(at) {
            return Ok(refused("Only admins can ask for that here, because several people read this place.".into()));
        }
        let home = Background::home(at.platform, &at.place, &at.chat.persona);
        let Some(written) = self.background.reflect_now(&home).await? else {
            return Ok(refused("I wrote nothing: there is too little to write about, or I found no words.".into()));
        };
        self.show_written(at, written.id).await
    }

    /// Shows what was written on request, unless it was posted in the same chat.
    pub(super) async fn show_written(&self, at: &CommandContext<'_>, id: MemoryId) -> Result<CommandAnswer, Error> {
        let read_scope = at.read_scope.clone();
        let written = self.services.blocking(move |memory| memory.writings().written(&read_scope, id)).await?;
        let posted = written.as_ref().and_then(|(_, writing)| writing.posted.as_ref());
        if posted.is_some_and(|posted| posted.chat == at.chat.id) {
            return Ok(done("I have written something and posted it here.".into()));
        }
        let shown = self.whole(at, id, Shown::Text).await?;
        Ok(done(shown.unwrap_or_else(|| "I have written something for the readers of the journal's channel.".into())))
    }

    /// Shows a writing in full with its sources, if the place may show it.
    pub(super) async fn whole(
        &self,
        at: &CommandContext<'_>,
        id: MemoryId,
        shown: Shown,
    ) -> Result<Option<String>, Error> {
        let (read_scope, zone) = (at.read_scope.clone(), at.calendar.zone.clone());
        let read = move |memory: &azera_memory::Memory| {
            let Some((written, writing)) = memory.writings().written(&read_scope, id)? else { return Ok(None) };
            let behind = memory.writings().behind(&read_scope, &written)?;
            Ok(Some(whole(&written, &writing, &behind, shown, &zone)))
        };
        self.services.blocking(read).await
    }

    async fn show_journal_channel(&self, at: &CommandContext<'_>) -> Result<CommandAnswer, Error> {
        let home = Background::home(at.platform, &at.place, &at.chat.persona);
        Ok(done(match self.background.journal_of(&home).await? {
            Some(chat) if chat == at.chat.id => "Dreams and journal entries are posted here.".into(),
            Some(_) => "Dreams and journal entries are posted in another channel.".into(),
            None => {
                "Dreams and journal entries are posted nowhere; `/journal channel here` has them posted here.".into()
            }
        }))
    }

    async fn set_journal_channel(&self, at: &CommandContext<'_>, here: bool) -> Result<CommandAnswer, Error> {
        if !may_configure_place(at) {
            return Ok(refused("Only admins can choose where the journal is posted.".into()));
        }
        let channel = JournalChannel { chat: here.then(|| at.chat.id.clone()) };
        let (platform, place) = (at.platform.clone(), Background::home(at.platform, &at.place, &at.chat.persona).place);
        self.services.blocking(move |memory| memory.places().set_journal_channel(&platform, &place, &channel)).await?;
        Ok(done(match here {
            true => {
                "From now on dreams, journal entries and pieces are posted here, made of what everybody here may read."
                    .into()
            }
            false => "From now on dreams and journal entries are posted nowhere.".into(),
        }))
    }
}

/// How much of a writing is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shown {
    /// The text and what it rests on.
    Text,
    /// Also what the model was asked.
    WithPrompt,
}

/// The longest text that is taken for the name of a file.
const MAX_FILE_NAME_BYTES: usize = 255;

/// Returns true if the text of an import is the name of a file.
fn is_file_name(text: &str) -> bool {
    let extension = text.rsplit_once('.').map(|(_, extension)| extension.to_lowercase());
    text.len() <= MAX_FILE_NAME_BYTES
        && !text.contains(char::is_whitespace)
        && matches!(extension.as_deref(), Some("md" | "markdown" | "txt" | "json"))
}

/// Formats a writing as one line of a list, with the part that answers a query.
fn glimpse(at: &CommandContext<'_>, memory: &MemoryRow, writing: &WritingRow, query: &str) -> String {
    let title = writing.title.as_ref().map_or_else(String::new, |title| format!(" {title}:"));
    // An entry may hold headings and code; in a list it is one line.
    let line = Text::new(memory.text.split_whitespace().collect::<Vec<_>>().join(" "));
    let body = shortened(&line, query, SHOWN);
    format!("`{}` {}, {}:{title} {}", memory.id, memory.kind.as_str(), at.day(memory.at), body.as_str())
}

/// Formats a writing in full. Its sources follow; the caller has checked that they may be shown.
fn whole(memory: &MemoryRow, writing: &WritingRow, behind: &[MemoryRow], shown: Shown, zone: &TimeZone) -> String {
    let mut text = format!("`{}` {}, {}", memory.id, memory.kind.as_str(), zones::minute(memory.at, zone));
    for (name, value) in [("title", &writing.title), ("mood", &writing.mood)] {
        if let Some(value) = value {
            text.push_str(&format!(", {name} {value}"));
        }
    }
    text.push_str(&format!("\n\n{}\n", memory.text.as_str()));
    if !writing.themes.is_empty() {
        text.push_str(&format!("\nThemes: {}.", writing.themes.join(", ")));
    }
    if !behind.is_empty() {
        let names = DisplayNames::new(&memory.scope, [], behind.iter().map(|said| &said.author));
        let source =
            |said: &MemoryRow| format!("`{}` {}, {}", said.id, names.of(&said.author), zones::day(said.at, zone));
        let sources: Vec<String> = behind.iter().map(source).collect();
        text.push_str(&format!("\nMade of {}.", sources.join("; ")));
    }
    match (&writing.prompt, &writing.model) {
        (Some(prompt), Some(model)) if shown == Shown::WithPrompt => {
            text.push_str(&format!("\nWritten by {model}, which was asked:\n\n{}", prompt.as_str()));
        }
        _ if writing.imported_by.is_some() => text.push_str("\nIt was imported."),
        _ => {}
    }
    text
}
