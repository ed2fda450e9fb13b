//! The turn: one inbound message answered once. Each stage is a unit of its own; this file is their order.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use azera_adapter::{Making, Outcome, Platform, SkipReason, StreamEvent, Turn};
use azera_affect::names_a_measure;
use azera_memory::{
    Forget, InboxRow, Kind, MemoryRow, MessageRow, NewReply, OutboxRow, Provenance, ReadScope, RetentionPreference,
    WhyHit, WhyRow,
};
use azera_model_api::ModelInfo;
use azera_personas::Lorebook;
use azera_prompt::{Budget, Line, MemoryOrigin, PromptParts, RecalledMemory, compose, form_for, history_cut};
use azera_types::{Author, MemoryId, MessageId, Place, PlaceKind, Scope, Text};

use crate::decide::{Addressing, calls, decide};
use crate::deliver::{DELIVERY_ATTEMPTS, DeliverableReply};
use crate::engine::{Engine, LoadedPersona};
use crate::error::Error;
use crate::generate::{Generated, GenerationRequest, StreamTarget, any_seed, derived_seed, generate};
use crate::minds::Writer;
use crate::overlap::says_something_new;
use crate::reply_id::reply_id;
use crate::report::{hit, usage};
use crate::sources::{self, ReplySources, origins};
use crate::stage_timer::StageTimer;
use crate::surprise::Exchange;

/// How often an answer is made before a chat is given up in which people come and go faster than that.
const ATTEMPTS: usize = 3;

/// How far back somebody counts as taking part in the conversation.
const RECENT: usize = 20;

/// What a turn is about.
pub(crate) struct TurnRequest {
    pub(crate) platform: Arc<dyn Platform>,
    pub(crate) message: MessageRow,
    pub(crate) inbox: InboxRow,
    /// The answer that stands is made anew.
    pub(crate) again: bool,
    /// An answer that had to be withdrawn moved feelings already.
    pub(crate) felt: AtomicBool,
}

impl TurnRequest {
    pub(crate) fn new(platform: Arc<dyn Platform>, message: MessageRow, inbox: InboxRow, again: bool) -> Self {
        Self { platform, message, inbox, again, felt: AtomicBool::new(false) }
    }
}

/// Where and for whom a turn takes place, by the platform's word at its beginning.
struct TurnContext {
    /// The reply that the new one takes the place of.
    replaces: Option<MessageRow>,
    place: Place,
    read_scope: ReadScope,
    played: LoadedPersona,
    recent: Vec<MessageRow>,
}

impl Engine {
    /// Decides on a message and answers it if it is to be answered. Runs when it is the message's turn in its chat.
    pub(crate) async fn take_turn(&self, mut request: TurnRequest) -> Result<Outcome, Error> {
        let _waited = self.0.foreground.enter();
        for _ in 0..ATTEMPTS {
            // While it waited, the message may have been changed, forgotten or answered.
            let id = request.message.id.clone();
            self.changed_amid().remove(&id);
            if !request.again {
                let Some(message) = self.blocking(move |memory| memory.open_turn(&id)).await? else {
                    return Ok(Outcome::Skipped(SkipReason::Duplicate));
                };
                request.message = message;
            }
            let mut timer = StageTimer::start();
            let Some(context) = self.load_context(&request).await? else {
                return Ok(Outcome::Skipped(SkipReason::NotAddressed));
            };
            let scope = context.place.scope();
            let own = context.played.persona.memory.working_notes_every_n_turns;
            let notes_every = own.map(|every| usize::try_from(every).unwrap_or(usize::MAX));
            let garden = self.overrides(request.platform.id(), &scope).await?.garden.clone();
            let heard = |core: &Self| {
                let MessageRow { chat, persona, .. } = &request.message;
                core.heard(request.platform.id(), chat, persona, &scope, notes_every, &garden);
            };
            let (persona, keep) = (request.message.persona.clone(), context.played.persona.memory.prune_keep);
            if !request.again
                && let Some(reason) = self.skip_reason(&request, &context).await?
            {
                if self.leave(&request).await? {
                    heard(self);
                }
                self.bound(persona, keep);
                self.0.index_wanted.notify_one();
                return Ok(Outcome::Skipped(reason));
            }
            timer.end("decide");
            let turn = self.answer(&request, context, &mut timer).await?;
            self.bound(persona, keep);
            self.0.index_wanted.notify_one();
            if let Some(turn) = turn {
                heard(self);
                let changed = self.changed_amid().remove(&request.message.id);
                if let Some(message) = changed.filter(|message| message.text != request.message.text) {
                    self.answer_what_it_says_now(&request, message);
                }
                tracing::debug!(reply = %turn.reply, %timer, "a turn is over");
                return Ok(Outcome::Replied(Box::new(turn)));
            }
        }
        Err(Error::NotAllowed)
    }

