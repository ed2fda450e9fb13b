//! What stands in a prompt before recall: the newest part of the conversation that fits, lore, and what the persona carries with it.

use azera_memory::{Hit, Kind, MemoryRow, MessageRow};
use azera_personas::{Lorebook, Persona, Talk};
use azera_prompt::{Abilities, Budget, Line, MemoryOrigin, PromptParts, RecalledMemory, history_cut};
use azera_types::{Author, PlaceKind, Timestamp};

use super::context::{TurnContext, TurnRequest};
use super::seeing::about;
use crate::carried::Carried;
use crate::display_names::DisplayNames;
use crate::error::Error;
use crate::services::LoadedPersona;
use crate::turn::Turns;

/// The parts of a prompt that do not depend on recall.
pub(super) struct History {
    pub(super) lines: Vec<Line>,
    pub(super) last: Line,
    pub(super) lore: Vec<String>,
    /// The role that the person plays.
    pub(super) role: Option<LoadedPersona>,
    pub(super) carried: Carried,
    carried_lines: Vec<RecalledMemory>,
    pub(super) budget: Budget,
    pub(super) abilities: Abilities,
    /// Whether the reply is heard.
    aloud: bool,
    /// The first message of the conversation that the prompt shows.
    cut: usize,
    now: Timestamp,
}

impl History {
    /// The prompt's parts, without recalled memories.
    pub(super) fn parts<'a>(&'a self, context: &'a TurnContext) -> PromptParts<'a> {
        PromptParts {
            abilities: self.abilities,
            aloud: self.aloud,
            lore: &self.lore,
            user_persona: self.role.as_ref().map(|role| &role.persona),
            group: !matches!(context.place.kind, PlaceKind::Dm(_)),
            history: &self.lines,
            carried: &self.carried_lines,
            zone: context.calendar.zone.clone(),
            now: Some(self.now),
            notes: self.carried.notes.as_ref().map(|hit| hit.snippet.as_str()),
            ..PromptParts::new(&context.persona, &self.last)
        }
    }

    /// The messages of the conversation that the prompt shows.
    pub(super) fn shown<'a>(&self, context: &'a TurnContext) -> &'a [MessageRow] {
        context.recent.get(self.cut..).unwrap_or_default()
    }

    /// Whether the persona carries this memory into the turn anyway.
    pub(super) fn carries(&self, hit: &Hit) -> bool {
        self.carried.writings.iter().any(|carried| carried.memory.id == hit.memory.id)
    }

    fn measure(&self, context: &TurnContext) -> Result<usize, Error> {
        let count = |text: &str| context.model.count_tokens(text);
        Ok(history_cut(&context.form, &self.parts(context), self.budget, &count)?)
    }
}

impl Turns {
    /// Loads and measures what stands in the prompt before recall.
    pub(super) async fn load_history(&self, request: &TurnRequest, context: &TurnContext) -> Result<History, Error> {
        let config = &self.services.config;
        let names = DisplayNames::new(&context.scope, talking(request, context), []);
        let lines: Vec<Line> = context.recent.iter().map(|row| line(row, &names)).collect();
        let mut last = line(&request.message, &names);
        if let Some(replied) = &request.replied {
            last.text = about(&last.text, replied, names.of_person(&replied.author).as_deref());
        }
        let budget = Budget {
            context_tokens: config.context_tokens.min(context.model.info().context_tokens),
            reply_tokens: config.reply_tokens.min(context.form.reply_tokens) + config.thoughts_of(context.model.info()),
        };
        let role = self.services.role(context.place.shared_realm(), &config.user_persona).await?;
        let played = role.as_ref().map(|role| &role.persona);
        let lore = context.lorebook.as_ref().map_or_else(Vec::new, |book| matching_lore(book, context, &last, played));
        let abilities = Abilities {
            draws: self.pictures.settings().is_some_and(|settings| settings.tells(context.model.info())),
            dreams: context.overrides.garden.dreams,
        };
        let aloud = self.is_heard(request, context);
        let (carried, carried_lines) = Default::default();
        let now = self.services.clock.now();
        let mut history =
            History { lines, last, lore, role, carried, carried_lines, budget, abilities, aloud, cut: 0, now };
        history.cut = history.measure(context)?;
        // Carried memories use part of the budget. Skip those that the history already shows.
        let carried = self.carried(&context.read_scope, &request.message.chat).await?;
        history.carried = carried.beyond(history.shown(context));
        if !history.carried.is_empty() {
            history.carried_lines = history.carried.writings.iter().map(|hit| recalled_hit(hit, &names)).collect();
            history.cut = history.measure(context)?;
        }
        Ok(history)
    }
}

/// The authors of the conversation.
pub(super) fn talking<'a>(request: &'a TurnRequest, context: &'a TurnContext) -> impl Iterator<Item = &'a Author> {
    context.recent.iter().chain([&request.message]).map(|row| &row.author)
}

fn line(row: &MessageRow, names: &DisplayNames) -> Line {
    Line { depth: row.depth, speaker: names.of_person(&row.author), text: row.text.as_str().to_owned() }
}

/// Returns the lorebook entries that the conversation activates.
fn matching_lore(book: &Lorebook, context: &TurnContext, last: &Line, role: Option<&Persona>) -> Vec<String> {
    let mut messages: Vec<&str> = context.recent.iter().map(|row| row.text.as_str()).collect();
    messages.push(&last.text);
    let persona = &context.persona;
    let personality = persona.psychological_profile.other.iter().map(|part| part.text.as_str());
    let talk = Talk {
        messages: &messages,
        count: last.depth.saturating_add(1).max(messages.len() as u64),
        description: &persona.core_identity,
        personality: &personality.collect::<Vec<_>>().join("\n"),
        scenario: &persona.prime_directive.dynamic,
        user_persona: role.map_or("", |role| &role.core_identity),
    };
    book.matching_talk(&talk).into_iter().map(|entry| entry.prompt_text()).collect()
}

/// A search hit as a prompt shows it.
pub(super) fn recalled_hit(hit: &Hit, names: &DisplayNames) -> RecalledMemory {
    let (since, until) = (hit.validity.since, hit.validity.until);
    RecalledMemory { since, until, ..recalled_memory(&hit.memory, hit.snippet.as_str(), names) }
}

/// A memory as a prompt shows it, with this much of its text.
pub(crate) fn recalled_memory(memory: &MemoryRow, text: &str, names: &DisplayNames) -> RecalledMemory {
    let speaker = names.of_person(&memory.author);
    let came = match memory.kind {
        Kind::Message | Kind::Reply | Kind::Fact => MemoryOrigin::Said,
        Kind::Diary | Kind::Note => MemoryOrigin::Diary,
        Kind::Reflection => MemoryOrigin::Journal,
        Kind::Dream => MemoryOrigin::Dreamt,
        Kind::Piece => MemoryOrigin::MadeUp,
        Kind::CheckIn => MemoryOrigin::CheckIn,
    };
    RecalledMemory::new(came, speaker, text.to_owned(), memory.at)
}
