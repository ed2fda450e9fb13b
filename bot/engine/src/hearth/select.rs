//! Selects the exchanges to train on, and composes the prompts that the model sees in training.

use std::collections::BTreeSet;
use std::sync::Arc;

use azera_affect::Bond;
use azera_memory::words::telling_words;
use azera_memory::{Kind, MemoryRow, MessageRow, ReadScope, TrainableExchange, shortened};
use azera_personas::{Persona, Speaker};
use azera_prompt::{Budget, Form, Line, PromptParts, RecalledMemory, compose, form_of};
use azera_types::{ChatId, MessageId, Place, PlaceKind, ReadableScopes, TimeZone};

use super::lora_store::LoraRecord;
use super::serve::{TrainingLogEntry, TrainingOutcome};
use super::{HearthState, PreparedExample, TrainingExample};
use crate::background::PersonaPlace;
use crate::display_names::DisplayNames;
use crate::error::Error;
use crate::hearth::Learning;
use crate::overrides::Overrides;
use crate::turn::recalled_memory;
use crate::vectors::cosine;

/// Most surprising exchanges that are considered; there are never more candidates than that.
const BUFFER: usize = 256;

/// Cosine similarity above which two exchanges count as one; our own choice.
const ALIKE: f32 = 0.9;

/// One exchange of this many is left out of training, to measure its effect on others.
const ONE_LEFT_OUT_OF: usize = 8;

/// Number of older exchanges, and of the persona's own lines, whose loss must not grow.
const MAX_COMPARED: usize = 16;

/// Minimum number of exchanges for training again after something was forgotten.
const MIN_AGAIN: usize = 4;

/// Maximum number of tokens in a training prompt: the messages before an exchange only give its context.
const PROMPT_TOKENS: usize = 1_280;

/// What training in one place needs to know.
pub(super) struct TrainingContext {
    pub(super) chat: ChatId,
    pub(super) place: Place,
    pub(super) read_scope: ReadScope,
    pub(super) persona: Persona,
    pub(super) overrides: Arc<Overrides>,
    pub(super) zone: TimeZone,
    pub(super) form: Form,
    /// The LoRA in service there.
    pub(super) serving: Option<LoraRecord>,
    pub(super) entries: Vec<TrainingLogEntry>,
    /// Whether another machine trains.
    pub(super) offload: bool,
}

/// The examples to train on, and the older ones to compare.
pub(super) struct SelectedExamples {
    pub(super) training_examples: Vec<PreparedExample>,
    pub(super) older: Vec<PreparedExample>,
}

impl Learning {
    /// Returns the context for training a persona in a place, as its platform reports it at this moment.
    pub(super) async fn training_context(
        &self,
        hearth: &HearthState,
        home: &PersonaPlace,
    ) -> Result<Option<TrainingContext>, Error> {
        match self.minds.agenda.open_chat(home) {
            Some(chat) => self.training_context_in(hearth, home, chat).await,
            None => Ok(None),
        }
    }

    /// Returns the same context for a certain chat of the place.
    pub(super) async fn training_context_in(
        &self,
        hearth: &HearthState,
        home: &PersonaPlace,
        chat: ChatId,
    ) -> Result<Option<TrainingContext>, Error> {
        let Some(base_fingerprint) = hearth.base_fingerprint(&self.services.model().info().name) else {
            return Ok(None);
        };
        let Ok(platform) = self.services.platform(&home.platform) else { return Ok(None) };
        let place = self.access.place_unasked(platform.as_ref(), &chat).await?;
        let Some(place) = place.filter(|place| place.scope() == home.place) else { return Ok(None) };
        let loaded = match self.services.persona(place.shared_realm(), &home.persona).await {
            Ok(loaded) => loaded,
            Err(Error::NoPersona(_)) => return Ok(None),
            Err(error) => return Err(error),
        };
        let read_scope = ReadScope::in_place(home.persona.clone(), &place, &ReadableScopes::default());
        Ok(Some(TrainingContext {
            serving: hearth.lora_store.serving(&read_scope, &base_fingerprint),
            entries: self.training_log_of(home).await?,
            form: form_of(self.services.model().info()),
            overrides: self.minds.overrides(&home.platform, &home.place).await?,
            zone: self.minds.time_zone(&self.access, &home.platform, &home.place).await,
            persona: loaded.persona,
            offload: hearth.setup.transport.is_some(),
            chat,
            place,
            read_scope,
        }))
    }