    /// `None` if an answer is to be made anew and none stands.
    async fn load_context(&self, request: &TurnRequest) -> Result<Option<TurnContext>, Error> {
        let message = &request.message;
        let place = self.place(request.platform.as_ref(), &message.chat, &request.inbox.person).await?;
        let place = place.ok_or(Error::NotAllowed)?;
        let played = self.persona(place.shared_realm(), &message.persona).await?;
        let read_scope = self.read_scope(request.platform.as_ref(), &place, &message.persona).await?;
        // Somebody who cannot read the question may read the answer by now.
        if !request.again && !read_scope.allows(&message.persona, &message.scope, &message.source_scopes, message.at) {
            return Err(Error::NotAllowed);
        }
        let (limit, reader, again, message) =
            (self.0.config.history_messages, read_scope.clone(), request.again, message.clone());
        let found = self
            .blocking(move |memory| {
                if !again {
                    let mut recent = memory.history(&reader, &message.chat, limit)?;
                    // What came after it belongs to later turns, but for answers given meanwhile.
                    recent.retain(|row| row.seq < message.seq || row.answers.is_some());
                    return Ok(Some((None, recent)));
                }
                let Some(present) = memory.present_answer(&reader, &message.id)? else { return Ok(None) };
                // A message made again is answered as it stood: by what came before it.
                let recent = memory.history_to(&reader, message.parent.as_ref(), limit)?;
                Ok(Some((Some(present), recent)))
            })
            .await?;
        Ok(found.map(|(replaces, recent)| TurnContext { replaces, place, read_scope, played, recent }))
    }

    /// Ends the turn of a message that is not answered. It is remembered all the same, unless who said it wants to be kept of what
    /// they say only what is said to the bot; whether it was.
    async fn leave(&self, request: &TurnRequest) -> Result<bool, Error> {
        let (id, person) = (request.message.id.clone(), request.inbox.person.clone());
        if self.blocking(move |memory| memory.retention(&person)).await? == RetentionPreference::Addressed {
            self.forget(Forget::Message(id), true, None).await?;
            return Ok(false);
        }
        self.blocking(move |memory| memory.leave(&id)).await?;
        Ok(true)
    }

    async fn skip_reason(&self, request: &TurnRequest, context: &TurnContext) -> Result<Option<SkipReason>, Error> {
        let message = &request.message;
        let chat = message.chat.clone();
        let chat = self.blocking(move |memory| memory.chat(&chat)).await?;
        let replies_to_bot = match &message.reply_to {
            None => None,
            Some(id) => {
                let (id, read_scope) = (id.clone(), context.read_scope.clone());
                let target = self.blocking(move |memory| memory.message(&read_scope, &id)).await?;
                target.map(|target| matches!(target.author, Author::Persona { .. }))
            }
        };
        let own_name = message.author.name().to_lowercase();
        let others: HashSet<String> = context
            .recent
            .iter()
            .rev()
            .take(RECENT)
            .filter(|row| row.author.person().is_some())
            .map(|row| row.author.name().to_lowercase())
            .filter(|name| *name != own_name)
            .collect();
        let names = context.played.persona.answers_to().chain(self.0.config.wake_names.iter().map(String::as_str));
        Ok(decide(&Addressing {
            dm: matches!(context.place.kind, PlaceKind::Dm(_)),
            mentions_bot: request.inbox.mentions_bot,
            mentions_others: !request.inbox.mentions.is_empty(),
            replies_to_bot,
            called: calls(&message.text, names),
            calls_another: calls(&message.text, others.iter().map(String::as_str)),
            empty: message.text.trim().is_empty(),
            answering: chat.and_then(|chat| chat.answering).unwrap_or(self.0.config.answering),
        }))
    }

