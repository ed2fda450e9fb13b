//! Stage *commit*: the reply, its memories, its outbox entry, its requests for pictures and the end of the turn, in one
//! transaction of the record.

use azera_adapter::{State, StreamEvent};
use azera_memory::{Asked, Hit, MessageRow, NewReply, OutboxRow, WhyHit, WhyRow};
use azera_types::Text;

use super::compose::Composition;
use super::context::{TurnContext, TurnRequest};
use super::generate::Draft;
use super::overlap::says_something_new;
use super::pictures::Tags;
use super::sources;
use crate::error::Error;
use crate::turn::Turns;

/// A reply that the record holds.
pub(super) struct Committed {
    pub(super) reply: MessageRow,
    pub(super) outbox: OutboxRow,
    /// The answers to the reply's requests for pictures.
    pub(super) asked: Vec<Asked>,
    /// Why a picture of the reply is not drawn, if one is not.
    pub(super) undrawn: Option<String>,
    /// The persona's mood and energy after it.
    pub(super) state: State,
}

/// Says to people why there is no reply. The log has the store's own words.
const NOT_STORED: &str = "the answer could not be stored";

impl Turns {
    /// Stores the reply; `None` if its message needs no reply any more. Where it is not stored, its stream ends.
    pub(super) async fn commit(
        &self,
        request: &mut TurnRequest,
        context: &TurnContext,
        composition: &Composition,
        draft: &Draft,
    ) -> Result<Option<Committed>, Error> {
        let error = match self.store_reply(request, context, composition, draft).await {
            Ok(committed) => return Ok(Some(committed)),
            Err(error) => error,
        };
        let target = self.stream_target(&draft.id, request, context, composition);
        let is_unwanted = self.break_off(request, &target, NOT_STORED.to_owned()).await;
        match error {
            Error::Memory(azera_memory::Error::Invalid(_)) if is_unwanted => Ok(None),
            error => Err(error),
        }
    }

    /// Detects the mood of the reply, appends help lines, and stores everything in one transaction.
    async fn store_reply(
        &self,
        request: &mut TurnRequest,
        context: &TurnContext,
        composition: &Composition,
        draft: &Draft,
    ) -> Result<Committed, Error> {
        let generated = &draft.generated;
        let felt = if generated.is_fixed() { None } else { self.judge.felt(&generated.text).await };
        let params = &context.overrides.params;
        let state = self.minds.after_exchange(&request.message, &context.place, params, felt, request.was_felt());
        let text = self.with_help(request, context, composition, draft).await;
        let text = self.services.interruptions.heard(&draft.id).unwrap_or_else(|| Text::new(text));
        let reply = self.new_reply(request, context, composition, draft, &state, text);
        let outbox = OutboxRow {
            message: reply.id.clone(),
            platform: reply.platform.clone(),
            asker: Some(reply.asker.clone()),
            from: Some(reply.from),
            state: reply.state.clone(),
            help: reply.help.clone(),
        };
        let Tags { pictures, undrawn } = self.allowed_tags(request, context, composition, draft).await;
        let stored = self.services.blocking(move |memory| memory.turns().reply_with_pictures(reply, pictures));
        let (reply, asked) = stored.await?;
        self.minds.exchanged(&request.message, &context.place, params, felt, request.was_felt());
        // What was queued with the reply is drawn even if the turn ends here.
        let reply = self.cut_if_interrupted(reply).await.inspect_err(|_| self.pictures.begin())?;
        self.minds.keep_state(&request.message, &context.place, &composition.style).await;
        request.feelings_changed = true;
        Ok(Committed { reply, outbox, asked, undrawn, state })
    }

    /// Cuts a reply that was interrupted while it was stored.
    async fn cut_if_interrupted(&self, reply: MessageRow) -> Result<MessageRow, Error> {
        let Some(heard) = self.services.interruptions.heard(&reply.id) else { return Ok(reply) };
        let (id, text) = (reply.id.clone(), heard.clone());
        self.services.blocking(move |memory| memory.turns().cut_reply(&id, text)).await?;
        self.services.interruptions.recorded(&reply.id);
        Ok(MessageRow { text: heard, ..reply })
    }

