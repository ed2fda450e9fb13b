//! Dreams, journal entries and garden pieces: what a persona writes for a place.

use azera_affect::Mood;
use azera_memory::{BackgroundProgress, JournalChannel, Kind, MemoryRow, NewWriting, ReadScope, SourceScope};
use azera_types::{ChatId, Place, PlaceKind, ReadableScopes, Scope, Text, Timestamp};

use super::agenda::PersonaPlace;
use super::draft::{ATTEMPTS, Draft, DraftRequest};
use super::flaws::invents_numbers;
use super::learnt_here::LearntHere;
use super::material::{self, SourceLine};
use super::prompts::{Filling, fill};
use super::schedule::before;
use super::work::WritingTask;
use crate::background::Background;
use crate::error::Error;
use crate::learning_stages::{LearningStage, StageClock};
use crate::vectors::cosine;

/// Newest memories read as material.
const MAX_MATERIAL: usize = 200;

/// Newest dreams that a garden piece may also build on.
const DREAMS: usize = 2;

/// Themes that dreams draw on, in turn.
const RECURRING: usize = 5;

const DAY_S: i64 = 24 * 3_600;

/// Cosine similarity from which a dream or a piece repeats an earlier one.
const SAME: f32 = 0.85;

/// Earlier ones that a new one is compared with.
const COMPARED: usize = 64;

/// Where a text for a place is written.
pub(super) struct WritingContext {
    pub(super) chat: ChatId,
    /// Whether it is posted there.
    pub(super) posted: bool,
    pub(super) place: Place,
    pub(super) read_scope: ReadScope,
    pub(super) name: String,
    /// The realm that owns the persona, if one does.
    pub(super) owner: Option<Scope>,
}

/// What a text is written from.
struct Material {
    /// The lines to choose from.
    said: Vec<SourceLine>,
    /// Lines with numbers instead, which nobody said.
    lines: Option<String>,
    /// What follows the text word for word, with its own sources.
    learnt: LearntHere,
}

impl Background {
    /// Writes a text for a place, from what was said there lately. Returns it, if an attempt succeeded. The caller
    /// holds `writing`, so that only one text is written at a time.
    pub(crate) async fn write_for(
        &self,
        home: &PersonaPlace,
        work: WritingTask,
        now: Timestamp,
    ) -> Result<Option<MemoryRow>, Error> {
        let mut model_calls = 0;
        let clock = StageClock::start(&self.services.measurements.learning, LearningStage::Reflect);
        let written = self.try_to_write(home, work, now, &mut model_calls).await;
        if written.is_ok() {
            clock.done();
        }
        // A written text is recorded in its own transaction.
        if !matches!(written, Ok(Some(_))) {
            self.note_model_calls(home, now, model_calls).await?;
        }
        written
    }

    async fn try_to_write(
        &self,
        home: &PersonaPlace,
        work: WritingTask,
        now: Timestamp,
        model_calls: &mut u32,
    ) -> Result<Option<MemoryRow>, Error> {
        let mood = self.mood_of(home, now).map(Mood::name);
        let Some(at) = self.writing_context(home).await? else { return Ok(None) };
        let material = self.material(home, &at, work, now).await?;
        let budget = self.budget(home, now).await?;
        for attempt in 0..ATTEMPTS {
            if *model_calls >= budget {
                break;
            }
            let (chosen, given) = match &material.lines {
                Some(lines) => (material.said.clone(), lines.clone()),
                None => {
                    let chosen = material::some(&material.said, self.writing_form().lines, attempt);
                    let given = material::lines(&chosen);
                    (chosen, given)
                }
            };
            let Some(newest) = chosen.last().and_then(|said| said.sources.first()) else { return Ok(None) };
            let messages = fill(work.prompt(), &Filling { persona: &at.name, lines: &given, mood, other: "" });
            *model_calls += 1;
            let wanted = DraftRequest { messages, given: &given, lead: work.lead().to_owned(), about: newest, attempt };
            let composed = match self.compose(wanted).await? {
                Ok(composed) => composed,
                Err(flaw) => {
                    tracing::debug!(?work, ?flaw, "discarding a text");
                    continue;
                }
            };
            if matches!(work, WritingTask::Review | WritingTask::Setback) && invents_numbers(&composed.text, &given) {
                tracing::debug!(?work, "discarding a text with invented numbers");
                continue;
            }
            if work.must_be_new() && self.repeats_earlier(&at.read_scope, work.kind(), &composed.text).await? {
                tracing::debug!(?work, "discarding a text that repeats an earlier one");
                continue;
            }
            let progress = self.progress_after(home, Some(work), now, *model_calls).await?;
            // A text made of numbers rests on what stands behind it alone.
            let chosen = if material.lines.is_some() { material.learnt.sources } else { chosen };
            let composed = composed.followed_by(&material.learnt.text);
            return self.keep(home, &at, work, &chosen, composed, mood, progress).await;
        }
        Ok(None)
    }

