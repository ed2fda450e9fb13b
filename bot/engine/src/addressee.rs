//! Finds the persona that a message is meant for where several personas answer. Each persona hears only what is said to
//! it.

use azera_memory::{ChatRow, MessageOwner};
use azera_types::{Inbound, MessageId, PersonaId, Place};

use crate::access::AccessControl;
use crate::error::Error;
use crate::services::LoadedPersona;
use crate::turn::calls;

impl AccessControl {
    /// Returns the invited persona that the message calls by name, or else the one whose message it replies to. Returns
    /// `None` if the message is meant for the persona that usually answers in the chat, or for nobody.
    pub(crate) async fn called(&self, place: &Place, inbound: &Inbound) -> Result<Option<PersonaId>, Error> {
        let id = inbound.chat.clone();
        let chat = self.services.blocking(move |memory| memory.chats().get(&id)).await?;
        let Some(chat) = chat.filter(|chat| !chat.invited.is_empty()) else { return Ok(None) };
        let usual = self.loaded_here(place, &chat.persona).await?;
        let usual = usual.iter().flat_map(|loaded| loaded.persona.answers_to());
        if calls(&inbound.text, usual.chain(self.services.config.wake_names.iter().map(String::as_str))) {
            return Ok(None);
        }
        let mut invited = self.invited_here(place, &chat).await?;
        if let Some(at) = invited.iter().position(|(_, loaded)| calls(&inbound.text, loaded.persona.answers_to())) {
            return Ok(Some(invited.swap_remove(at).0));
        }
        let Some(to) = &inbound.reply_to else { return Ok(None) };
        let said = self.message_owner(&chat, to).await?.filter(|said| said.by_persona);
        Ok(said.map(|said| said.persona).filter(|persona| invited.iter().any(|(identity, _)| identity == persona)))
    }

    /// Returns the personas invited to the chat that may be heard in the place now.
    pub(crate) async fn invited_here(
        &self,
        place: &Place,
        chat: &ChatRow,
    ) -> Result<Vec<(PersonaId, LoadedPersona)>, Error> {
        let mut here = Vec::with_capacity(chat.invited.len());
        for identity in &chat.invited {
            here.extend(self.loaded_here(place, identity).await?.map(|loaded| (identity.clone(), loaded)));
        }
        Ok(here)
    }

    /// Returns a persona. Returns `None` if it was removed, or if it belongs to a realm that not every reader of the
    /// place belongs to.
    async fn loaded_here(&self, place: &Place, identity: &PersonaId) -> Result<Option<LoadedPersona>, Error> {
        match self.services.persona(place.shared_realm(), identity).await {
            Ok(loaded) => Ok(Some(loaded)),
            Err(Error::NoPersona(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns who owns a message of this chat.
    async fn message_owner(&self, chat: &ChatRow, message: &MessageId) -> Result<Option<MessageOwner>, Error> {
        let message = message.clone();
        let found = self.services.blocking(move |memory| memory.messages().owner(&message)).await?;
        Ok(found.filter(|found| found.chat == chat.id))
    }

    /// Returns the persona that a command is about: the owner of the message that the command points at, if that
    /// persona may be heard here, and otherwise the one that answers in the chat.
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
