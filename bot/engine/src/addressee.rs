//! Whom a message is meant for where more than one persona answers: each hears what is said to it, and nothing else.

use azera_memory::{ChatRow, MessageOwner};
use azera_types::{Inbound, MessageId, PersonaId, Place};

use crate::decide::calls;
use crate::engine::{Engine, LoadedPersona};
use crate::error::Error;

impl Engine {
    /// The invited persona that a message is meant for: the one that it calls by name, or else the one whose message it replies
    /// to. `None` where that is whoever answers in the chat, or nobody.
    pub(crate) async fn called(&self, place: &Place, inbound: &Inbound) -> Result<Option<PersonaId>, Error> {
        let id = inbound.chat.clone();
        let chat = self.blocking(move |memory| memory.chat(&id)).await?;
        let Some(chat) = chat.filter(|chat| !chat.invited.is_empty()) else { return Ok(None) };
        let usual = self.heard_here(place, &chat.persona).await?;
        let usual = usual.iter().flat_map(|played| played.persona.answers_to());
        if calls(&inbound.text, usual.chain(self.0.config.wake_names.iter().map(String::as_str))) {
            return Ok(None);
        }
        let mut invited = self.invited_here(place, &chat).await?;
        if let Some(at) = invited.iter().position(|(_, played)| calls(&inbound.text, played.persona.answers_to())) {
            return Ok(Some(invited.swap_remove(at).0));
        }
        let Some(to) = &inbound.reply_to else { return Ok(None) };
        let said = self.message_owner(&chat, to).await?.filter(|said| said.by_persona);
        Ok(said.map(|said| said.persona).filter(|persona| invited.iter().any(|(identity, _)| identity == persona)))
    }

    /// The personas that were invited to a chat, as far as they may be heard in the place now.
    pub(crate) async fn invited_here(
        &self,
        place: &Place,
        chat: &ChatRow,
    ) -> Result<Vec<(PersonaId, LoadedPersona)>, Error> {
        let mut here = Vec::with_capacity(chat.invited.len());
        for identity in &chat.invited {
            here.extend(self.heard_here(place, identity).await?.map(|played| (identity.clone(), played)));
        }
        Ok(here)
    }

    /// A persona; `None` for one that was removed, and for one of a realm where not everybody belongs to that.
    async fn heard_here(&self, place: &Place, identity: &PersonaId) -> Result<Option<LoadedPersona>, Error> {
        match self.persona(place.shared_realm(), identity).await {
            Ok(played) => Ok(Some(played)),
            Err(Error::NoPersona(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whose a message of this chat is.
    async fn message_owner(&self, chat: &ChatRow, message: &MessageId) -> Result<Option<MessageOwner>, Error> {
        let message = message.clone();
        let found = self.blocking(move |memory| memory.message_owner(&message)).await?;
        Ok(found.filter(|found| found.chat == chat.id))
    }

    /// The persona that a command is about: whose the message is that somebody points at, if that persona may be heard here, or
    /// else whoever answers in the chat.
    pub(crate) async fn spoken_of(
        &self,
        place: &Place,
        chat: &ChatRow,
        about: Option<&MessageId>,
    ) -> Result<PersonaId, Error> {
        let Some(about) = about.filter(|_| !chat.invited.is_empty()) else { return Ok(chat.persona.clone()) };
        let whose = self.message_owner(chat, about).await?.map(|whose| whose.persona);
        let invited = self.invited_here(place, chat).await?;
        let theirs = whose.filter(|persona| invited.iter().any(|(identity, _)| identity == persona));
        Ok(theirs.unwrap_or_else(|| chat.persona.clone()))
    }
}
