//! The [`Host`] interface that adapters call.

use std::collections::HashSet;

use async_trait::async_trait;
use azera_adapter::{
    AutocompleteOption, AutocompleteRequest, ChatInfo, CommandAnswer, CommandLine, Host, HostError, IgnoreReason,
    InboundEvent, Receipt, Recorded, Removed, SearchRequest, Searched,
};
use azera_memory::{Forget, Memory, ReadScope, known_by};
use azera_types::{ChatId, MessageId, PersonId, PlatformId, RealmId, Text, Timestamp};

use crate::engine::Engine;
use crate::error::Error;
use crate::recall::{Asking, Trace};
use crate::report::hit;
use crate::turn::Submitted;

/// Maximum number of hits of a search.
const MAX_SEARCH_HITS: usize = 100;

impl From<Error> for HostError {
    fn from(error: Error) -> Self {
        use azera_memory::Error as Memory;
        use azera_model_api::Error as Model;

        match error {
            Error::NotAllowed => Self::NotAllowed,
            Error::QueueFull => Self::Busy,
            Error::Memory(Memory::Full { .. }) => Self::Full,
            Error::Interrupted | Error::Model(Model::Stopped) => Self::Interrupted,
            // The engine itself tries such a turn again.
            error @ (Error::Panicked { .. } | Error::Defect) => Self::Internal(error.into()),
            error if error.is_transient() => Self::Unavailable(error.into()),
            Error::Vault(error) if error.is_of_the_request() => Self::Refused(error.into()),
            error @ (Error::Memory(Memory::Invalid(_))
            | Error::Model(Model::TooLong { .. })
            | Error::Platform(_)
            | Error::Prompt(_)
            | Error::NoAnswer
            | Error::NoVault
            | Error::NoPersona(_)
            | Error::NoTime(_)) => Self::Refused(error.into()),
            error @ (Error::Memory(_) | Error::Vault(_) | Error::Voice(_) | Error::Recordings(_)) => {
                Self::Storage(error.into())
            }
            error @ (Error::Model(_) | Error::NoPlatform | Error::NotDispatched(_)) => Self::Internal(error.into()),
        }
    }
}

impl Engine {
    /// Converts the result of a component for an adapter. Work that was interrupted by the shutdown is named as such.
    pub(crate) fn for_adapter<T>(&self, result: Result<T, Error>) -> Result<T, HostError> {
        result.map_err(|error| match HostError::from(error) {
            HostError::Interrupted if self.0.services.stopping.is_cancelled() => HostError::Stopping,
            error => error,
        })
    }

    async fn open_chat(&self, platform: &PlatformId, info: ChatInfo) -> Result<Recorded, Error> {
        let chat = info.chat.clone();
        self.0.turns.ensure_chat(platform, info).await?;
        // Messages that could not be answered while their chat was unknown can be answered now.
        self.0.turns.take_up(|message| message.chat == chat).await?;
        Ok(Recorded::New)
    }

    async fn delete(&self, message: MessageId) -> Result<Recorded, Error> {
        let gone = self.0.forgetting.forget(Forget::Message(message), true, None).await?;
        Ok(match gone.messages + gone.replies {
            0 => Recorded::Ignored(IgnoreReason::UnknownMessage),
            _ => Recorded::New,
        })
    }

    async fn remove_reactions(
        &self,
        reply: MessageId,
        person: Option<PersonId>,
        reactions: Removed,
    ) -> Result<Recorded, Error> {
        let remove = move |memory: &Memory| {
            memory.memories().remove_reactions(&reply, person.as_ref(), |name, is_up| reactions.has(name, is_up))
        };
        Ok(match self.0.services.blocking(remove).await? {
            0 => Recorded::Ignored(IgnoreReason::NothingNew),
            _ => Recorded::New,
        })
    }

    async fn store_chunks(
        &self,
        message: MessageId,
        version: Option<Timestamp>,
        pieces: Vec<Text>,
    ) -> Result<Recorded, Error> {
        let stored =
            self.0.services.blocking(move |memory| memory.memories().store_chunks(&message, version, pieces)).await?;
        if stored == 0 {
            return Ok(Recorded::Ignored(IgnoreReason::NothingNew));
        }
        self.0.indexer.wake();
        Ok(Recorded::New)
    }

    async fn leave(&self, platform: &PlatformId, realm: RealmId, chats: Vec<ChatId>) -> Result<Recorded, Error> {
        let platform = platform.clone();
        let own = self
            .0
            .services
            .blocking(move |memory| {
                let known: HashSet<ChatId> = memory.chats().list(&platform)?.into_iter().map(|chat| chat.id).collect();
                Ok(chats.into_iter().filter(|chat| known.contains(chat)).collect())
            })
            .await?;
        self.0.forgetting.forget(Forget::Realm(realm, own), true, None).await?;
        Ok(Recorded::New)
    }

    async fn search_memories(&self, platform: &PlatformId, line: SearchRequest) -> Result<Searched, Error> {
        self.search_within(platform, line, Some).await
    }

