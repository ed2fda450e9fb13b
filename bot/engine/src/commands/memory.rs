//! Commands that show or add memories.

use azera_adapter::{AnswerFile, Choice, CommandAnswer, FileContent};
use azera_memory::{Again, DataSubject, KNOWN_IN_CHATS, Kind, MessageRow, NewFact, shortened};
use azera_types::{Author, MemoryId, MessageId, PlaceKind, Text};

use super::{CommandContext, charts, done, refused};
use crate::call_recordings::exported_recordings;
use crate::clones::exported_samples;
use crate::commands::Commands;
use crate::display_names::DisplayNames;
use crate::error::Error;

/// Number of hits that a search shows.
const SEARCH_HITS: usize = 10;

/// Maximum number of salient memories of one person shown at once.
const MAX_SALIENT: usize = 40;

/// Maximum number of bytes of files in an export. In base64, an export then fits where a platform takes 10 MB.
const MAX_EXPORT_FILE_BYTES: u64 = 6 << 20;

/// Maximum number of files of a part of an export, and of their bytes together. Platforms take that in one message.
const MAX_FILES_OF_PART: usize = 10;
const MAX_PART_BYTES: u64 = 8 << 20;

/// Maximum number of memories named that say the same.
const MAX_AGAIN_SHOWN: usize = 5;

/// Maximum number of characters shown of a memory.
const SHOWN: usize = 160;

/// Returns the part of a person's files that `/memory export` asks for: behind `files`, or alone, as in the field of a
/// form. `None` if it asks for something else.
fn part_of_files(rest: &str) -> Option<&str> {
    let mut words = rest.split_whitespace();
    match (words.next(), words.next(), words.next()) {
        (Some("files"), part, None) => Some(part.unwrap_or_default()),
        (Some(part), None, None) if part.parse::<usize>().is_ok() => Some(part),
        _ => None,
    }
}

impl Commands {
    pub(super) async fn memory_command(
        &self,
        at: &CommandContext<'_>,
        arguments: &str,
    ) -> Result<CommandAnswer, Error> {
        let (verb, rest) = arguments.split_once(char::is_whitespace).unwrap_or((arguments, ""));
        match (verb, rest.trim()) {
            ("search", words) if !words.is_empty() => self.search_memory(at, words).await,
            ("" | "stats", theme) => self.memory_stats(at, theme).await,
            ("pin", id) if !id.is_empty() => self.pin_memory(at, id).await,
            ("update", what) if !what.is_empty() => self.update_memory(at, what).await,
            ("replace", what) if !what.is_empty() => self.replace_memory(at, what).await,
            ("current", id) if !id.is_empty() => self.unreplace_memory(at, id).await,
            ("rate", what) if !what.is_empty() => self.rate_memory(at, what).await,
            ("learnt", "") => self.learnt_memory(at).await,
            ("known", rest) => self.known_memory(at, rest).await,
            ("themes", page) => self.list_themes(at, page).await,
            ("episodes", rest) => self.list_episodes(at, rest, false).await,
            ("open", rest) => self.list_episodes(at, rest, true).await,
            ("files", "") => self.list_files(at).await,
            ("file", which) if !which.is_empty() => self.give_file(at, which).await,
            ("export", "") => self.export_memory(at).await,
            ("export", rest) if part_of_files(rest).is_some() => {
                self.export_files(at, part_of_files(rest).unwrap_or_default()).await
            }
            ("forget", what) => self.forget_command(at, what).await,
            _ => Ok(refused(
                "`/memory search WORDS`, `/memory stats`, `/memory pin m42`, `/memory update m42 TEXT`, `/memory replace m42 \
                 m51`, `/memory current m42`, `/memory rate m42 helpful`, `/memory learnt`, `/memory known`, `/memory themes`, `/memory episodes`, `/memory open`, `/memory files`, `/memory file ID`, `/memory \
                 export`, `/memory export files` or `/memory forget`, which is `/forget`."
                    .into(),
            )),
        }
    }

