//! The diary: a persona writes an entry when a conversation is finished.

use azera_memory::{Kind, MemoryRow, NewWriting, ReadScope};
use azera_types::{Author, Place, PlatformId, ReadableScopes, Scope, Timestamp};

use super::agenda::{ChatActivity, PersonaPlace};
use super::draft::{ATTEMPTS, Draft, DraftRequest};
use super::material::{self, SourceLine};
use super::prompts::{DIARY, Filling, fill};
use crate::background::Background;
use crate::error::Error;

/// Newest messages of a conversation that are read.
pub(super) const LOOKED_AT: usize = 200;

/// A conversation, as far as it may be written about.
pub(super) struct Conversation {
    pub(super) place: Place,
    /// The persona's name.
    pub(super) name: String,
    /// The messages, oldest first.
    pub(super) said: Vec<SourceLine>,
}

impl Background {
    /// Writes a diary entry about what was said in a chat since the last one, if that is enough.
    pub(super) async fn write_diary(&self, talk: &ChatActivity, now: Timestamp) -> Result<Option<MemoryRow>, Error> {
        let (chat, persona) = (talk.chat.clone(), talk.persona.clone());
        let until = self.services.blocking(move |memory| memory.progress().diary_until(&chat, &persona)).await?;
        let Some(conversation) = self.conversation(talk, until).await? else { return Ok(None) };
        let by_people = conversation.said.iter().filter(|said| said.author.person().is_some()).count();
        let home = PersonaPlace {
            platform: talk.platform.clone(),
            place: conversation.place.scope(),
            persona: talk.persona.clone(),
        };
        if by_people < self.minds.overrides(&home.platform, &home.place).await?.garden.diary_messages {
            // It counts together with what is said next.
            return Ok(None);
        }
        if self.budget_by_day(&home, now).await? == 0 {
            return Ok(None);
        }
        let written = self.diary_of(talk, &home, conversation, now).await?;
        let (chat, persona) = (talk.chat.clone(), talk.persona.clone());
        self.services.blocking(move |memory| memory.progress().set_diary_until(&chat, &persona, now)).await?;
        Ok(written)
    }

    async fn diary_of(
        &self,
        talk: &ChatActivity,
        home: &PersonaPlace,
        at: Conversation,
        now: Timestamp,
    ) -> Result<Option<MemoryRow>, Error> {
        let by_people: Vec<SourceLine> =
            at.said.iter().filter(|said| said.author.person().is_some()).cloned().collect();
        let form = self.writing_form();
        // A small model gets only what people said; a larger one gets both sides.
        let from = if form.led { by_people } else { at.said.clone() };
        let chosen = material::telling(from, form.lines);
        let (Some(first), Some(newest)) = (chosen.first(), chosen.last()) else { return Ok(None) };
        let given = material::lines(&chosen);
        let lead = format!("{} told me", first.author.name());
        let Some(about) = newest.sources.first() else { return Ok(None) };
        for attempt in 0..ATTEMPTS {
            if self.budget_by_day(home, now).await? == 0 {
                return Ok(None);
            }
            let messages = fill(DIARY, &Filling { persona: &at.name, lines: &given, mood: None, other: "" });
            let wanted = DraftRequest { messages, given: &given, lead: lead.clone(), about, attempt };
            let composed = self.compose(wanted).await;
            self.note_model_calls(home, now, 1).await?;
            match composed? {
                Ok(composed) => return self.keep_of(talk, Kind::Diary, &chosen, composed, now, None).await,
                Err(flaw) => tracing::debug!(?flaw, "discarding a diary entry"),
            }
        }
        Ok(None)
    }

    /// Returns what was said in a chat since `since`, as far as everybody who reads the chat may read it. Returns
    /// `None` if the chat is gone or the persona is not allowed there.
    pub(super) async fn conversation(
        &self,
        talk: &ChatActivity,
        since: Option<Timestamp>,
    ) -> Result<Option<Conversation>, Error> {
        let Some((place, read_scope, name, _)) = self.whereabouts(talk).await? else { return Ok(None) };
        let chat = talk.chat.clone();
        let rows =
            self.services.blocking(move |memory| memory.messages().history(&read_scope, &chat, LOOKED_AT)).await?;
        // Posts are not part of the conversation.
        let rows = rows.iter().filter(|row| row.author.person().is_some() || row.answers.is_some());
        let said = rows.filter(|row| since.is_none_or(|since| row.at > since)).map(SourceLine::from).collect();
        Ok(Some(Conversation { place, name, said }))
    }

    pub(super) async fn whereabouts(
        &self,
        talk: &ChatActivity,
    ) -> Result<Option<(Place, ReadScope, String, Option<Scope>)>, Error> {
        let Ok(platform) = self.services.platform(&talk.platform) else { return Ok(None) };
        let Some(place) = self.access.place_unasked(platform.as_ref(), &talk.chat).await? else { return Ok(None) };
        let loaded = match self.services.persona(place.shared_realm(), &talk.persona).await {
            Ok(loaded) => loaded,
            Err(Error::NoPersona(_)) => return Ok(None),
            Err(error) => return Err(error),
        };
        let read_scope = ReadScope::in_place(talk.persona.clone(), &place, &ReadableScopes::default());
        Ok(Some((place, read_scope, loaded.persona.name, loaded.owner.map(Scope::Realm))))
    }

    /// Stores a writing about a conversation for its own chat, and posts it there if `post` names a platform.
    pub(super) async fn keep_of(
        &self,
        talk: &ChatActivity,
        kind: Kind,
        chosen: &[SourceLine],
        composed: Draft,
        now: Timestamp,
        post: Option<PlatformId>,
    ) -> Result<Option<MemoryRow>, Error> {
        // People may have joined or left while it was written.
        let Some((place, read_scope, name, owner)) = self.whereabouts(talk).await? else { return Ok(None) };
        let (scope, source_scopes) = (place.scope(), material::source_scopes(chosen, owner.as_ref(), now));
        if !read_scope.allows(&talk.persona, &scope, &source_scopes, now) {
            return Ok(None);
        }
        let new = NewWriting {
            persona: talk.persona.clone(),
            persona_name: name,
            kind,
            chat: talk.chat.clone(),
            scope,
            source_scopes,
            sources: material::sources(chosen),
            text: composed.text,
            at: now,
            prompt: composed.prompt,
            model: composed.model,
            title: None,
            themes: composed.themes,
            mood: None,
            imported_by: None,
            post,
            tended: None,
        };
        let written = self.services.blocking(move |memory| memory.writings().write(new)).await?;
        self.indexer.wake();
        let Some((memory, post)) = written else { return Ok(None) };
        if post.is_some() {
            self.deliver_what_waits().await;
        }
        Ok(Some(memory))
    }
}

impl Background {
    /// Returns the person who spoke last.
    pub(super) fn other(said: &[SourceLine]) -> Option<&Author> {
        said.iter().rev().map(|said| &said.author).find(|author| matches!(author, Author::Person { .. }))
    }
}
