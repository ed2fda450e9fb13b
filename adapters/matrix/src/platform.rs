use async_trait::async_trait;
use azera_adapter::{
    Access, ConnectionHistory, Invitation, Making, Outbound, PictureProgress, PlaceNames, Platform, PlatformError,
    Questions, StreamEvent, Streaming, VoiceMessages,
};
use azera_types::{ChatId, MessageId, PersonId, Place, PlatformId, ReadableScopes, RealmId, Timestamp};

use crate::Matrix;

#[async_trait]
impl Platform for Matrix {
    fn id(&self) -> &PlatformId {
        &self.id
    }

    async fn place(&self, chat: &ChatId, asker: &PersonId) -> Result<Option<Place>, PlatformError> {
        Ok(self.audience.place(chat, asker).await?)
    }

    async fn place_for_all(&self, chat: &ChatId) -> Result<Option<Place>, PlatformError> {
        Ok(self.audience.place_for_all(chat).await?)
    }

    async fn readable_scopes(&self, person: &PersonId) -> Result<ReadableScopes, PlatformError> {
        Ok(self.audience.readable_scopes(person).await?)
    }

    async fn access(&self, chat: &ChatId, person: &PersonId) -> Result<Access, PlatformError> {
        Ok(self.audience.access(chat, person).await?)
    }

    async fn deliver(&self, outbound: &Outbound) -> Result<(), PlatformError> {
        Ok(self.replies.deliver(outbound).await?)
    }

    async fn show_again(&self, outbound: &Outbound) -> Result<(), PlatformError> {
        Ok(self.replies.show_again(outbound).await?)
    }

    async fn retract(&self, chat: &ChatId, reply: &MessageId, _at: Timestamp) -> Result<(), PlatformError> {
        Ok(self.replies.retract(chat, reply).await?)
    }

    fn streaming(&self) -> Option<&dyn Streaming> {
        Some(self)
    }

    fn voice_messages(&self) -> Option<&dyn VoiceMessages> {
        Some(self)
    }

    fn questions(&self) -> Option<&dyn Questions> {
        Some(self)
    }

    fn place_names(&self) -> Option<&dyn PlaceNames> {
        Some(self)
    }
}

#[async_trait]
impl PlaceNames for Matrix {
    async fn is_reachable(&self) -> bool {
        self.vitals.connection.is_up()
    }

    fn history(&self) -> ConnectionHistory {
        self.vitals.connection.history()
    }

    async fn invitation(&self) -> Option<Invitation> {
        Some(Invitation::Account(self.own.to_string()))
    }

    async fn realm_name(&self, realm: &RealmId) -> Option<String> {
        self.audience.name_of(&ChatId::new(realm.as_str()).ok()?)
    }

    async fn chat_name(&self, chat: &ChatId) -> Option<String> {
        self.audience.name_of(chat)
    }
}

#[async_trait]
impl Streaming for Matrix {
    async fn event(&self, making: Making<'_>, event: &StreamEvent) {
        self.replies.event(making.chat, making.reply, event);
    }

    async fn progress(&self, making: Making<'_>, progress: PictureProgress<'_>) {
        // Homeservers keep what was uploaded, so previews stay out of rooms.
        self.replies.progress(making.chat, making.reply, progress.text);
    }
}
