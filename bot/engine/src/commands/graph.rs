//! `/graph`: who and what people named, and how that belongs together.

use std::collections::HashSet;

use azera_adapter::{Chart, ChartLink, CommandAnswer};
use azera_memory::{
    Entity, EntityLink, Label, MAX_SUGGESTED, MemoryRow, NewFact, different_names, same_names, shortened,
};
use azera_types::{Author, MemoryId, Text, Timestamp};

use super::{CommandContext, done, refused};
use crate::commands::Commands;
use crate::error::Error;

/// Most relations and most names in company that are shown of one entity.
const SHOWN_RELATIONS: usize = 20;
const SHOWN_TOGETHER: usize = 10;

/// Most entities of one name that are shown.
const SHOWN_ENTITIES: usize = 4;

/// Most source memories named for one relation.
const SHOWN_SOURCES: usize = 3;

/// Most memories shown that are indirectly related, and most characters of each.
const SHOWN_FURTHER: usize = 3;
const FURTHER_CHARS: usize = 120;

/// Most characters shown of a name.
const NAME_CHARS: usize = 48;

/// Confidence below which an answer says "perhaps".
const SURE: f32 = 0.7;

const USAGE: &str = "`/graph NAME`, `/graph list`, `/graph merge ANN = ANNIE` or `/graph split ANN = ANNIE`.";

impl Commands {
    pub(super) async fn graph_command(&self, at: &CommandContext<'_>, arguments: &str) -> Result<CommandAnswer, Error> {
        let (verb, rest) = arguments.split_once(char::is_whitespace).unwrap_or((arguments, ""));
        match (verb, rest.trim()) {
            ("", _) | ("list", "") => self.list_names(at).await,
            ("merge", "") | ("split", "") => Ok(refused(USAGE.into())),
            ("merge", names) => self.state_names(at, names, true).await,
            ("split", names) => self.state_names(at, names, false).await,
            _ => self.show_entities(at, arguments).await,
        }
    }

    async fn list_names(&self, at: &CommandContext<'_>) -> Result<CommandAnswer, Error> {
        let read_scope = at.read_scope.clone();
        let names = self.services.blocking(move |memory| memory.graph().names(&read_scope)).await?;
        if names.most.is_empty() {
            return Ok(done("I know no names yet that may be shown here.".into()));
        }
        let mut text = String::from("Most mentioned names, with their number of memories:\n");
        for (name, count) in names.most.iter().take(MAX_SUGGESTED) {
            text.push_str(&format!("- {} ({count})\n", short(name)));
        }
        if names.is_cut {
            text.push_str("There are too many names to count all of them.\n");
        }
        text.push_str("`/graph NAME` shows the relations of a name.");
        Ok(done(text))
    }

    async fn show_entities(&self, at: &CommandContext<'_>, name: &str) -> Result<CommandAnswer, Error> {
        let entities = self.entities(at, name).await?;
        let Some(first) = entities.first() else { return Ok(refused(unknown(name))) };
        let mut text = String::new();
        if entities.len() > 1 {
            text.push_str(&format!("\"{}\" may mean {} different people or things:\n\n", short(name), entities.len()));
        }
        for entity in entities.iter().take(SHOWN_ENTITIES) {
            text.push_str(&describe(at, entity));
            text.push('\n');
        }
        text.push_str(&self.further(at, name, &entities).await?);
        text.push_str("`/forget mNUMBER` forgets a memory, and all that rests on it here.");
        let chart = (!first.links.is_empty()).then(|| chart(at, first, text.clone()));
        Ok(CommandAnswer { chart, ..done(text) })
    }

    /// Returns memories to which relations lead from a name, and that do not name it themselves.
    async fn further(&self, at: &CommandContext<'_>, name: &str, entities: &[Entity]) -> Result<String, Error> {
        let (read_scope, name) = (at.read_scope.clone(), name.to_owned());
        let near: HashSet<MemoryId> =
            entities.iter().flat_map(|entity| &entity.links).flat_map(|link| link.sources.clone()).collect();
        let found = self.services.blocking(move |memory| {
            let reached = memory.graph().reach(&read_scope, &name, Timestamp::MAX)?.into_iter().map(|(id, _)| id);
            let mut found = Vec::new();
            for id in reached.filter(|id| !near.contains(id)).take(SHOWN_FURTHER) {
                found.extend(memory.memories().get(&read_scope, id)?);
            }
            Ok(found)
        });
        let line = |memory: MemoryRow| {
            let said = shortened(&memory.text, "", FURTHER_CHARS);
            format!("- indirectly related: `{}` \"{}\"\n", memory.id, said.as_str())
        };
        Ok(found.await?.into_iter().map(line).collect())
    }

    async fn entities(&self, at: &CommandContext<'_>, name: &str) -> Result<Vec<Entity>, Error> {
        let (read_scope, name, calendar) = (at.read_scope.clone(), name.to_owned(), at.calendar.clone());
        self.services.blocking(move |memory| memory.graph().about(&read_scope, &name, &calendar)).await
    }

    /// Keeps the statement that two names mean the same, or do not, as a memory of the person. The newest one counts.
    async fn state_names(&self, at: &CommandContext<'_>, names: &str, is_same: bool) -> Result<CommandAnswer, Error> {
        let Some((one, other)) = two_names(names) else { return Ok(refused(USAGE.into())) };
        for name in [one, other] {
            if self.entities(at, name).await?.is_empty() {
                return Ok(refused(unknown(name)));
            }
        }
        let text = if is_same { same_names(one, other) } else { different_names(one, other) };
        let fact = NewFact {
            persona: at.chat.persona.clone(),
            chat: at.chat.id.clone(),
            scope: at.place.scope(),
            author: Author::Person { id: at.line.person.clone(), name: at.line.name.clone() },
            text: Text::new(text),
            at: self.services.clock.now(),
        };
        let id = self.services.blocking(move |memory| memory.memories().store_fact(fact)).await?;
        self.indexer.wake();
        let (one, other) = (short(one), short(other));
        let means = if is_same { "the same" } else { "different people or things" };
        Ok(done(format!(
            "{one} and {other} now count as {means} wherever this memory may be shown. `/forget {id}` undoes it."
        )))
    }
}

