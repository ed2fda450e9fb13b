//! Lists the places as the operator sees them.

use azera_adapter::{PlaceChange, PlaceHost};
use azera_types::{PersonId, PlatformId};

use super::Looking;
use crate::oracle::Showing;
use crate::test_engine::chat;

impl Looking<'_> {
    /// The list names places and nothing that was said in them. It is the operator's, so it may differ where places differ
    /// that the person cannot read; it is judged and not compared.
    pub(super) async fn read_places(&self) {
        let listed = self.engine.azera.places(&PlatformId::new("web").unwrap()).await.unwrap();
        let persona = self.engine.watch.oracle().persona(self.chat);
        let showing = Showing { chat: self.chat, asker: Some(self.person), persona: &persona, own_words: false };
        self.engine.watch.shown("PlaceHost::places", &showing, &format!("{listed:?}"));
        // It is refused everywhere, so that looking changes nothing.
        let (operator, nobody) = (PersonId::new("web:owner").unwrap(), PlaceChange::Persona("nobody".to_owned()));
        let refused = self.engine.azera.change_place(&operator, &chat(self.chat), vec![nobody]).await;
        self.engine.watch.shown("PlaceHost::change_place", &showing, &format!("{refused:?}"));
    }
}