    async fn search_memory(&self, at: &CommandContext<'_>, words: &str) -> Result<CommandAnswer, Error> {
        let name = self.services.persona(at.place.shared_realm(), &at.chat.persona).await?.persona.name;
        let query = Text::new(words);
        let recall = self.recall.search(&at.read_scope, &query, at.asking(&name), SEARCH_HITS).await?;
        if recall.hits.is_empty() {
            let missing = unavailable(&recall.missing);
            return Ok(done(format!("I remember nothing like that, or it may not be shown here.{missing}")));
        }
        let recent = self.recent(at).await?;
        let talking = recent.iter().map(|row| &row.author);
        let names = DisplayNames::new(&at.place.scope(), talking, recall.hits.iter().map(|hit| &hit.memory.author));
        let mut text = String::new();
        for hit in &recall.hits {
            let body = shortened(&hit.snippet, words, SHOWN);
            text.push_str(&format!(
                "- `{}` {}, {}{}{}{} ({}): \"{}\"\n",
                hit.memory.id,
                names.of(&hit.memory.author),
                at.day(hit.memory.at),
                at.since(&hit.memory),
                again(hit.chats(), &hit.again),
                at.until(hit.validity.until),
                hit.memory.scope,
                body.as_str(),
            ));
        }
        text.push_str("`/forget mNUMBER` forgets one.");
        text.push_str(&unavailable(&recall.missing));
        Ok(done(text))
    }

    async fn memory_stats(&self, at: &CommandContext<'_>, theme: &str) -> Result<CommandAnswer, Error> {
        let theme = match charts::theme(theme) {
            Ok(theme) => theme,
            Err(why) => return Ok(refused(why.into())),
        };
        let read_scope = at.read_scope.clone();
        let stats = self.services.blocking(move |memory| memory.stats(&read_scope)).await?;
        let mut text = match stats.total() {
            0 => "There are no memories that may be shown here.\n".to_owned(),
            total => format!("{} may be shown here:\n", memories(total)),
        };
        for (kind, scope, count) in &stats.counts {
            text.push_str(&format!("- {count} of kind {} from {scope}\n", kind.as_str()));
        }
        let now = self.services.clock.now();
        let weeks = charts::weeks(&stats, now);
        if let Some((first, _)) = weeks.first() {
            let counts: Vec<String> = weeks.iter().map(|(_, count)| count.to_string()).collect();
            text.push_str(&format!("By week, from {} on: {}.\n", at.day(*first), counts.join(", ")));
        }
        if stats.queued > 0 {
            text.push_str(&format!("Still being indexed: {}.", memories(stats.queued)));
        }
        Ok(CommandAnswer { chart: Some(charts::of_memory(&stats, now, &at.calendar.zone, theme)), ..done(text) })
    }

    /// Shows what the person asked to keep, and the salient memories of what they said.
    pub(super) async fn me_command(&self, at: &CommandContext<'_>) -> Result<CommandAnswer, Error> {
        let (read_scope, person) = (at.read_scope.clone(), at.line.person.clone());
        let (kept, salient) = self
            .services
            .blocking(move |memory| {
                let kept = memory.memories().kept_by(&read_scope, &person, MAX_SALIENT)?;
                Ok((kept, memory.memories().salient(&read_scope, &person, MAX_SALIENT)?))
            })
            .await?;
        if kept.is_empty() && salient.is_empty() {
            return Ok(done(
                "I keep nothing in mind about you yet that may be shown here. After each conversation I look for what is \
                 worth keeping; `/remember TEXT` keeps something at once."
                    .into(),
            ));
        }
        let mut text = String::new();
        if !kept.is_empty() {
            text.push_str("What you asked me to keep:\n");
        }
        let until = self.replaced(at, &kept).await?;
        for (fact, until) in kept.iter().zip(until) {
            let body = shortened(&fact.text, "", SHOWN);
            let over = at.since(fact) + &at.until(until);
            text.push_str(&format!("- `{}` {}{over}: \"{}\"\n", fact.id, at.day(fact.at), body.as_str()));
        }
        if !salient.is_empty() {
            text.push_str("What I keep in mind about you, in your own words:\n");
        }
        let until = self.replaced(at, &salient).await?;
        for (memory, until) in salient.iter().zip(until) {
            let Some(salience) = &memory.salience else { continue };
            let gist = shortened(memory.gist(), "", SHOWN);
            let over = at.since(memory) + &at.until(until);
            text.push_str(&format!(
                "- `{}` {}, {}{over}: \"{}\"\n",
                memory.id,
                salience.kind,
                at.day(memory.at),
                gist.as_str()
            ));
        }
        text.push_str("`/forget mNUMBER` forgets one, with the message it stands in.");
        Ok(done(text))
    }

