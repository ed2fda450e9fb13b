//! Reads what counts as known in a whole place, and the files of pictures.

use azera_adapter::{KnownReader, Reading};
use azera_memory::{Memory, ReadScope};
use azera_types::PlatformId;

use super::{Looking, MANY, json};

impl Looking<'_> {
    pub(super) async fn read_shown_known(&mut self, platform: &PlatformId, at: &Reading) {
        let found = self.engine.azera.known(platform, at.clone(), 0, MANY).await.unwrap();
        let text = |known: &azera_adapter::ShownKnown| {
            let memory = &known.memory;
            format!(
                "{} {} {} {:?} {}",
                memory.author.name(),
                memory.scope,
                memory.text.as_str(),
                known.also,
                known.chats
            )
        };
        self.saw("KnownReader::known", found.known.iter().map(text).collect::<Vec<_>>().join("\n"));
    }

    pub(super) fn read_known(&mut self, read_scope: &ReadScope) {
        let memory: &Memory = &self.engine.memory;
        read!(self, memory.memories().known(read_scope, 0, MANY), |found| {
            found.0.iter().map(|known| format!("{} {:?}", json(&known.newest), known.again)).collect()
        });
    }
}
