//! What is to be learnt: which exchanges, and how they stood before the model.

use std::collections::BTreeSet;
use std::sync::Arc;

use azera_affect::Bond;
use azera_memory::{Kind, MemoryRow, MessageRow, ReadScope, TrainableExchange};
use azera_personas::{Persona, Speaker};
use azera_prompt::{Budget, Form, Line, PromptParts, RecalledMemory, compose, form_for};
use azera_types::{ChatId, MessageId, Place, PlaceKind, ReadableScopes};

use super::lora_store::LoraRecord;
use super::serve::{TrainingLogEntry, TrainingOutcome};
use super::{HearthState, PreparedExample, TrainingExample};
use crate::background::PersonaPlace;
use crate::engine::Engine;
use crate::error::Error;
use crate::overrides::Overrides;
use crate::turn::recollection;
use crate::vectors::cosine;

/// Exchanges looked at: the most surprising ones. The buffer that is learnt from has no more.
const BUFFER: usize = 256;

/// Exchanges more alike than this are one; a choice of our own.
const ALIKE: f32 = 0.9;

/// Of so many exchanges one is left out, to see what becomes of what is not learnt.
const ONE_LEFT_OUT_OF: usize = 8;

/// Older exchanges, and lines of the persona's own, that must not suffer: so many are looked at.
const LOOKED_AFTER: usize = 16;

/// Exchanges from which on it is worth while to learn again what stays when something was forgotten.
const FEW: usize = 4;

/// Tokens of a lesson's prompt at most: what stands before an exchange is there to place it.
const PROMPT_TOKENS: usize = 1_280;

/// Where something is learnt.
pub(super) struct TrainingContext {
    pub(super) chat: ChatId,
    pub(super) place: Place,
    pub(super) read_scope: ReadScope,
    pub(super) persona: Persona,
    pub(super) overrides: Arc<Overrides>,
    pub(super) form: Form,
    /// What serves there by now.
    pub(super) serving: Option<LoraRecord>,
    pub(super) entries: Vec<TrainingLogEntry>,
    /// Whether it is another machine that learns.
    pub(super) offload: bool,
}

/// What is to be learnt, and what is not.
pub(super) struct SelectedExamples {
    pub(super) training_examples: Vec<PreparedExample>,
    pub(super) older: Vec<PreparedExample>,
}

impl Engine {
    /// Where a home's persona learns, by the platform's word of this moment.
    pub(super) async fn training_context(
        &self,
        burning: &HearthState,
        home: &PersonaPlace,
    ) -> Result<Option<TrainingContext>, Error> {
        match self.0.agenda.open_chat(home) {
            Some(chat) => self.training_context_in(burning, home, chat).await,
            None => Ok(None),
        }
    }

    /// The same by a chat of the home.
    pub(super) async fn training_context_in(
        &self,
        burning: &HearthState,
        home: &PersonaPlace,
        chat: ChatId,
    ) -> Result<Option<TrainingContext>, Error> {
        let Some(base_fingerprint) = burning.base_fingerprint(&self.model().info().name) else { return Ok(None) };
        let Ok(platform) = self.platform(&home.platform) else { return Ok(None) };
        let place = self.place_unasked(platform.as_ref(), &chat).await?;
        let Some(place) = place.filter(|place| place.scope() == home.place) else { return Ok(None) };
        let played = match self.persona(place.shared_realm(), &home.persona).await {
            Ok(played) => played,
            Err(Error::NoPersona(_)) => return Ok(None),
            Err(error) => return Err(error),
        };
        let read_scope = ReadScope::in_place(home.persona.clone(), &place, &ReadableScopes::default());
        Ok(Some(TrainingContext {
            serving: burning.lora_store.serving(&read_scope, &base_fingerprint),
            entries: self.training_log_of(home).await?,
            form: form_for(&self.model().info().family),
            overrides: self.overrides(&home.platform, &home.place).await?,
            persona: played.persona,
            offload: burning.hearth.transport.is_some(),
            chat,
            place,
            read_scope,
        }))
    }

    /// What may be learnt and was not yet, the most surprising first, and what was.
    async fn fresh(
        &self,
        context: &TrainingContext,
    ) -> Result<(Vec<TrainableExchange>, Vec<TrainableExchange>), Error> {
        let (read_scope, offload) = (context.read_scope.clone(), context.offload);
        let known = context.serving.as_ref().map_or_else(BTreeSet::new, |serving| serving.said.clone());
        // What somebody took back is not learnt over again.
        let back = context.entries.iter().filter(|entry| entry.outcome == TrainingOutcome::RolledBack);
        let back: BTreeSet<MessageId> = back.flat_map(|entry| entry.said.iter().cloned()).collect();
        self.blocking(move |memory| {
            let is_fresh = |id: &MessageId, _| !known.contains(id) && !back.contains(id);
            let fresh = memory.trainable_exchanges(&read_scope, offload, &is_fresh, BUFFER)?;
            let old = match known.is_empty() {
                true => Vec::new(),
                false => memory.trainable_exchanges(&read_scope, offload, &|id, _| known.contains(id), LOOKED_AFTER)?,
            };
            Ok((fresh, old))
        })
        .await
    }