    async fn export_memory(&self, at: &CommandContext<'_>) -> Result<CommandAnswer, Error> {
        if !matches!(&at.place.kind, PlaceKind::Dm(person) if *person == at.line.person) {
            return Ok(refused("What I hold about you is for you alone: ask me in a direct message.".into()));
        }
        let subject = DataSubject(at.line.person.clone());
        let mut export = self.services.blocking(move |memory| memory.export(&subject, MAX_EXPORT_FILE_BYTES)).await?;
        export["vault"] = self.services.exported_vault(at.line.person.clone()).await?;
        export["voice_samples"] = exported_samples(&self.services.samples().await?, &at.line.person);
        export["recordings"] = exported_recordings(&self.services.recordings_of(&at.line.person).await?);
        Ok(done(serde_json::to_string_pretty(&export).unwrap_or_default()))
    }

    /// Gives a person the files that they sent and the pictures that they asked for, in parts.
    async fn export_files(&self, at: &CommandContext<'_>, part: &str) -> Result<CommandAnswer, Error> {
        if !matches!(&at.place.kind, PlaceKind::Dm(person) if *person == at.line.person) {
            return Ok(refused("What I hold about you is for you alone: ask me in a direct message.".into()));
        }
        let Ok(number) = (if part.is_empty() { Ok(1) } else { part.parse::<usize>() }) else {
            return Ok(refused("`/memory export files 2` gives the second part.".into()));
        };
        let (subject, most) = (DataSubject(at.line.person.clone()), (MAX_FILES_OF_PART, MAX_PART_BYTES));
        let found = self.services.blocking(move |memory| memory.export_files(&subject, number, most)).await?;
        if found.parts == 0 {
            return Ok(done("I keep no files of yours.".into()));
        }
        if number == 0 || number > found.parts {
            return Ok(refused(format!("There are {} parts.", found.parts)));
        }
        let mut text = format!("Your files and pictures, oldest first: part {number} of {}.", found.parts);
        let mut choices = Vec::new();
        if number < found.parts {
            let line = format!("/memory export files {}", number + 1);
            text.push_str(&format!(" `{line}` gives the next one."));
            choices.push(Choice { label: "Next part".into(), line });
        }
        let files = found.files.into_iter().map(|(part, bytes)| AnswerFile { part, content: FileContent(bytes) });
        Ok(CommandAnswer { files: files.collect(), choices, ..done(text) })
    }

    pub(super) async fn remember_command(
        &self,
        at: &CommandContext<'_>,
        arguments: &str,
    ) -> Result<CommandAnswer, Error> {
        let said = match &at.line.about {
            Some(id) if arguments.is_empty() => match self.own_words(at, id).await? {
                Ok(said) => Some(said),
                Err(answer) => return Ok(answer),
            },
            _ => None,
        };
        if said.is_none() && arguments.is_empty() {
            return Ok(refused(
                "What should I keep? For example: `/remember the spare key is under the blue pot`.".into(),
            ));
        }
        let mut fact = NewFact {
            persona: at.chat.persona.clone(),
            chat: at.chat.id.clone(),
            scope: at.place.scope(),
            author: Author::Person { id: at.line.person.clone(), name: at.line.name.clone() },
            text: Text::new(arguments),
            at: self.services.clock.now(),
        };
        if let Some(said) = said {
            // It may be shown where it was said, and no further back.
            (fact.scope, fact.text, fact.at) = (said.scope, said.text, said.at);
        }
        let id = self.services.blocking(move |memory| memory.memories().store_fact(fact)).await?;
        self.indexer.wake();
        Ok(done(format!("Kept as `{id}`. `/forget {id}` forgets it.")))
    }