fn unknown(name: &str) -> String {
    format!("Nobody named \"{}\" in what may be shown here. `/graph list` lists the names that I know.", short(name))
}

fn short(name: &str) -> String {
    shortened(name, "", NAME_CHARS).as_str().to_owned()
}

/// Splits `Ann = Annie`, or two single words.
fn two_names(text: &str) -> Option<(&str, &str)> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let (one, other) = match (text.split_once('='), words.as_slice()) {
        (Some((one, other)), _) => (one.trim(), other.trim()),
        (None, [one, other]) => (*one, *other),
        _ => return None,
    };
    (!one.is_empty() && !other.is_empty() && !other.contains('=')).then_some((one, other))
}

fn percent(share: f32) -> u8 {
    (share.clamp(0.0, 1.0) * 100.0).round() as u8
}

/// Returns a relation in words, in the second person for whoever sits at the terminal.
pub(super) fn relation_in_words(label: Label, subject: &str, object: &str, to_you: bool) -> String {
    if to_you { label.phrase_to_you(subject, object) } else { label.phrase(subject, object) }
}

/// Returns an entity in words.
fn describe(at: &CommandContext<'_>, entity: &Entity) -> String {
    let mut text = format!("**{}**", short(&entity.name));
    if let Some(kind) = entity.kind {
        text.push_str(&format!(", a {}", kind.as_str()));
    }
    let others = entity.other_names.iter().map(|(name, sure)| format!("{} ({} % sure)", short(name), percent(*sure)));
    let others: Vec<String> = others.collect();
    if !others.is_empty() {
        text.push_str(&format!(", also {}", others.join(", ")));
    }
    let (first, last) = (at.day(entity.named.0), at.day(entity.named.1));
    let days = match entity.is_cut {
        true => format!("most recently on {last}"),
        false if first == last => format!("on {first}"),
        false => format!("from {first} to {last}"),
    };
    text.push_str(&format!(". Named in {}, {days}.\n", memories(entity)));
    let (together, relations): (Vec<&EntityLink>, Vec<&EntityLink>) =
        entity.links.iter().partition(|link| link.label == Label::Together);
    for link in relations.iter().take(SHOWN_RELATIONS) {
        let perhaps = if link.confidence < SURE { "perhaps: " } else { "" };
        let (subject, object) = (short(&link.subject), short(&link.object));
        let phrase = relation_in_words(link.label, &subject, &object, at.is_at_the_terminal());
        let (said, until) = (days_said(at, link), at.until(link.until));
        text.push_str(&format!("- {perhaps}{phrase}{until} ({said}, {})\n", sources(&link.sources)));
    }
    let company: Vec<String> = together
        .iter()
        .take(SHOWN_TOGETHER)
        .map(|link| format!("{}{} ({})", short(&link.other), at.until(link.until), sources(&link.sources)))
        .collect();
    if !company.is_empty() {
        text.push_str(&format!("- in one sentence with {}\n", company.join(", ")));
    }
    text
}

/// Returns on which days a relation was said. When it began to hold is not known: people tell of what is to come, too.
fn days_said(at: &CommandContext<'_>, link: &EntityLink) -> String {
    let (first, last) = (at.day(link.said.0), at.day(link.said.1));
    if first == last { format!("said on {first}") } else { format!("said from {first} to {last}") }
}

/// Returns the number of memories that name an entity.
fn memories(entity: &Entity) -> String {
    let least = if entity.is_cut { "at least " } else { "" };
    format!("{least}{}", super::memory::memories(entity.mentions))
}

fn sources(ids: &[MemoryId]) -> String {
    let mut shown: Vec<String> = ids.iter().take(SHOWN_SOURCES).map(|id| format!("`{id}`")).collect();
    if let Some(more) = ids.len().checked_sub(SHOWN_SOURCES).filter(|more| *more > 0) {
        shown.push(format!("{more} more"));
    }
    shown.join(", ")
}

/// Returns the picture of an entity and those around it.
fn chart(at: &CommandContext<'_>, entity: &Entity, caption: String) -> Chart {
    let most = entity.links.iter().map(|link| link.sources.len()).max().unwrap_or(1).max(1);
    let link = |link: &EntityLink| ChartLink {
        label: link.other.clone(),
        words: format!("{}{}", link.label.words(), at.until(link.until)),
        percent: u8::try_from(link.sources.len() * 100 / most).unwrap_or(100),
        is_plain: link.label == Label::Together,
    };
    let kind = entity.kind.map_or_else(String::new, |kind| format!("a {}, ", kind.as_str()));
    Chart {
        title: entity.name.clone(),
        subtitle: format!("{kind}named in {}", memories(entity)),
        links: entity.links.iter().map(link).collect(),
        caption,
        ..Chart::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_names_are_read_with_and_without_a_sign() {
        assert_eq!(two_names("Ann = Annie Lee"), Some(("Ann", "Annie Lee")));
        assert_eq!(two_names("Ann Annie"), Some(("Ann", "Annie")));
        assert_eq!(two_names("Ann Annie Lee"), None);
        assert_eq!(two_names("Ann = "), None);
        assert_eq!(two_names("Ann = Annie = Nan"), None);
    }
}