    pub(super) async fn choose(
        &self,
        context: &TrainingContext,
        wanted: usize,
        again: bool,
    ) -> Result<Option<SelectedExamples>, Error> {
        let left_out = wanted.div_ceil(ONE_LEFT_OUT_OF);
        let (fresh, old) = self.fresh(context).await?;
        let least = if again { FEW + 1 } else { wanted + left_out };
        if fresh.len() < least {
            return Ok(None);
        }
        let vectors = self.embed(fresh.iter().map(|it| it.said.text.as_str().to_owned()).collect()).await?;
        let mut taken: Vec<(&TrainableExchange, &Vec<f32>)> = Vec::new();
        for (lived, vector) in fresh.iter().zip(&vectors) {
            let is_new = taken.iter().all(|(_, other)| cosine(vector, other) < ALIKE);
            // Who is in danger is helped, and nobody learns from it.
            let tags = self.tags(&lived.said.text, vector);
            let helped = !context.overrides.rules.matching(&tags, &Bond::new()).help.is_empty();
            if is_new && !helped {
                taken.push((lived, vector));
            }
        }
        if taken.len() < least {
            return Ok(None);
        }
        // The least surprising of them are left out.
        let learnt = wanted.min(taken.len() - left_out.min(taken.len() / 2));
        let (chosen, rest) = taken.split_at(learnt);
        let prepare = |lived: &TrainableExchange| {
            let training_example = self.training_example(context, lived)?;
            Some(PreparedExample {
                training_example,
                said: lived.said.id.clone(),
                provenance: lived.provenance.clone(),
            })
        };
        let training_examples: Vec<PreparedExample> = chosen.iter().filter_map(|(lived, _)| prepare(lived)).collect();
        let older = rest.iter().map(|(lived, _)| *lived).take(LOOKED_AFTER).chain(&old);
        let older = older.filter_map(prepare).collect();
        Ok((!training_examples.is_empty()).then_some(SelectedExamples { training_examples, older }))
    }

    /// An exchange in the form of a turn: with what was recalled, the last messages before it, and no lore, role or manner of the day.
    fn training_example(&self, context: &TrainingContext, lived: &TrainableExchange) -> Option<TrainingExample> {
        let line = |row: &MessageRow| Line {
            depth: row.depth,
            speaker: row.author.person().map(|_| row.author.name().to_owned()),
            text: row.text.as_str().to_owned(),
        };
        let history: Vec<Line> = lived.before.iter().map(line).collect();
        let snippet = self.0.memory.config().snippet_chars;
        let recollected = |memory: &MemoryRow| {
            let text: String = memory.text.as_str().chars().take(snippet).collect();
            recollection(memory, &text)
        };
        let (written, said): (Vec<&MemoryRow>, Vec<&MemoryRow>) =
            lived.recalled.iter().partition(|it| it.kind.is_written());
        let recalled: Vec<RecalledMemory> = said.into_iter().map(recollected).collect();
        let carried: Vec<RecalledMemory> =
            written.into_iter().filter(|it| it.kind != Kind::Note).map(recollected).collect();
        let notes = lived.recalled.iter().find(|it| it.kind == Kind::Note).map(|it| it.text.as_str());
        let message = line(&lived.said);
        let parts = PromptParts {
            group: !matches!(context.place.kind, PlaceKind::Dm(_)),
            carried: &carried,
            notes,
            history: &history,
            recalled: &recalled,
            ..PromptParts::new(&context.persona, &message)
        };
        let mut training_example = self.composed(&context.form, &parts, lived.reply.text.as_str())?;
        // A long message may have been cut in its middle to fit.
        let words = lived.said.text.as_str();
        if training_example.messages.last().is_some_and(|last| last.content.ends_with(words)) {
            training_example.words = words.to_owned();
        }
        Some(training_example)
    }

    fn composed(&self, form: &Form, parts: &PromptParts<'_>, reply: &str) -> Option<TrainingExample> {
        let model = self.model();
        let reply_tokens = self.0.config.reply_tokens.min(form.reply_tokens);
        let context_tokens = (PROMPT_TOKENS + reply_tokens).min(model.info().context_tokens);
        let budget = Budget { context_tokens, reply_tokens };
        let count = |text: &str| model.count_tokens(text);
        // A persona that leaves no room learns nothing.
        let prompt = compose(form, parts, budget, &count).ok()?;
        Some(TrainingExample { messages: prompt.messages, words: String::new(), reply: reply.to_owned() })
    }

    /// What the persona's file has it say, asked without its examples before its eyes.
    pub(super) fn voice(&self, context: &TrainingContext) -> Vec<TrainingExample> {
        let mut persona = context.persona.clone();
        let examples = std::mem::take(&mut persona.examples);
        let mut training_examples = Vec::new();
        for example in &examples {
            let said: Vec<_> = example.turns.iter().filter(|turn| turn.speaker != Speaker::Memory).collect();
            for pair in said.windows(2) {
                let [question, recollected] = pair else { continue };
                if question.speaker != Speaker::Person || recollected.speaker != Speaker::Persona {
                    continue;
                }
                let message = Line { depth: 0, speaker: Some("Friend".to_owned()), text: question.text.clone() };
                training_examples.extend(self.composed(
                    &context.form,
                    &PromptParts::new(&persona, &message),
                    &recollected.text,
                ));
            }
        }
        training_examples.truncate(LOOKED_AFTER);
        training_examples
    }

    /// Exchanges of a home that wait to be learnt.
    pub(crate) async fn waiting_to_be_learnt(&self, home: &PersonaPlace) -> Result<usize, Error> {
        let Some(burning) = self.0.hearth.get() else { return Ok(0) };
        match self.training_context(burning, home).await? {
            Some(context) => Ok(self.fresh(&context).await?.0.len()),
            None => Ok(0),
        }
    }
}
