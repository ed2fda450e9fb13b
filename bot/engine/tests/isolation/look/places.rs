//! Lists the places as the operator sees them.

use azera_adapter::PlaceHost;
use azera_types::PlatformId;

use super::Looking;
use crate::oracle::Showing;

impl Looking<'_> {
    /// The list names places and nothing that was said in them. It is the operator's, so it may differ where places differ
    /// that the person cannot read; it is judged and not compared.
    pub(super) async fn read_places(&self) {
        let listed = self.engine.azera.places(&PlatformId::new("web").unwrap()).await.unwrap();
        let persona = self.engine.watch.oracle().persona(self.chat);
        let showing = Showing { chat: self.chat, asker: Some(self.person), persona: &persona, own_words: false };
        self.engine.watch.shown("PlaceHost::places", &showing, &format!("{listed:?}"));
    }
}
