//! Reads what is known of each person and until when, and what counts as known in a whole place.

use azera_adapter::{KnownReader, Reading};
use azera_memory::{Calendar, Memory, ReadScope};
use azera_types::{Clock, PlatformId, TimeZone};

use super::{Looking, MANY, json};
use crate::test_engine::person;
use crate::world::PEOPLE;

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

    /// Reads what is kept in mind of each person, and until when it holds.
    pub(super) fn read_statements(&mut self, read_scope: &ReadScope) {
        let engine = self.engine;
        let memory: &Memory = &engine.memory;
        let calendar = Calendar::new(engine.clock.now(), TimeZone::UTC);
        for person in (0..PEOPLE.len()).map(person) {
            let salient = read!(self, memory.memories().salient(read_scope, &person, MANY), |found| json(&found));
            for row in &salient {
                read!(self, memory.memories().replaced(read_scope, row), |found| json(&found));
                read!(self, memory.memories().validity(read_scope, row, &calendar), |found| format!("{found:?}"));
            }
            read!(self, memory.memories().kept_by(read_scope, &person, MANY), |found| json(&found));
        }
    }

    pub(super) fn read_known(&mut self, read_scope: &ReadScope) {
        let memory: &Memory = &self.engine.memory;
        read!(self, memory.memories().known(read_scope, 0, MANY), |found| {
            found.0.iter().map(|known| format!("{} {:?}", json(&known.newest), known.again)).collect()
        });
    }
}