    /// Returns what there is to write about.
    async fn material(
        &self,
        home: &PersonaPlace,
        at: &WritingContext,
        work: WritingTask,
        now: Timestamp,
    ) -> Result<Material, Error> {
        let (read_scope, since) = (at.read_scope.clone(), before(now, work.reach()));
        let recent =
            self.services.blocking(move |memory| memory.writings().recent(&read_scope, since, MAX_MATERIAL)).await?;
        let mut said: Vec<SourceLine> =
            recent.iter().rev().filter(|row| row.kind == Kind::Message).map(SourceLine::from).collect();
        if work == WritingTask::Review {
            let newest = said.pop();
            let lines = self.numbers(home, at, now).await?;
            // A review goes on without it.
            let learnt = self.learnt_here(home, at, now).await.unwrap_or_else(|error| {
                tracing::warn!(%error, "cannot read what was learnt in a place");
                LearntHere::default()
            });
            return Ok(Material { said: newest.into_iter().collect(), lines: Some(lines), learnt });
        }
        if work == WritingTask::Setback {
            let newest = said.pop();
            let Some((_, lines)) = self.learning.setback(home).await? else {
                return Ok(Material { said: Vec::new(), lines: None, learnt: LearntHere::default() });
            };
            return Ok(Material {
                said: newest.into_iter().collect(),
                lines: Some(lines),
                learnt: LearntHere::default(),
            });
        }
        // Prefer what was not written about yet. If somebody asks for a text, it may be about the same day again.
        let last = work.last(&self.background_progress(home).await?);
        if said.iter().any(|said| last.is_some_and(|last| said.at > last)) {
            said.retain(|said| last.is_some_and(|last| said.at > last));
        }
        if work == WritingTask::Piece && !said.is_empty() {
            let read_scope = at.read_scope.clone();
            let dreams = self
                .services
                .blocking(move |memory| memory.writings().list(&read_scope, &[Kind::Dream], DREAMS))
                .await?;
            // The post of a dream is a source of the piece, so that forgetting the dream forgets the piece.
            let posted = dreams.iter().filter(|(dream, writing)| dream.at >= since && writing.posted.is_some());
            said.splice(0..0, posted.map(|(dream, _)| SourceLine::from(dream)));
        }
        // It is about the day: it needs a line of its own.
        if work == WritingTask::Dream && !material::telling(said.clone(), 1).is_empty() {
            // A journal entry is about what was heard today, so it takes no older line.
            let older = match self.open_line(home, at, now).await {
                Some(open) => Some(open),
                None => self.recurring_line(at, &said, now).await,
            };
            said.splice(0..0, older);
        }
        Ok(Material { said, lines: None, learnt: LearntHere::default() })
    }

    /// Returns a message that is typical of something that people come back to, another one each night. It is `None` if
    /// the message is among the lines of the day.
    async fn recurring_line(&self, at: &WritingContext, said: &[SourceLine], now: Timestamp) -> Option<SourceLine> {
        let night = usize::try_from(now.as_second().div_euclid(DAY_S)).unwrap_or(0) % RECURRING;
        let read_scope = at.read_scope.clone();
        let found = self.services.blocking(move |memory| memory.themes().list(&read_scope, night, 1)).await;
        // A dream goes on without them.
        let found = found.unwrap_or_default();
        let typical = found.themes.first().map(|theme| &theme.typical);
        // A kept fact has no message that the dream could go with.
        let typical = typical.filter(|memory| !memory.sources.is_empty()).map(SourceLine::from);
        typical.filter(|line| said.iter().all(|known| known.sources != line.sources))
    }