    /// Returns the trainable exchanges that were not trained on yet, the most surprising first, and those that were.
    async fn fresh(
        &self,
        context: &TrainingContext,
    ) -> Result<(Vec<TrainableExchange>, Vec<TrainableExchange>), Error> {
        let (read_scope, offload) = (context.read_scope.clone(), context.offload);
        let known = context.serving.as_ref().map_or_else(BTreeSet::new, |serving| serving.said.clone());
        // An exchange of a LoRA that somebody rolled back is not trained on again.
        let back = context.entries.iter().filter(|entry| entry.outcome == TrainingOutcome::RolledBack);
        let back: BTreeSet<MessageId> = back.flat_map(|entry| entry.said.iter().cloned()).collect();
        self.services
            .blocking(move |memory| {
                let is_fresh = |id: &MessageId, _| !known.contains(id) && !back.contains(id);
                let fresh = memory.training().exchanges(&read_scope, offload, &is_fresh, BUFFER)?;
                let old = match known.is_empty() {
                    true => Vec::new(),
                    false => {
                        memory.training().exchanges(&read_scope, offload, &|id, _| known.contains(id), MAX_COMPARED)?
                    }
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
        let least = if again { MIN_AGAIN + 1 } else { wanted + left_out };
        if fresh.len() < least {
            return Ok(None);
        }
        let vectors = self.indexer.embed(fresh.iter().map(|it| it.said.text.as_str().to_owned()).collect()).await?;
        let mut taken: Vec<(&TrainableExchange, &Vec<f32>)> = Vec::new();
        for (exchange, vector) in fresh.iter().zip(&vectors) {
            // However alike, what tells two statements apart makes them two.
            let says = |it: &TrainableExchange| telling_words(&it.said.text);
            let is_new = taken.iter().all(|(it, other)| cosine(vector, other) < ALIKE || says(it) != says(exchange));
            // A conversation about danger calls for help, and nobody trains on it.
            let tags = self.judge.tags(&exchange.said.text, vector);
            let helped = !context.overrides.rules.matching(&tags, &Bond::new()).help.is_empty();
            if is_new && !helped {
                taken.push((exchange, vector));
            }
        }
        if taken.len() < least {
            return Ok(None);
        }
        // The least surprising ones are left out.
        let learned = wanted.min(taken.len() - left_out.min(taken.len() / 2));
        let (chosen, rest) = taken.split_at(learned);
        let prepare = |exchange: &TrainableExchange| {
            let training_example = self.training_example(context, exchange)?;
            Some(PreparedExample {
                training_example,
                said: exchange.said.id.clone(),
                provenance: exchange.provenance.clone(),
            })
        };
        let training_examples: Vec<PreparedExample> =
            chosen.iter().filter_map(|(exchange, _)| prepare(exchange)).collect();
        let older = rest.iter().map(|(exchange, _)| *exchange).take(MAX_COMPARED).chain(&old);
        let older = older.filter_map(prepare).collect();
        Ok((!training_examples.is_empty()).then_some(SelectedExamples { training_examples, older }))
    }

    /// Composes an exchange like a turn: with its recalled memories and the last messages before it, but without lore,
    /// user persona or the reply style of that moment.
    fn training_example(&self, context: &TrainingContext, exchange: &TrainableExchange) -> Option<TrainingExample> {
        let talking = exchange.before.iter().chain([&exchange.said]).map(|row| &row.author);
        let scope = context.place.scope();
        let names = DisplayNames::new(&scope, talking, exchange.recalled.iter().map(|it| &it.author));
        let line = |row: &MessageRow| Line {
            depth: row.depth,
            speaker: names.of_person(&row.author),
            text: row.text.as_str().to_owned(),
        };
        let history: Vec<Line> = exchange.before.iter().map(line).collect();
        let snippet = self.services.memory.config().snippet_chars;
        let as_recalled = |memory: &MemoryRow| {
            recalled_memory(memory, &shortened(&memory.text, &exchange.said.text, snippet), &names)
        };
        let (written, said): (Vec<&MemoryRow>, Vec<&MemoryRow>) =
            exchange.recalled.iter().partition(|it| it.kind.is_written());
        let recalled: Vec<RecalledMemory> = said.into_iter().map(as_recalled).collect();
        let carried: Vec<RecalledMemory> =
            written.into_iter().filter(|it| it.kind != Kind::Note).map(as_recalled).collect();
        let notes = exchange.recalled.iter().find(|it| it.kind == Kind::Note).map(|it| it.text.as_str());
        let message = line(&exchange.said);
        let parts = PromptParts {
            group: !matches!(context.place.kind, PlaceKind::Dm(_)),
            carried: &carried,
            notes,
            history: &history,
            recalled: &recalled,
            zone: context.zone.clone(),
            ..PromptParts::new(&context.persona, &message)
        };
        let mut training_example = self.compose_example(&context.form, &parts, exchange.reply.text.as_str())?;
        // The middle of a long message may have been cut to fit.
        let words = exchange.said.text.as_str();
        if training_example.messages.last().is_some_and(|last| last.content.ends_with(words)) {
            training_example.words = words.to_owned();
        }
        Some(training_example)
    }

    fn compose_example(&self, form: &Form, parts: &PromptParts<'_>, reply: &str) -> Option<TrainingExample> {
        let model = self.services.model();
        let reply_tokens = self.services.config.reply_tokens.min(form.reply_tokens);
        let context_tokens = (PROMPT_TOKENS + reply_tokens).min(model.info().context_tokens);
        let budget = Budget { context_tokens, reply_tokens };
        let count = |text: &str| model.count_tokens(text);
        // A persona that leaves no room for the exchange is not trained.
        let prompt = compose(form, parts, budget, &count).ok()?;
        Some(TrainingExample { messages: prompt.messages, words: String::new(), reply: reply.to_owned() })
    }

    /// Returns the example replies in the persona's file, each in a prompt without these examples.
    pub(super) fn voice(&self, context: &TrainingContext) -> Vec<TrainingExample> {
        let mut persona = context.persona.clone();
        let examples = std::mem::take(&mut persona.examples);
        let mut training_examples = Vec::new();
        for example in &examples {
            let said: Vec<_> = example.turns.iter().filter(|turn| turn.speaker != Speaker::Memory).collect();
            for pair in said.windows(2) {
                let [question, answer] = pair else { continue };
                if question.speaker != Speaker::Person || answer.speaker != Speaker::Persona {
                    continue;
                }
                let message = Line { depth: 0, speaker: Some("Friend".to_owned()), text: question.text.clone() };
                training_examples.extend(self.compose_example(
                    &context.form,
                    &PromptParts::new(&persona, &message),
                    &answer.text,
                ));
            }
        }
        training_examples.truncate(MAX_COMPARED);
        training_examples
    }

    /// Returns how many exchanges of a place were not trained on yet.
    pub(crate) async fn waiting_to_be_learned(&self, home: &PersonaPlace) -> Result<usize, Error> {
        let Some(hearth) = self.state.get() else { return Ok(0) };
        match self.training_context(hearth, home).await? {
            Some(context) => Ok(self.fresh(&context).await?.0.len()),
            None => Ok(0),
        }
    }
}
