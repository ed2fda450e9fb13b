//! What a persona brings into every turn without a search: its newest diary entry of this audience, its newest dream
//! and thought of the last day, and its working notes of the chat.

use std::collections::HashSet;

use azera_memory::{Hit, Kind, MemoryRow, MessageRow, NOTES, ReadScope, Shown, Validity};
use azera_types::{ChatId, MessageId, Span, Timestamp};

use crate::error::Error;
use crate::turn::Turns;

/// Hours for which dreams and thoughts are carried: a day and a long night.
const AWAKE_HOURS: i64 = 36;

/// Days for which the diary entry of the last conversation is carried.
const DIARY_DAYS: i64 = 7;

/// Newest writings searched.
const LOOKED_AT: usize = 12;

/// The signal of a hit that no search found.
const CARRIED: &str = "carried";

/// The carried writings, in order of importance, and the working notes.
#[derive(Debug, Default)]
pub(crate) struct Carried {
    pub(crate) writings: Vec<Hit>,
    pub(crate) notes: Option<Hit>,
}

impl Carried {
    /// Drops writings whose sources the conversation already shows.
    pub(crate) fn beyond(mut self, shown: &[MessageRow]) -> Self {
        let shown: HashSet<&MessageId> = shown.iter().map(|row| &row.id).collect();
        let says_more = |hit: &Hit| {
            hit.memory.sources.is_empty() || hit.memory.sources.iter().any(|source| !shown.contains(source))
        };
        self.writings.retain(says_more);
        self.notes = self.notes.filter(says_more);
        self
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.writings.is_empty() && self.notes.is_none()
    }
}

impl Turns {
    /// Returns what `persona` carries into a turn in `chat`, within its read scope.
    pub(crate) async fn carried(&self, read_scope: &ReadScope, chat: &ChatId) -> Result<Carried, Error> {
        let (read_scope, chat, now) = (read_scope.clone(), chat.clone(), self.services.clock.now());
        self.services
            .blocking(move |memory| {
                let since = |span: Span| now.checked_sub(span).unwrap_or(Timestamp::MIN);
                let (awake, lately) =
                    (since(Span::new().hours(AWAKE_HOURS)), since(Span::new().hours(DIARY_DAYS * 24)));
                let newest = |kind, since: Timestamp, of_place: bool| {
                    let mut found =
                        memory.writings().list(&read_scope, &[kind], LOOKED_AT)?.into_iter().map(|(memory, _)| memory);
                    let wanted = |row: &MemoryRow| row.at >= since && (!of_place || row.scope == *read_scope.place());
                    Ok::<_, azera_memory::Error>(found.find(wanted).map(|memory| hit(memory, CARRIED)))
                };
                let mut writings = Vec::new();
                // People ask about a dream the morning after, so it comes first.
                writings.extend(newest(Kind::Dream, awake, false)?);
                writings.extend(newest(Kind::Diary, lately, true)?);
                writings.extend(newest(Kind::Reflection, awake, false)?);
                Ok(Carried {
                    writings,
                    notes: memory.writings().notes(&read_scope, &chat)?.map(|memory| hit(memory, NOTES)),
                })
            })
            .await
    }
}

fn hit(memory: MemoryRow, signal: &'static str) -> Hit {
    Hit {
        snippet: memory.text.clone(),
        shown: Shown::new(),
        score: 0.0,
        signals: vec![signal],
        memory,
        validity: Validity::default(),
        again: Vec::new(),
    }
}
