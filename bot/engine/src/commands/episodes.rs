//! `/memory episodes` and `/memory open`: conversations with what they were about, and what people left open in them.

use std::collections::HashMap;

use azera_adapter::CommandAnswer;
use azera_memory::{ChatEpisode, EpisodePage, EpisodeQuery, Matter, MatterState, Memory, Quote, ReadScope, shortened};
use azera_types::{Author, ChatId, MemoryId, MessageId, Scope, Text, Timestamp};

use super::{CommandContext, done, refused};
use crate::commands::Commands;
use crate::display_names::DisplayNames;
use crate::error::Error;

/// Episodes of a page.
const PAGE: usize = 5;

/// Digits of the longest page number. A longer number is a word.
const PAGE_DIGITS: usize = 3;

/// Most matters, people and names that are shown of one episode.
const MATTERS: usize = 4;
const PEOPLE: usize = 6;

/// Maximum number of characters shown of somebody's words.
const SHOWN: usize = 160;

/// Maximum number of characters shown of a chat's name.
const PLACE_CHARS: usize = 48;

/// A page with what else is shown of its messages.
struct Found {
    page: EpisodePage,
    memories: HashMap<MessageId, MemoryId>,
    /// When the episodes began that others go on with.
    before: HashMap<MessageId, Timestamp>,
}

/// What an answer names.
struct Shown<'a> {
    at: &'a CommandContext<'a>,
    names: DisplayNames,
    /// The names of the chats, each in the scope of what was said there.
    places: HashMap<(ChatId, Scope), Text>,
    found: &'a Found,
}

impl Commands {
    pub(super) async fn list_episodes(
        &self,
        at: &CommandContext<'_>,
        rest: &str,
        is_open: bool,
    ) -> Result<CommandAnswer, Error> {
        let (words, number) = asked(rest);
        if number == 0 {
            return Ok(refused("Pages begin with 1.".into()));
        }
        let skip = (number - 1).saturating_mul(PAGE);
        let query = EpisodeQuery { words: words.to_owned(), is_open, within: None, skip, limit: PAGE };
        let (read_scope, calendar) = (at.read_scope.clone(), at.calendar.clone());
        let read = move |memory: &Memory| {
            let page = memory.episodes().list(&read_scope, &calendar, &query)?;
            read_beside(memory, &read_scope, page)
        };
        let found = self.services.blocking(read).await?;
        let verb = if is_open { "open" } else { "episodes" };
        let pages = found.page.total.div_ceil(PAGE);
        if pages == 0 {
            return Ok(done(nothing(words, is_open)));
        }
        let asked = if words.is_empty() { verb.to_owned() } else { format!("{verb} {words}") };
        if found.page.episodes.is_empty() {
            return Ok(refused(format!("The last page is {pages}. `/memory {asked} {pages}` shows it.")));
        }
        let recent = self.recent(at).await?;
        let talking = recent.iter().map(|row| &row.author);
        let chats = found.page.episodes.iter().map(|one| (one.occasion.chat.clone(), one.occasion.scope.clone()));
        let places = self.services.chat_names(at.adapter, &at.line.person, chats.collect()).await?;
        let others = found.page.episodes.iter().flat_map(|one| &one.people);
        let names = DisplayNames::new(&at.place.scope(), talking, others);
        let shown = Shown { at, names, places, found: &found };
        let mut text = match is_open {
            true => "Conversations in which something is open, as far as it may be shown here, the newest first:\n",
            false => "Conversations, as far as they may be shown here, the newest first:\n",
        }
        .to_owned();
        for (index, episode) in found.page.episodes.iter().enumerate() {
            text.push_str(&shown.describe(skip + index + 1, episode, is_open));
        }
        if found.page.is_cut {
            text.push_str("Older messages were too many to read.\n");
        }
        if number < pages {
            text.push_str(&format!("Page {number} of {pages}; `/memory {asked} {}` goes on.\n", number + 1));
        }
        text.push_str("`/forget mNUMBER` forgets what somebody said.");
        Ok(done(text))
    }
}

/// Splits `[WORDS] [PAGE]`.
fn asked(rest: &str) -> (&str, usize) {
    let (words, last) = rest.rsplit_once(char::is_whitespace).unwrap_or(("", rest));
    let is_page = !last.is_empty() && last.len() <= PAGE_DIGITS;
    match last.parse().ok().filter(|_| is_page) {
        Some(page) => (words.trim(), page),
        None => (rest, 1),
    }
}

fn nothing(words: &str, is_open: bool) -> String {
    match (is_open, words.is_empty()) {
        (true, true) => "I know nothing that is open and may be shown here.".into(),
        (true, false) => "I know nothing open with these words that may be shown here.".into(),
        (false, true) => "I know no conversations that may be shown here yet.".into(),
        (false, false) => "I know no conversations with these words that may be shown here.".into(),
    }
}