    /// Searches in a part of what may be shown; finds nothing if `part` leaves nothing.
    pub(crate) async fn search_within(
        &self,
        platform: &PlatformId,
        line: SearchRequest,
        part: impl FnOnce(ReadScope) -> Option<ReadScope>,
    ) -> Result<Searched, Error> {
        let adapter = self.0.services.platform(platform)?;
        let Some(place) = self.0.services.place(adapter.as_ref(), &line.chat, &line.person).await? else {
            return Ok(Searched::default());
        };
        let chat = {
            let chat = line.chat.clone();
            self.0.services.blocking(move |memory| memory.chats().get(&chat)).await?
        };
        let persona = chat.map_or_else(|| self.0.services.config.persona.clone(), |chat| chat.persona);
        let name = self.0.services.persona(place.shared_realm(), &persona).await?.persona.name;
        let read_scope = self.0.access.read_scope(adapter.as_ref(), &place, &persona).await?;
        let Some(read_scope) = part(read_scope) else { return Ok(Searched::default()) };
        let results = line.limit.unwrap_or(self.0.recall.default_results()).min(MAX_SEARCH_HITS);
        let calendar = self.0.minds.calendar(&self.0.access, platform, &place.scope()).await?;
        let as_of =
            line.as_of.as_ref().map(|time| known_by(time, &calendar).ok_or_else(|| Error::NoTime(time.to_string())));
        let (person, known_by) = (&line.person, as_of.transpose()?);
        let asking = Asking { person, persona: &name, calendar: &calendar, known_by, trace: Trace::Cached };
        let query = Text::new(&*line.query);
        let recall = self.0.recall.search(&read_scope, &query, asking, results).await?;
        let missing = recall.missing.iter().map(|part| (*part).to_owned()).collect();
        Ok(Searched { hits: recall.hits.iter().map(|found| hit(found, &calendar.zone)).collect(), missing })
    }
}

#[async_trait]
impl Host for Engine {
    async fn submit(&self, platform: &PlatformId, event: InboundEvent) -> Result<Receipt, HostError> {
        let submitted = match event {
            InboundEvent::Chat(info) => {
                return self.for_adapter(self.open_chat(platform, info).await).map(Receipt::unanswered);
            }
            InboundEvent::Deletion { message } => {
                return self.for_adapter(self.delete(message).await).map(Receipt::unanswered);
            }
            InboundEvent::Chunks { message, version, pieces } => {
                return self.for_adapter(self.store_chunks(message, version, pieces).await).map(Receipt::unanswered);
            }
            InboundEvent::ReactionsRemoved { reply, person, reactions } => {
                let removed = self.remove_reactions(reply, person, reactions).await;
                return self.for_adapter(removed).map(Receipt::unanswered);
            }
            InboundEvent::Left { realm, chats } => {
                return self.for_adapter(self.leave(platform, realm, chats).await).map(Receipt::unanswered);
            }
            InboundEvent::Message(inbound) => self.0.turns.receive(platform, inbound).await,
            InboundEvent::Edit { message, edit } => self.0.turns.edit(platform, &message, edit).await,
        };
        let Submitted { recorded, ending } = self.for_adapter(submitted)?;
        let engine = self.clone();
        Ok(Receipt::new(recorded, async move { engine.for_adapter(ending.await) }))
    }

    async fn command(&self, platform: &PlatformId, line: CommandLine) -> Result<CommandAnswer, HostError> {
        self.for_adapter(self.0.commands.run_command(platform, line).await)
    }

    async fn autocomplete(
        &self,
        platform: &PlatformId,
        line: AutocompleteRequest,
    ) -> Result<Vec<AutocompleteOption>, HostError> {
        self.for_adapter(self.0.commands.autocomplete_options(platform, line).await)
    }

    async fn search(&self, platform: &PlatformId, line: SearchRequest) -> Result<Searched, HostError> {
        self.for_adapter(self.search_memories(platform, line).await)
    }

    async fn settle(&self) -> Result<(), HostError> {
        self.0.judge.classifiers.settled().await;
        self.0.turns.queues.idle().await;
        self.0.turns.files.idle().await;
        self.0.turns.spoken.idle().await;
        self.0.pictures.draw_all().await?;
        self.0.turns.deliver_outbox().await?;
        self.0.forgetting.retract_due().await;
        // A withdrawn reply is generated again.
        self.0.turns.queues.idle().await;
        self.0.indexer.index_all().await?;
        self.0.indexer.scrub().await?;
        self.run_jobs().await;
        // The writings of the jobs are indexed, too.
        self.0.indexer.index_all().await?;
        self.0.indexer.find_themes().await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use azera_adapter::PlatformError;

    use super::*;

    #[test]
    fn an_error_keeps_its_type_until_an_adapter_decides() {
        let busy = azera_model_api::Error::Unavailable("the server is down".into());
        let damaged = azera_memory::Error::Damaged { table: "messages", why: "line 1 column 1".into() };
        let named = |error: Error| HostError::from(error);
        assert!(matches!(named(Error::QueueFull), HostError::Busy));
        assert!(matches!(named(Error::Memory(azera_memory::Error::Full { what: "commit" })), HostError::Full));
        assert!(matches!(named(Error::Model(azera_model_api::Error::Stopped)), HostError::Interrupted));
        assert!(matches!(named(Error::NoPersona("mara".into())), HostError::Refused(_)));
        assert!(matches!(named(Error::Memory(damaged)), HostError::Storage(_)));
        assert!(matches!(named(Error::Panicked { tries: 1 }), HostError::Internal(_)));
        assert!(matches!(
            named(Error::Platform(PlatformError::Transient("no line".into()))),
            HostError::Unavailable(_)
        ));
        let HostError::Unavailable(cause) = named(Error::Model(busy)) else {
            panic!("a server that is down comes back")
        };
        assert!(matches!(cause.downcast_ref(), Some(Error::Model(azera_model_api::Error::Unavailable(_)))));
    }
}
