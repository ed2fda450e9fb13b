//! Names of chats, for those who can read them: the platform's own, or else the title that Azera knows.

use std::collections::HashMap;

use azera_adapter::Platform;
use azera_memory::{ChatRow, ImportedChat};
use azera_types::{ChatId, PersonId, Scope, Text};

use crate::error::Error;
use crate::services::Services;

/// Most chats that are looked up for one answer.
const MAX_LOOKED_UP: usize = 64;

impl Services {
    /// Returns the scope and the name of a chat that a person reads. A chat that cannot be looked up has no name.
    pub(crate) async fn named_place(
        &self,
        adapter: &dyn Platform,
        chat: &ChatId,
        person: &PersonId,
    ) -> Result<Option<(Scope, Text)>, Error> {
        let Some(place) = self.place(adapter, chat, person).await.ok().flatten() else { return Ok(None) };
        let named = match adapter.place_names() {
            Some(names) => names.chat_name(chat).await.map(Text::new),
            None => None,
        };
        let name = match named {
            Some(name) => Some(name),
            None => self.known_chat(chat).await?.and_then(|known| known.title).map(Text::new),
        };
        Ok(name.map(|name| (place.scope(), name)))
    }

    /// Returns the names of the chats in which something was said that a person may read, each with the scope of that. A
    /// chat has a name only while it is in that scope and the person reads it, or imported it.
    pub(crate) async fn chat_names(
        &self,
        adapter: &dyn Platform,
        person: &PersonId,
        chats: Vec<(ChatId, Scope)>,
    ) -> Result<HashMap<(ChatId, Scope), Text>, Error> {
        let mut looked_up: HashMap<ChatId, Option<(Scope, Text)>> = HashMap::new();
        let mut names = HashMap::new();
        for (chat, said_in) in chats {
            let named = match looked_up.get(&chat) {
                Some(named) => named.clone(),
                None if looked_up.len() >= MAX_LOOKED_UP => continue,
                None => {
                    let named = match self.named_place(adapter, &chat, person).await? {
                        Some(named) => Some(named),
                        None => self.known_chat(&chat).await?.and_then(|known| imported(known, person)),
                    };
                    looked_up.insert(chat.clone(), named.clone());
                    named
                }
            };
            if let Some((_, name)) = named.filter(|(scope, _)| *scope == said_in) {
                names.insert((chat, said_in), name);
            }
        }
        Ok(names)
    }

    async fn known_chat(&self, chat: &ChatId) -> Result<Option<ChatRow>, Error> {
        let chat = chat.clone();
        self.blocking(move |memory| memory.chats().get(&chat)).await
    }
}

/// Returns the scope and the title of a chat that a person imported.
fn imported(chat: ChatRow, person: &PersonId) -> Option<(Scope, Text)> {
    match chat.imported {
        Some(ImportedChat::Kept { by, scope, .. }) if by == *person => Some((scope, Text::new(chat.title?))),
        _ => None,
    }
}