    /// Stores a text, and posts it if everybody who would read it may read its sources now.
    #[expect(clippy::too_many_arguments, reason = "each is a part of what is kept")]
    async fn keep(
        &self,
        home: &PersonaPlace,
        at: &WritingContext,
        work: WritingTask,
        chosen: &[SourceLine],
        composed: Draft,
        mood: Option<&str>,
        progress: BackgroundProgress,
    ) -> Result<Option<MemoryRow>, Error> {
        let now = self.services.clock.now();
        // People may have joined or left while it was written.
        let Some(context) = self.writing_context(home).await?.filter(|context| context.chat == at.chat) else {
            return Ok(None);
        };
        let scope = context.place.scope();
        let mut source_scopes = material::source_scopes(chosen, context.owner.as_ref(), now);
        if matches!(work, WritingTask::Review | WritingTask::Setback) {
            // Numbers of a place are for those who are there now.
            source_scopes.push(SourceScope { scope: home.place.clone(), from: now });
        }
        if !context.read_scope.allows(&home.persona, &scope, &source_scopes, now) {
            return Ok(None);
        }
        let new = NewWriting {
            persona: home.persona.clone(),
            persona_name: context.name,
            kind: work.kind(),
            chat: context.chat,
            scope,
            source_scopes,
            sources: material::sources(chosen),
            text: composed.text,
            at: now,
            prompt: composed.prompt,
            model: composed.model,
            title: None,
            themes: composed.themes,
            mood: mood.map(str::to_owned),
            imported_by: None,
            post: (context.posted && work.is_posted_at_once()).then(|| home.platform.clone()),
            tended: Some((home.platform.clone(), home.place.clone(), progress)),
        };
        let written = self.services.blocking(move |memory| memory.writings().write(new)).await?;
        self.indexer.wake();
        let Some((memory, post)) = written else { return Ok(None) };
        if post.is_some() {
            self.deliver_what_waits().await;
        }
        Ok(Some(memory))
    }

    /// Delivers what was written. What cannot be delivered now stays in the outbox.
    pub(super) async fn deliver_what_waits(&self) {
        if let Err(error) = self.turns.deliver_outbox().await {
            tracing::warn!(%error, "cannot deliver a text; it stays in the outbox");
        }
    }

    /// Returns where a persona writes for a place: its journal channel, or the chat with the newest message.
    pub(super) async fn writing_context(&self, home: &PersonaPlace) -> Result<Option<WritingContext>, Error> {
        let Ok(platform) = self.services.platform(&home.platform) else { return Ok(None) };
        let channel = self.journal_of(home).await?;
        let posted = channel.is_some();
        let Some(chat) = channel.or_else(|| self.minds.agenda.open_chat(home)) else { return Ok(None) };
        let known = {
            let chat = chat.clone();
            self.services.blocking(move |memory| memory.chats().get(&chat)).await?.is_some()
        };
        if !known {
            return Ok(None);
        }
        let Some(place) = self.access.place_unasked(platform.as_ref(), &chat).await? else { return Ok(None) };
        // A realm's journal may be in one of its private channels, but not in another place.
        let realm = match &place.kind {
            PlaceKind::Private { realm: Some(realm), .. } => Some(Scope::Realm(realm.clone())),
            _ => None,
        };
        if place.scope() != home.place && realm.as_ref() != Some(&home.place) {
            return Ok(None);
        }
        let loaded = match self.services.persona(place.shared_realm(), &home.persona).await {
            Ok(loaded) => loaded,
            Err(Error::NoPersona(_)) => return Ok(None),
            Err(error) => return Err(error),
        };
        // Dreams in a direct message are about what was said there, not about everything that the person may read.
        let read_scope = ReadScope::in_place(home.persona.clone(), &place, &ReadableScopes::default());
        let owner = loaded.owner.map(Scope::Realm);
        Ok(Some(WritingContext { chat, posted, place, read_scope, name: loaded.persona.name, owner }))
    }

    /// Returns the journal channel of a place: the one chosen by command, or else the platform's own setting.
    pub(crate) async fn journal_of(&self, home: &PersonaPlace) -> Result<Option<ChatId>, Error> {
        let (platform, place) = (home.platform.clone(), home.place.clone());
        let said = self.services.blocking(move |memory| memory.places().journal_channel(&platform, &place)).await?;
        match (said, &home.place) {
            (Some(JournalChannel { chat }), _) => Ok(chat),
            (None, Scope::Realm(realm)) => Ok(self.services.platform(&home.platform)?.realm(realm).await?.journal),
            (None, _) => Ok(None),
        }
    }

    /// Returns true if a text repeats one that may be read there.
    async fn repeats_earlier(&self, read_scope: &ReadScope, kind: Kind, text: &Text) -> Result<bool, Error> {
        let read_scope = read_scope.clone();
        let earlier =
            self.services.blocking(move |memory| memory.writings().list(&read_scope, &[kind], COMPARED)).await?;
        if earlier.is_empty() {
            return Ok(false);
        }
        let texts = std::iter::once(text).chain(earlier.iter().map(|(memory, _)| &memory.text));
        let vectors = self.indexer.embed(texts.map(|text| text.as_str().to_owned()).collect()).await?;
        let Some((new, earlier)) = vectors.split_first() else { return Ok(false) };
        Ok(earlier.iter().any(|other| cosine(new, other) >= SAME))
    }
}

impl Background {
    /// Returns the key of a persona in a place.
    pub(crate) fn home(
        platform: &azera_types::PlatformId,
        place: &Place,
        persona: &azera_types::PersonaId,
    ) -> PersonaPlace {
        PersonaPlace { platform: platform.clone(), place: place.scope(), persona: persona.clone() }
    }
}
