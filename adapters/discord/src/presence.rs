//! The bot's presence: the mood of the busiest mind.
//!
//! Everyone who shares a server with the bot sees it. So only moods in channels count that their whole server can read.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use azera_types::PersonaId;
use serenity::all::GuildId;
use tokio::time::Instant;

/// Shortest time between two changes.
const BETWEEN: Duration = Duration::from_secs(300);

/// Most minds that are counted; others are not shown.
const MAX_MINDS: usize = 1_000;

/// The moods of minds, and the presence that is shown.
#[derive(Default)]
pub(crate) struct Presence(Mutex<State>);

#[derive(Default)]
struct State {
    minds: HashMap<(GuildId, PersonaId), Mind>,
    shown: Option<(Instant, String)>,
}

struct Mind {
    replies: u32,
    words: String,
}

impl Presence {
    /// Counts a reply in a mood; returns the new presence if it changes.
    pub(crate) fn said(&self, guild: GuildId, persona: &PersonaId, name: &str, mood: &str) -> Option<String> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mind = (guild, persona.clone());
        if state.minds.len() < MAX_MINDS || state.minds.contains_key(&mind) {
            let mind = state.minds.entry(mind).or_insert_with(|| Mind { replies: 0, words: String::new() });
            mind.replies += 1;
            mind.words = format!("{name} feels {mood}");
        }
        if state.shown.as_ref().is_some_and(|(since, _)| since.elapsed() < BETWEEN) {
            return None;
        }
        let busiest = state.minds.values().max_by_key(|mind| mind.replies)?.words.clone();
        state.minds.clear();
        if state.shown.as_ref().is_some_and(|(_, shown)| *shown == busiest) {
            return None;
        }
        state.shown = Some((Instant::now(), busiest.clone()));
        Some(busiest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_busiest_mind_is_shown_and_rarely_changes() {
        tokio::time::pause();
        let presence = Presence::default();
        let persona = PersonaId::new("azera").unwrap();
        let said = |guild: u64, mood: &str| presence.said(GuildId::new(guild), &persona, "Azera", mood);
        assert_eq!(said(1, "calm").as_deref(), Some("Azera feels calm"));
        assert_eq!(said(2, "happy"), None);
        assert_eq!(said(2, "curious"), None);
        assert_eq!(said(1, "sad"), None);
        tokio::time::advance(BETWEEN).await;
        assert_eq!(said(2, "curious").as_deref(), Some("Azera feels curious"));
        tokio::time::advance(BETWEEN).await;
        assert_eq!(said(2, "curious"), None, "this mood is already shown");
        assert_eq!(said(2, "happy").as_deref(), Some("Azera feels happy"));
    }
}
