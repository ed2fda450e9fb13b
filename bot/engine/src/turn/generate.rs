//! Stage *generate*: decides whether the model writes the reply or a fixed text takes its place. `generation` calls the
//! model.

use azera_adapter::{Making, StreamEvent};
use azera_affect::names_a_measure;
use azera_model_api::ModelInfo;
use azera_types::MessageId;

use super::compose::Composition;
use super::context::{TurnContext, TurnRequest};
use super::generation::{Generated, GenerationRequest, StreamTarget, any_seed, derived_seed, generate};
use super::reply_id::reply_id;
use crate::error::Error;
use crate::minds::Writer;
use crate::outbox::DeliverableReply;
use crate::services::Services;
use crate::turn::Turns;

/// The words of a reply, and its id.
pub(super) struct Draft {
    pub(super) id: MessageId,
    pub(super) generated: Generated,
}

/// Returns the data for the permission check of the reply.
pub(super) fn deliverable<'a>(request: &'a TurnRequest, composition: &'a Composition) -> DeliverableReply<'a> {
    let message = &request.message;
    DeliverableReply {
        chat: &message.chat,
        asker: Some(&request.inbox.person),
        persona: &message.persona,
        scope: &message.scope,
        from: composition.sources.from,
        source_scopes: &composition.sources.source_scopes,
    }
}

impl Turns {
    /// Returns where a reply is shown while it is made.
    pub(super) fn stream_target<'a>(
        &'a self,
        reply: &'a MessageId,
        request: &'a TurnRequest,
        context: &'a TurnContext,
        composition: &Composition,
    ) -> StreamTarget<'a> {
        let message = &request.message;
        let making = Making {
            chat: &message.chat,
            reply,
            persona: &message.persona,
            persona_name: &context.persona.name,
            asker: Some(&request.inbox.person),
            is_help: composition.style.is_in_danger(),
        };
        StreamTarget {
            platform: request.platform.as_ref(),
            making,
            interruptions: &self.services.interruptions,
            is_silent: !request.again && self.progress.was_told_failed(&message.id),
        }
    }

    /// Generates the reply and streams it; `None` if it may not be shown any more.
    pub(super) async fn generate_reply(
        &self,
        request: &TurnRequest,
        context: &TurnContext,
        composition: &Composition,
    ) -> Result<Option<Draft>, Error> {
        let to = request.message.id.clone();
        let alternative = self.services.blocking(move |memory| memory.turns().answer_count(&to)).await?;
        let id = reply_id(&request.message.id, alternative);
        let target = self.stream_target(&id, request, context, composition);
        let asking = self.generation_request(request, context, composition, alternative);
        let permission = deliverable(request, composition);
        let may_show = || self.outbox.may_be_shown(request.platform.as_ref(), &permission);
        let writer = &composition.style.writer;
        // Somebody in danger who replies to a picture is answered, however few words that takes.
        let is_answered = request.replied.is_some() && composition.style.is_in_danger();
        let missed = request.missed.as_ref().filter(|missed| missed.alone && !is_answered);
        let only_english = composition.prompt.only_english.filter(|_| !composition.style.is_in_danger());
        let fixed = fixed_text(writer, context.model.info()).or(missed.map(|missed| missed.sentence.as_str()));
        let seed = asking.seed;
        let say = async |text: &str| may_show().await.map(|may| may.then(|| Generated::fixed(text, seed)));
        let made = match fixed.or(only_english) {
            Some(text) => say(text).await,
            None => generate(&context.model, &composition.prompt, asking, &target, may_show).await,
        };
        let made = match (made, writer) {
            // Help must not wait until the model works again. Nothing of such a reply was streamed.
            (Err(error @ (Error::Model(_) | Error::NoAnswer)), Writer::TrustedModel(text)) => {
                tracing::warn!(%error, "the model failed to answer somebody in danger; a fixed text takes its place");
                say(text).await
            }
            (made, _) => made,
        };
        match made {
            Ok(Some(generated)) => {
                let generated = checked(generated, writer);
                let was_held = composition.style.is_in_danger() || generated.is_fixed();
                if was_held && !generated.text.is_empty() {
                    target.event(StreamEvent::Content { text: generated.text.clone() }).await;
                }
                Ok(Some(Draft { id, generated }))
            }
            Ok(None) => Ok(None),
            Err(error) => {
                self.break_off(request, &target, error.to_string()).await;
                Err(error)
            }
        }
    }

    pub(super) fn generation_request<'a>(
        &self,
        request: &TurnRequest,
        context: &'a TurnContext,
        composition: &Composition,
        alternative: usize,
    ) -> GenerationRequest<'a> {
        let (config, message) = (&self.services.config, &request.message);
        let in_danger = composition.style.is_in_danger();
        let thinking_tokens = config.thoughts_of(context.model.info());
        GenerationRequest {
            session: Services::session(&message.chat, &message.persona),
            sampling: context.form.sampling.clone(),
            thinking_sampling: context.form.thinking.clone(),
            seed: config.seed.map_or_else(any_seed, |seed| derived_seed(seed, &message.id, alternative)),
            max_tokens: composition.history.budget.reply_tokens.saturating_sub(thinking_tokens),
            thinking: config.thinking,
            thinking_tokens,
            persona: &context.persona.name,
            // Do not use learned LoRAs for a person in danger.
            loras: if in_danger { Vec::new() } else { self.learning.loras_for(&context.read_scope) },
            stop: context.form.stop,
            held: in_danger,
            draws: self.pictures.draws_for_replies() && !in_danger,
            speakers: speakers(composition),
        }
    }
}

/// The names of the speakers in the prompt, the newest first.
fn speakers(composition: &Composition) -> Vec<String> {
    let mut speakers: Vec<String> = Vec::new();
    let lines = composition.history.lines.iter().chain([&composition.history.last]).rev();
    for name in lines.filter_map(|line| line.speaker.as_ref()) {
        if !speakers.contains(name) {
            speakers.push(name.clone());
        }
    }
    speakers
}

/// The text that is the reply in the place of a model's words, if this model may not answer.
fn fixed_text(writer: &Writer, model: &ModelInfo) -> Option<&'static str> {
    match writer {
        Writer::Model => None,
        Writer::TrustedModel(_) if model.trusted_in_danger => None,
        Writer::TrustedModel(text) | Writer::Nobody(text) => Some(text),
    }
}

/// The reply of a trusted model to somebody in danger, or the text in its place if it names an amount.
fn checked(made: Generated, writer: &Writer) -> Generated {
    match writer {
        Writer::TrustedModel(text) if !made.is_fixed() && names_a_measure(&made.text) => {
            tracing::warn!("a reply to somebody in danger named an amount and is not shown");
            Generated::fixed(text, made.seed)
        }
        _ => made,
    }
}
