//! Reviews: counts how a persona is doing in a place, so that it can think about that.

use std::collections::BTreeSet;

use azera_memory::Kind;
use azera_types::{ChatId, PersonId, Scope, Timestamp};

use super::agenda::PersonaPlace;
use super::schedule::before;
use super::work::A_WEEK;
use super::write::WritingContext;
use crate::background::Background;
use crate::error::Error;

/// Maximum number of messages counted; above it, the review says "more than".
const COUNTED: usize = 5_000;

/// Maximum number of writings counted.
const WRITINGS: usize = 100;

/// Maximum number of themes counted.
const THEMES: usize = 50;

impl Background {
    /// Returns one line per topic, from what everybody in the place may see.
    pub(super) async fn numbers(
        &self,
        home: &PersonaPlace,
        at: &WritingContext,
        now: Timestamp,
    ) -> Result<String, Error> {
        // Only this place counts; what happens in others is for those who are there.
        let scope = at.place.scope();
        let here = |of: &Scope| *of == scope || *of == home.place;
        let (since, read_scope, own) = (before(now, A_WEEK), at.read_scope.clone(), at.read_scope.narrowed_to(here));
        let (recent, written, stats, themes) = self
            .services
            .blocking(move |memory| {
                let recent = memory.writings().recent(&read_scope, since, COUNTED)?;
                let written =
                    memory.writings().list(&read_scope, &[Kind::Dream, Kind::Reflection, Kind::Diary], WRITINGS)?;
                // A review goes on without them.
                let themes = own.map(|own| memory.themes().list(&own, 0, THEMES).unwrap_or_default().themes);
                Ok((recent, written, memory.stats(&read_scope)?, themes.unwrap_or_default()))
            })
            .await?;
        let recent: Vec<_> = recent.into_iter().filter(|row| here(&row.scope)).collect();
        let people: BTreeSet<&PersonId> = recent.iter().filter_map(|row| row.author.person()).collect();
        let chats: BTreeSet<&ChatId> = recent.iter().filter_map(|row| row.chat.as_ref()).collect();
        let heard = recent.iter().filter(|row| row.kind == Kind::Message).count();
        let more = if recent.len() == COUNTED { "more than " } else { "" };
        let mut lines = vec![format!(
            "Talks: I heard {more}{} of {} in {}.",
            counted(heard, "message", "messages"),
            counted(people.len(), "person", "people"),
            counted(chats.len(), "conversation", "conversations"),
        )];
        let wrote = |kinds: &[Kind]| {
            written
                .iter()
                .filter(|(memory, _)| memory.at >= since && here(&memory.scope) && kinds.contains(&memory.kind))
                .count()
        };
        let (dreams, entries) = (wrote(&[Kind::Dream]), wrote(&[Kind::Reflection, Kind::Diary]));
        lines.push(format!(
            "Sleep: I dreamt {}, and wrote {} into my journal and diary.",
            counted(dreams, "time", "times"),
            counted(entries, "entry", "entries")
        ));
        let remembered = stats.counts.iter().filter(|(_, of, _)| here(of)).map(|(.., count)| count).sum();
        lines.push(format!("Memory: I remember {} here.", counted(remembered, "thing", "things")));
        let new = themes.iter().filter(|theme| theme.said.0 >= since).count();
        if !themes.is_empty() {
            let themes = counted(themes.len(), "theme", "themes");
            lines.push(format!("Themes: people come back to {themes} here, {new} of them new this week."));
        }
        if let Some(state) = self.minds.states.state(&home.persona, &home.place, now) {
            let share = |value: f64| (value * 100.0).round();
            lines.push(format!(
                "Now: my energy is {} of 100, my need for sleep {} of 100, and I feel {}.",
                share(state.energy),
                share(state.pressure),
                state.mood
            ));
        }
        lines.push(format!("Health: {}.", self.health().await?));
        Ok(lines.into_iter().map(|line| format!("- {line}")).collect::<Vec<_>>().join("\n"))
    }
}

impl Background {
    /// Describes which parts work. It leaves out queue lengths, which would tell about other places.
    async fn health(&self) -> Result<String, Error> {
        let meaning = match self.indexer.embed(vec!["health".to_owned()]).await {
            Ok(_) => "I can search my memory by meaning",
            Err(_) => "I cannot search my memory by meaning, only by words",
        };
        let filed = match self.services.blocking(|memory| memory.indexing().queued()).await? {
            0 => "all I heard is filed",
            _ => "some of what I heard is not filed yet",
        };
        Ok(format!("{meaning}, {filed}, and I think with {}", self.services.model().info().name))
    }
}

fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}