    /// `None` if the answer may not be shown any more: it is broken off before its first word, or withdrawn.
    async fn answer(
        &self,
        request: &TurnRequest,
        context: TurnContext,
        timer: &mut StageTimer,
    ) -> Result<Option<Turn>, Error> {
        let TurnRequest { platform, message, inbox, .. } = request;
        let TurnContext { replaces, place, read_scope, played, recent } = context;
        let LoadedPersona { persona, lorebook, owner } = played;
        let model = self.model();
        let config = &self.0.config;
        let mut form = form_for(&model.info().family);
        if let Some(lines) = config.recalled.or(persona.memory.top_k.map(|lines| lines as usize)) {
            form.recalled_lines = lines;
        }

        let role = self.role(place.shared_realm(), &config.user_persona).await?;
        let lines: Vec<Line> = recent.iter().map(line).collect();
        let last = line(message);
        let lore = lorebook.map_or_else(Vec::new, |book| woken(&book, &lines, &last));
        let parts = PromptParts {
            lore: &lore,
            user_persona: role.as_ref().map(|role| &role.persona),
            group: !matches!(place.kind, PlaceKind::Dm(_)),
            history: &lines,
            ..PromptParts::new(&persona, &last)
        };
        let budget = Budget {
            context_tokens: config.context_tokens.min(model.info().context_tokens),
            reply_tokens: config.reply_tokens.min(form.reply_tokens),
        };
        let count = |text: &str| model.count_tokens(text);
        let mut cut = history_cut(&form, &parts, budget, &count)?;
        let carried = self.carried(&read_scope, &message.chat).await?.beyond(recent.get(cut..).unwrap_or_default());
        let carried_lines: Vec<RecalledMemory> = carried.writings.iter().map(recalled).collect();
        let notes = carried.notes.as_ref().map(|hit| hit.snippet.as_str());
        let parts = PromptParts { carried: &carried_lines, notes, ..parts };
        if !carried.is_empty() {
            cut = history_cut(&form, &parts, budget, &count)?;
        }
        let shown: &[MessageRow] = recent.get(cut..).unwrap_or_default();

        let changes = self.0.exchanges.changes();
        let mut exclude: HashSet<MessageId> = shown.iter().map(|row| row.id.clone()).collect();
        exclude.insert(message.id.clone());
        exclude.extend(replaces.iter().map(|old| old.id.clone()));
        timer.end("measure");
        let mut recall =
            self.recall(&read_scope, &message.text, &inbox.person, &persona.name, exclude, form.recalled_lines).await?;
        timer.end("recall");
        let floor = |best: f32| best - best.abs() * (1.0 - form.recalled_share);
        let floor = recall.hits.first().map_or(0.0, |best| floor(best.score));
        let is_carried = |hit: &azera_memory::Hit| carried.writings.iter().any(|it| it.memory.id == hit.memory.id);
        recall.hits.retain(|hit| hit.score >= floor && !is_carried(hit));
        // An admin who has a reply made anew is not the one it speaks to.
        let towards = message.author.person().unwrap_or(&inbox.person);
        let overrides = self.overrides(platform.id(), &place.scope()).await?;
        let judgement = self.judge(message, &recent, &recall).await;
        let felt_before = request.again || request.felt.load(Ordering::Relaxed);
        let style = self.reply_style(message, towards, &place, &persona, &overrides, &judgement, felt_before).await?;
        let recollections: Vec<RecalledMemory> = recall.hits.iter().map(recalled).collect();
        let parts = PromptParts { recalled: &recollections, style: &style.lines, plainly: style.plainly, ..parts };
        let prompt = compose(&form, &parts, budget, &count)?;
        let hits: Vec<_> = recall.hits.iter().take(prompt.recalled_lines).collect();
        let mut carried_hits: Vec<_> = carried.writings.iter().take(prompt.carried_lines).collect();
        carried_hits.extend(carried.notes.as_ref().filter(|_| prompt.shows_notes));
        let behind: Vec<_> = hits.iter().chain(&carried_hits).copied().collect();

        let to = message.id.clone();
        let number = self.blocking(move |memory| memory.answer_count(&to)).await?;
        let reply_id = reply_id(&message.id, number);
        let making =
            Making { chat: &message.chat, reply: &reply_id, persona: &message.persona, persona_name: &persona.name };
        let shown_at = StreamTarget { platform: platform.as_ref(), making };
        let seed = config.seed.map_or_else(any_seed, |seed| derived_seed(seed, &message.id, number));
        let mut speakers: Vec<String> = Vec::new();
        for name in lines.iter().chain([&last]).rev().filter_map(|line| line.speaker.as_ref()) {
            if !speakers.contains(name) {
                speakers.push(name.clone());
            }
        }
        let in_danger = style.writer != Writer::Model;
        let asking = GenerationRequest {
            session: Self::session(&message.chat, &message.persona),
            sampling: config.sampling.clone().unwrap_or_else(|| form.sampling.clone()),
            seed,
            max_tokens: budget.reply_tokens,
            thinking: config.thinking,
            persona: &persona.name,
            // What was learnt from talk has no say to somebody in danger.
            loras: if in_danger { Vec::new() } else { self.loras_for(&read_scope) },
            held: in_danger,
            stop: form.stop,
            speakers,
        };
        timer.end("compose");
        let realm = owner.or_else(|| role.as_ref().and_then(|role| role.owner.clone())).map(Scope::Realm);
        let ReplySources { from, source_scopes } = origins(message, &behind, shown, realm.as_ref(), self.0.clock.now());
        let written = DeliverableReply {
            chat: &message.chat,
            asker: Some(&inbox.person),
            persona: &message.persona,
            scope: &message.scope,
            from,
            source_scopes: &source_scopes,
        };
        let may_show = self.may_be_shown(platform.as_ref(), &written);
        let generated = match instead_of_a_model(&style.writer, model.info()) {
            Some(text) => may_show.await.map(|may| may.then(|| Generated::fixed(text, asking.seed))),
            None => generate(&model, &prompt, asking, &shown_at, may_show).await,
        };
        let generated = generated.map(|made| made.map(|made| checked(made, &style.writer)));
        let generated = match generated {
            Ok(Some(generated)) => generated,
            Ok(None) => return Ok(None),
            Err(error) => {
                shown_at.event(StreamEvent::Error { message: error.to_string() }).await;
                return Err(error);
            }
        };

        if in_danger && !generated.text.is_empty() {
            shown_at.event(StreamEvent::Content { text: generated.text.clone() }).await;
        }
        timer.end("generate");
        let rests_on = sources::rests_on(&generated.text, &hits, &carried_hits);
        let felt = if generated.is_fixed() { None } else { self.felt(&generated.text).await };
        let state = self.exchanged(message, &place, &overrides.params, felt, felt_before);
        timer.end("feel");
        let mut text = generated.text.clone();
        for help in &style.help {
            let help = if text.is_empty() { help.clone() } else { format!("\n\n{help}") };
            text.push_str(&help);
            shown_at.event(StreamEvent::Content { text: help }).await;
        }
        let reply = NewReply {
            id: reply_id.clone(),
            to: message.id.clone(),
            platform: inbox.platform.clone(),
            asker: inbox.person.clone(),
            persona: message.persona.clone(),
            persona_name: persona.name.clone(),
            at: self.0.clock.now(),
            from,
            source_scopes: source_scopes.clone(),
            built_on: sources::messages(&generated.text, message, &rests_on, shown),
            built_on_facts: sources::facts(&rests_on),
            memorable: !in_danger
                && says_something_new(
                    &generated.text,
                    behind
                        .iter()
                        .map(|hit| hit.memory.text.as_str())
                        .chain(lines.iter().chain([&last]).map(|line| line.text.as_str())),
                ),
            state: serde_json::to_value(&state).unwrap_or_default(),
            why: WhyRow {
                reply: reply_id.clone(),
                recalled: behind.iter().map(|hit| why_hit(hit)).collect(),
                missing: recall.missing.iter().map(|layer| (*layer).to_owned()).collect(),
                fragments: prompt
                    .fragments
                    .iter()
                    .map(|fragment| (fragment.kind.as_str().to_owned(), fragment.tokens))
                    .collect(),
                model: model.info().name.clone(),
                seed: generated.seed,
                usage: serde_json::to_value(&generated.usage).unwrap_or_default(),
                recall_ms: recall.took_ms,
                shown: Some(shown.iter().map(|row| row.seq).collect()),
            },
            replaces: replaces.map(|old| old.id),
            text: Text::new(&text),
        };
        let row = OutboxRow {
            message: reply.id.clone(),
            platform: reply.platform.clone(),
            asker: Some(reply.asker.clone()),
            from: Some(reply.from),
            state: reply.state.clone(),
        };
        let reply = self.blocking(move |memory| memory.reply(reply)).await?;
        self.keep_state(message, &place, &style).await;
        request.felt.store(true, Ordering::Relaxed);
        timer.end("record");
        match self.may_be_shown(platform.as_ref(), &written).await {
            Ok(true) => {
                shown_at.event(StreamEvent::Done { state: state.clone() }).await;
                if let Err(error) = self.deliver(platform.as_ref(), &reply, &state, DELIVERY_ATTEMPTS).await {
                    // The turn is over all the same; the reply waits in the outbox.
                    tracing::warn!(reply = %reply.id, %error, "a reply waits in the outbox");
                }
            }
            Ok(false) => {
                shown_at.event(StreamEvent::Error { message: Error::NotAllowed.to_string() }).await;
                self.withdraw(&reply, &row).await?;
                return Ok(None);
            }
            Err(error) => tracing::warn!(reply = %reply.id, %error, "a reply waits in the outbox"),
        }
        timer.end("deliver");
        // Who was answered by no model, or is answered again, surprises nobody anew.
        if overrides.garden.surprise && !in_danger && !request.again && model.scorer().is_some() {
            let memories = behind.iter().map(|hit| &hit.memory);
            // Notes make way for others; what they were made of stays.
            let (notes, others): (Vec<&MemoryRow>, Vec<&MemoryRow>) =
                memories.clone().partition(|memory| memory.kind == Kind::Note);
            if let Some(noted) = self.noted(read_scope, &notes).await {
                let rows = shown.iter().chain([message]).chain(&noted);
                let exchange = Exchange {
                    said: message.clone(),
                    prompt: prompt.messages,
                    reply: generated.text,
                    model: model.info().name.clone(),
                    loras: generated.loras,
                    at: reply.at,
                    sources: memories.flat_map(|memory| memory.sources.iter().cloned()).collect(),
                    provenance: Arc::new(Provenance {
                        messages: rows.map(|row| (row.id.clone(), row.edited_at)).collect(),
                        memories: others.into_iter().map(|memory| memory.id).collect(),
                        ..Provenance::default()
                    }),
                };
                self.0.exchanges.wait(exchange, changes);
            }
        }
        let is_of_here = |hit: &&azera_memory::Hit| hit.memory.salience.is_some() && hit.memory.scope == message.scope;
        let used: Vec<MemoryId> = rests_on.into_iter().filter(is_of_here).map(|hit| hit.memory.id).collect();
        if !used.is_empty() {
            let (place, at) = (message.scope.clone(), reply.at);
            if let Err(error) = self.blocking(move |memory| memory.used(&place, &used, at)).await {
                tracing::warn!(%error, "that something was recalled is not noted");
            }
        }
        Ok(Some(Turn {
            reply: reply.id.clone(),
            to: message.id.clone(),
            chat: message.chat.clone(),
            persona: message.persona.clone(),
            text: reply.text,
            state,
            usage: usage(&generated.usage),
            recalled: behind.into_iter().map(hit).collect(),
        }))
    }