    /// Stores a memory's words as a fact, if they are the person's own. It may be shown where they were said, and
    /// nowhere else.
    async fn pin_memory(&self, at: &CommandContext<'_>, id: &str) -> Result<CommandAnswer, Error> {
        let Ok(id) = id.parse::<MemoryId>() else { return Ok(refused("`/memory pin m42`, with its id.".into())) };
        let read_scope = at.read_scope.clone();
        let Some(memory) = self.services.blocking(move |memory| memory.memories().get(&read_scope, id)).await? else {
            return Ok(refused(format!("I remember no `{id}` that may be shown here.")));
        };
        if memory.author.person() != Some(&at.line.person) {
            return Ok(refused("Those are somebody else's words; they can ask me to keep them.".into()));
        }
        if memory.kind == Kind::Fact && !memory.came_with_a_message() {
            return Ok(refused(format!("`{id}` is kept already.")));
        }
        let text = Text::new(memory.gist());
        let fact = NewFact {
            persona: memory.persona,
            chat: memory.chat.unwrap_or_else(|| at.chat.id.clone()),
            scope: memory.scope,
            author: memory.author,
            text,
            at: memory.at,
        };
        let fact_id = self.services.blocking(move |memory| memory.memories().store_fact_once(fact)).await?;
        self.indexer.wake();
        Ok(done(format!("Kept for good as `{fact_id}`. `/forget {fact_id}` forgets it.")))
    }

    /// Returns the message pointed at, if it is the person's own. Other people decide about their own words, and a
    /// persona's words rest on messages that others may have forgotten.
    async fn own_words(
        &self,
        at: &CommandContext<'_>,
        id: &MessageId,
    ) -> Result<Result<MessageRow, CommandAnswer>, Error> {
        let Some(message) = self.pointed_at(at, id).await?.filter(|message| !message.text.trim().is_empty()) else {
            return Ok(Err(refused("I heard no such thing, or it may not be shown here.".into())));
        };
        Ok(match message.author.person() {
            Some(person) if *person == at.line.person => Ok(message),
            Some(_) => Err(refused("Those are somebody else's words; they can ask me to keep them.".into())),
            None => Err(refused("Those are my words; I keep what you say: `/remember` and what it is.".into())),
        })
    }
}

/// Says in how many chats something was said, with the other memories that say it; nothing if they are few.
pub(super) fn again(chats: usize, again: &[Again]) -> String {
    if chats < KNOWN_IN_CHATS {
        return String::new();
    }
    format!(", said in {chats} chats (also {})", others(again))
}

/// Names the memories that say the same.
pub(super) fn others(again: &[Again]) -> String {
    let others: Vec<String> = again.iter().take(MAX_AGAIN_SHOWN).map(|other| format!("`{}`", other.memory)).collect();
    let more = if again.len() > MAX_AGAIN_SHOWN { " and more" } else { "" };
    format!("{}{more}", others.join(", "))
}

/// Returns a number of memories in words.
pub(super) fn memories(count: usize) -> String {
    if count == 1 { "1 memory".to_owned() } else { format!("{count} memories") }
}

/// Returns a sentence that names what a search could not ask, with a space before it; empty if nothing was missing.
fn unavailable(missing: &[&'static str]) -> String {
    if missing.is_empty() { String::new() } else { format!(" Not available just now: {}.", missing.join(", ")) }
}
