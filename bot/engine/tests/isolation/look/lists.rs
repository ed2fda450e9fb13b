//! Reads every list that platforms with a screen show, and searches the chats by what is said in them.

use azera_adapter::{Platform, Reader, Reading, WritingKind};
use azera_types::Text;

use super::{Looking, MANY, NUMBERS};
use crate::oracle::{Showing, word};
use crate::test_engine::{chat, person};
use crate::world::CHATS;

impl Looking<'_> {
    /// Reads every list that platforms with a screen show.
    pub(super) async fn read_lists(&mut self) {
        let (azera, sim) = (&self.engine.azera, self.engine.platform.sim.clone());
        let (platform, at) = (sim.id(), Reading { chat: chat(self.chat), person: person(self.person) });
        let personas = azera.personas(platform, at.clone()).await.unwrap();
        let chats = azera.chats(platform, at.clone()).await.unwrap();
        let messages = azera.messages(platform, at.clone(), MANY).await.unwrap();
        let branches = azera.branches(platform, at.clone()).await.unwrap();
        let one = azera.chat(platform, at.clone()).await.unwrap();
        let mind = azera.mind(platform, at.clone()).await.unwrap();
        let mut written = Vec::new();
        for kind in [WritingKind::Dream, WritingKind::Journal, WritingKind::Piece] {
            written.extend(azera.writings(platform, at.clone(), kind, MANY).await.unwrap());
        }
        let lines = |texts: Vec<String>| texts.join("\n");
        self.saw("Reader::personas", lines(personas.into_iter().map(|persona| persona.markdown).collect()));
        self.saw("Reader::chats", lines(chats.iter().map(|chat| format!("{} {:?}", chat.chat, chat.title)).collect()));
        let said = messages.iter().map(|message| format!("{}: {}", message.author.name(), message.text.as_str()));
        self.saw("Reader::messages", lines(said.collect()));
        self.saw("Reader::chat", one.map(|one| format!("{} {:?}", one.chat, one.title)).unwrap_or_default());
        self.find_chats().await;
        self.saw("Reader::branches", lines(branches.into_iter().map(|branch| branch.name).collect()));
        self.saw("Reader::mind", format!("{:?}", mind.map(|mind| mind.persona)));
        let texts = written.iter().map(|one| format!("{} {:?} {}", one.text.as_str(), one.themes, one.kind));
        self.saw("Reader::writings", lines(texts.collect()));
        let models = azera.models().await.map(|models| models.into_iter().map(|model| model.title).collect());
        self.saw("Reader::models", lines(models.unwrap_or_default()));
    }

    /// Searches the chats for each of the newest secrets. A chat that is found tells that the secret was said there.
    async fn find_chats(&mut self) {
        let (azera, sim) = (&self.engine.azera, self.engine.platform.sim.clone());
        let secrets = self.engine.watch.oracle().secrets.len();
        let here = self.engine.watch.oracle().persona(self.chat);
        let mut found = Vec::new();
        for secret in secrets.saturating_sub(NUMBERS)..secrets {
            let at = Reading { chat: chat(self.chat), person: person(self.person) };
            let secret = word(secret, false);
            for summary in azera.find_chats(sim.id(), at, &Text::new(&secret)).await.unwrap() {
                // It was said to the persona of the chat that is found.
                let Some(place) = CHATS.iter().position(|(id, _)| *id == summary.chat.as_str()) else { continue };
                let (persona, asker) = (self.engine.watch.oracle().persona(place), Some(self.person));
                let showing = Showing { chat: self.chat, asker, persona: &persona, own_words: false };
                self.engine.watch.shown("Reader::find_chats", &showing, &secret);
                // Other personas of the person's chats show what this chat never shows, so only its own is compared.
                if persona == here {
                    found.push(format!("{secret} in {}", summary.chat));
                }
            }
        }
        self.saw("Reader::find_chats", String::new());
        self.seen.push(format!("chats with secrets: {}", found.join("\n")));
    }
}