    /// The reply's text with what stands below it, which is shown at once: what was missed, and the help texts.
    async fn with_help(
        &self,
        request: &TurnRequest,
        context: &TurnContext,
        composition: &Composition,
        draft: &Draft,
    ) -> String {
        let target = self.stream_target(&draft.id, request, context, composition);
        let mut text = draft.generated.text.clone();
        let missed = request.missed.as_ref().map(|missed| &missed.sentence);
        let missed = missed.filter(|sentence| **sentence != text).cloned();
        for help in missed.iter().chain(&composition.style.help) {
            let help = if text.is_empty() { help.clone() } else { format!("\n\n{help}") };
            text.push_str(&help);
            target.event(StreamEvent::Content { text: help }).await;
        }
        text
    }

    fn new_reply(
        &self,
        request: &TurnRequest,
        context: &TurnContext,
        composition: &Composition,
        draft: &Draft,
        state: &State,
        text: Text,
    ) -> NewReply {
        let (message, inbox, generated) = (&request.message, &request.inbox, &draft.generated);
        let rests_on = sources::rests_on(&generated.text, &composition.recalled(), &composition.carried());
        let shown = composition.shown(context);
        NewReply {
            id: draft.id.clone(),
            to: message.id.clone(),
            platform: inbox.platform.clone(),
            asker: inbox.person.clone(),
            persona: message.persona.clone(),
            persona_name: context.persona.name.clone(),
            at: self.services.clock.now(),
            from: composition.sources.from,
            source_scopes: composition.sources.source_scopes.clone(),
            built_on: sources::messages(&generated.text, (message, request.replied.as_ref()), &rests_on, shown),
            built_on_facts: sources::facts(&rests_on),
            memorable: !composition.style.is_in_danger()
                && !generated.is_fixed()
                && is_new(&generated.text, composition),
            state: serde_json::to_value(state).unwrap_or_default(),
            help: composition.style.help.join("\n\n"),
            why: why(context, composition, draft),
            replaces: context.replaces.as_ref().map(|old| old.id.clone()),
            text,
        }
    }
}

/// Whether a reply says more than the memories and lines of its prompt.
fn is_new(reply: &str, composition: &Composition) -> bool {
    let memories = composition.memories();
    let recalled = memories.iter().map(|hit| hit.memory.text.as_str());
    let lines = composition.history.lines.iter().chain([&composition.history.last]);
    says_something_new(reply, recalled.chain(lines.map(|line| line.text.as_str())))
}

/// What `/why` shows of a reply.
fn why(context: &TurnContext, composition: &Composition, draft: &Draft) -> WhyRow {
    let fragments = composition.prompt.fragments.iter();
    WhyRow {
        reply: draft.id.clone(),
        recalled: composition.memories().into_iter().map(why_hit).collect(),
        missing: composition.recall.missing.iter().map(|layer| (*layer).to_owned()).collect(),
        fragments: fragments.map(|fragment| (fragment.kind.as_str().to_owned(), fragment.tokens)).collect(),
        model: context.model.info().name.clone(),
        seed: draft.generated.seed,
        usage: serde_json::to_value(&draft.generated.usage).unwrap_or_default(),
        recall_ms: composition.recall.took_ms,
        shown: Some(composition.shown(context).iter().map(|row| row.seq).collect()),
    }
}

fn why_hit(hit: &Hit) -> WhyHit {
    WhyHit {
        memory: hit.memory.id,
        score: hit.score,
        signals: hit.signals.iter().map(|signal| (*signal).to_owned()).collect(),
        shown: hit.shown.clone(),
        same: hit.again.iter().map(|other| other.memory).collect(),
    }
}