    /// The messages that notes were made of, if all are there.
    async fn noted(&self, read_scope: ReadScope, notes: &[&MemoryRow]) -> Option<Vec<MessageRow>> {
        let ids: Vec<MessageId> = notes.iter().flat_map(|notes| notes.sources.iter().cloned()).collect();
        if ids.is_empty() {
            return Some(Vec::new());
        }
        let rows = self.blocking(move |memory| {
            let rows = ids.iter().map(|id| memory.message(&read_scope, id));
            rows.collect::<Result<Vec<_>, azera_memory::Error>>()
        });
        match rows.await {
            Ok(rows) => rows.into_iter().collect(),
            Err(error) => {
                tracing::info!(%error, "how surprising something was is not known");
                None
            }
        }
    }
}

/// The text that is the reply in the place of a model's words, if this model may not answer.
fn instead_of_a_model(writer: &Writer, model: &ModelInfo) -> Option<&'static str> {
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

fn line(row: &MessageRow) -> Line {
    let speaker = row.author.person().map(|_| row.author.name().to_owned());
    Line { depth: row.depth, speaker, text: row.text.as_str().to_owned() }
}

/// Messages searched for a lorebook's keys when the book does not say.
const LORE_DEPTH: usize = 4;

/// The lorebook entries that the newest messages wake.
fn woken(book: &Lorebook, history: &[Line], last: &Line) -> Vec<String> {
    let depth = book.scan_depth.map_or(LORE_DEPTH, |depth| depth as usize).min(RECENT);
    let earlier = history.iter().rev().take(depth.saturating_sub(1)).rev();
    let text: Vec<&str> = earlier.chain([last]).map(|line| line.text.as_str()).collect();
    book.matching(&text.join("\n")).into_iter().map(|entry| entry.prompt_text()).collect()
}

fn recalled(hit: &azera_memory::Hit) -> RecalledMemory {
    recollection(&hit.memory, hit.snippet.as_str())
}

/// What is remembered as a prompt shows it, with so much of its text.
pub(crate) fn recollection(memory: &MemoryRow, text: &str) -> RecalledMemory {
    let speaker = memory.author.person().map(|_| memory.author.name().to_owned());
    let came = match memory.kind {
        Kind::Message | Kind::Reply | Kind::Fact => MemoryOrigin::Said,
        Kind::Diary | Kind::Note => MemoryOrigin::Diary,
        Kind::Reflection => MemoryOrigin::Journal,
        Kind::Dream => MemoryOrigin::Dreamt,
        Kind::Piece => MemoryOrigin::MadeUp,
        Kind::CheckIn => MemoryOrigin::CheckIn,
    };
    RecalledMemory { came, speaker, text: text.to_owned(), at: memory.at }
}

fn why_hit(hit: &azera_memory::Hit) -> WhyHit {
    WhyHit {
        memory: hit.memory.id,
        score: hit.score,
        signals: hit.signals.iter().map(|signal| (*signal).to_owned()).collect(),
    }
}