fn read_beside(memory: &Memory, read_scope: &ReadScope, page: EpisodePage) -> Result<Found, azera_memory::Error> {
    let mut found = Found { page, memories: HashMap::new(), before: HashMap::new() };
    for episode in &found.page.episodes {
        for matter in &episode.matters {
            let report = match &matter.state {
                MatterState::Resolved(report) => Some(&report.message),
                MatterState::Continued(message) => Some(message),
                MatterState::Open => None,
            };
            for message in std::iter::once(&matter.problem.message).chain(report) {
                if let Some(id) = memory.messages().memory_of(read_scope, message)? {
                    found.memories.insert(message.clone(), id);
                }
            }
        }
        if let Some(before) = &episode.continues
            && let Some(message) = memory.messages().get(read_scope, before)?
        {
            found.before.insert(before.clone(), message.at);
        }
    }
    Ok(found)
}

impl Shown<'_> {
    fn describe(&self, number: usize, episode: &ChatEpisode, is_open: bool) -> String {
        let (first, last) = (self.at.day(episode.occasion.span.0), self.at.day(episode.occasion.span.1));
        let days = if first == last { first } else { format!("{first} to {last}") };
        let title = episode.title.as_ref().map_or_else(String::new, |title| format!(": {}", quote(title)));
        let people = listed(episode.people.iter().map(|author| self.names.of(author)));
        let mut text = format!("{number}. {days}, {people} ({}){title}\n", self.place(episode));
        if let Some(why) = &episode.why {
            text.push_str(&format!("   - why: {}\n", quote(why)));
        }
        if let Some(cause) = &episode.cause {
            text.push_str(&format!("   - of that {}, on {}\n", quote(&cause.said), self.at.day(cause.said.at)));
        }
        let wanted = |matter: &&Matter| !is_open || matter.state == MatterState::Open;
        for matter in episode.matters.iter().rev().filter(wanted).take(MATTERS) {
            text.push_str(&format!("   - {}\n", self.matter(matter)));
        }
        if !episode.names.is_empty() {
            text.push_str(&format!("   - named: {}\n", listed(episode.names.iter().cloned())));
        }
        if let Some(at) = episode.continues.as_ref().and_then(|before| self.found.before.get(before)) {
            text.push_str(&format!("   - goes on with {}\n", self.at.day(*at)));
        }
        text
    }

    /// Returns where a conversation was: the name of its chat, or else who can read it.
    fn place(&self, episode: &ChatEpisode) -> String {
        let place = (episode.occasion.chat.clone(), episode.occasion.scope.clone());
        match (self.places.get(&place), &episode.occasion.scope) {
            (Some(name), _) => format!("in {}", shortened(name, "", PLACE_CHARS).as_str()),
            (None, Scope::Dm(_)) => "in direct messages".to_owned(),
            (None, scope) => scope.to_string(),
        }
    }

    fn matter(&self, matter: &Matter) -> String {
        let Matter { problem, author, state } = matter;
        let (kind, who) = (problem.kind.as_str(), self.name(author));
        let words = format!("{kind} of {who}: {}", self.words(problem.text.as_str(), &problem.message));
        match state {
            MatterState::Open => format!("open, {words}"),
            MatterState::Continued(message) => format!("said again later, {words}{}", self.source(message)),
            MatterState::Resolved(report) => {
                let said = self.words(report.text.as_str(), &report.message);
                format!("resolved, {words}; {}: {said}", self.at.day(report.at))
            }
        }
    }

    fn name(&self, author: &Author) -> String {
        self.names.of(author)
    }

    fn words(&self, text: &str, message: &MessageId) -> String {
        format!("\"{}\"{}", shortened(text, "", SHOWN).as_str(), self.source(message))
    }

    fn source(&self, message: &MessageId) -> String {
        self.found.memories.get(message).map_or_else(String::new, |id| format!(" (`{id}`)"))
    }
}

fn quote(quote: &Quote) -> String {
    let source = quote.memory.map_or_else(String::new, |id| format!(" (`{id}`)"));
    format!("\"{}\"{source}", shortened(&quote.text, "", SHOWN).as_str())
}

fn listed(names: impl Iterator<Item = String>) -> String {
    let names: Vec<String> = names.collect();
    let more = if names.len() > PEOPLE { format!(" and {} more", names.len() - PEOPLE) } else { String::new() };
    format!("{}{more}", names.into_iter().take(PEOPLE).collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_page_are_told_apart() {
        assert_eq!(asked(""), ("", 1));
        assert_eq!(asked("2"), ("", 2));
        assert_eq!(asked("red boat"), ("red boat", 1));
        assert_eq!(asked("red boat 3"), ("red boat", 3));
        assert_eq!(asked("summer 2026"), ("summer 2026", 1));
    }
}
