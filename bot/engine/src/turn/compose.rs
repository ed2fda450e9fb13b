//! Stage *compose*: the prompt, and what the reply rests on.

use azera_memory::{Hit, MessageRow};
use azera_prompt::{Abilities, Prompt, PromptParts, RecalledMemory, compose};
use azera_types::Scope;

use super::context::{TurnContext, TurnRequest};
use super::history::{History, recalled_hit, talking};
use super::sources::{ReplySources, origins};
use crate::display_names::DisplayNames;
use crate::error::Error;
use crate::minds::ReplyStyle;
use crate::recall::Recall;
use crate::turn::Turns;

/// A prompt, with what stands in it.
pub(super) struct Composition {
    pub(super) prompt: Prompt,
    pub(super) history: History,
    pub(super) recall: Recall,
    pub(super) style: ReplyStyle,
    /// The places that the reply is built on.
    pub(super) sources: ReplySources,
}

impl Composition {
    /// The recalled memories in the prompt.
    pub(super) fn recalled(&self) -> Vec<&Hit> {
        self.recall.hits.iter().take(self.prompt.recalled_lines).collect()
    }

    /// The carried memories in the prompt.
    pub(super) fn carried(&self) -> Vec<&Hit> {
        carried_in(&self.prompt, &self.history)
    }

    /// Every memory in the prompt.
    pub(super) fn memories(&self) -> Vec<&Hit> {
        let mut memories = self.recalled();
        memories.extend(self.carried());
        memories
    }

    /// The messages of the conversation in the prompt.
    pub(super) fn shown<'a>(&self, context: &'a TurnContext) -> &'a [MessageRow] {
        self.history.shown(context)
    }
}

fn carried_in<'a>(prompt: &Prompt, history: &'a History) -> Vec<&'a Hit> {
    let mut carried: Vec<&Hit> = history.carried.writings.iter().take(prompt.carried_lines).collect();
    carried.extend(history.carried.notes.as_ref().filter(|_| prompt.shows_notes));
    carried
}

impl Turns {
    /// Puts the prompt together.
    pub(super) fn compose_prompt(
        &self,
        request: &TurnRequest,
        context: &TurnContext,
        history: History,
        recall: Recall,
        style: ReplyStyle,
    ) -> Result<Composition, Error> {
        let talking = talking(request, context);
        let names = DisplayNames::new(&context.scope, talking, recall.hits.iter().map(|hit| &hit.memory.author));
        let recollections: Vec<RecalledMemory> = recall.hits.iter().map(|hit| recalled_hit(hit, &names)).collect();
        // A picture is no answer to somebody in danger.
        let abilities = Abilities { draws: history.abilities.draws && !style.is_in_danger(), ..history.abilities };
        let shared = history.parts(context);
        let parts = PromptParts {
            recalled: &recollections,
            style: &style.lines,
            abilities,
            plainly: style.plainly,
            // What is written to somebody in danger is read.
            aloud: shared.aloud && !style.is_in_danger(),
            ..shared
        };
        let count = |text: &str| context.model.count_tokens(text);
        let prompt = compose(&context.form, &parts, history.budget, &count)?;
        let mut memories: Vec<&Hit> = recall.hits.iter().take(prompt.recalled_lines).collect();
        memories.extend(carried_in(&prompt, &history));
        let role_owner = history.role.as_ref().and_then(|role| role.owner.clone());
        let realm = context.persona_owner.clone().or(role_owner).map(Scope::Realm);
        let shown = history.shown(context);
        let before = shown.iter().chain(&request.replied);
        let sources = origins(&request.message, &memories, before, realm.as_ref(), self.services.clock.now());
        Ok(Composition { prompt, history, recall, style, sources })
    }
}
