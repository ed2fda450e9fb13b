//! Reads what is known of each person and until when, what counts as known in a whole place, and the files of pictures.

use azera_adapter::{FactPage, KnownReader, MemoryReader, Reading};
use azera_memory::{Calendar, DataSubject, Memory, ReadScope, ReplyRating};
use azera_types::{Clock, MemoryId, MessageId, PlatformId, TimeZone};

use super::{Looking, MANY, json};
use crate::test_engine::{chat, person};
use crate::world::PEOPLE;

impl Looking<'_> {
    pub(super) async fn read_shown_known(&mut self, platform: &PlatformId, at: &Reading) {
        let found = self.engine.azera.known(platform, at.clone(), 0, MANY).await.unwrap();
        let text = |known: &azera_adapter::ShownKnown| {
            let memory = &known.memory;
            format!(
                "{} {} {} {:?} {} {}",
                memory.author.name(),
                memory.scope,
                memory.text.as_str(),
                known.also,
                known.chats,
                known.people
            )
        };
        let fact = |one: &azera_adapter::ShownMemory| {
            assert_eq!(one.author.person(), Some(&at.person), "these are own facts");
            format!("{} {} {:?}\n", one.scope, one.text.as_str(), one.holding)
        };
        let mut own = String::new();
        for label in [None, Some("Checkpoint")] {
            let page = FactPage { label, before: None, limit: MANY };
            let found = self.engine.azera.own_facts(platform, at.clone(), page).await.unwrap();
            own.extend(found.facts.iter().map(fact));
        }
        self.saw("MemoryReader::own_facts", own);
        self.saw("KnownReader::known", found.known.iter().map(text).collect::<Vec<_>>().join("\n"));
    }

    /// Rates a memory and a reply that do not exist.
    pub(super) fn rate_nothing(&mut self, read_scope: &ReadScope) {
        let engine = self.engine;
        let memory: &Memory = &engine.memory;
        let (me, here, now) = (person(self.person), chat(self.chat), engine.clock.now());
        let (none, nowhere) = (MemoryId(u64::MAX), MessageId::new("nowhere").unwrap());
        read!(self, memory.memories().rate(read_scope, &here, none, &me, Some(true), now), |found| json(&found));
        let (reply, chat, person) = (&nowhere, &here, &me);
        let rating = ReplyRating { reply, chat, person, is_helpful: true, reaction: None, at: now };
        read!(self, memory.memories().rate_reply(read_scope, rating), |found| json(&found));
        read!(self, memory.memories().unrate_reply(read_scope, &nowhere, &me, None), |found| json(&found));
    }

    pub(super) fn read_picture_file(&mut self, read_scope: &ReadScope, message: &MessageId) {
        let memory: &Memory = &self.engine.memory;
        let file = read!(self, memory.pictures().file(read_scope, message), |found| {
            found.as_ref().map(|(part, _)| json(part)).unwrap_or_default()
        });
        let same = read!(self, memory.pictures().file_at(read_scope, message, 0), |found| {
            found.as_ref().map(|bytes| bytes.len().to_string()).unwrap_or_default()
        });
        assert_eq!(file.is_some(), same.is_some(), "a picture has one part, and both read it alike");
    }

    /// Reads the files of the person who looks, who always gets all of them.
    pub(super) fn read_own_files(&mut self) {
        let memory: &Memory = &self.engine.memory;
        let subject = DataSubject(person(self.person));
        read!(self, memory.export_files(&subject, 1, (MANY, u64::MAX)), |found| format!("{}", found.parts));
    }

    /// Reads what is kept in mind of each person, and until when it holds.
    pub(super) fn read_statements(&mut self, read_scope: &ReadScope) {
        let engine = self.engine;
        let memory: &Memory = &engine.memory;
        let calendar = Calendar::new(engine.clock.now(), TimeZone::UTC);
        for person in (0..PEOPLE.len()).map(person) {
            let salient = read!(self, memory.memories().salient(read_scope, &person, MANY), |found| json(&found));
            for source in salient.iter().flat_map(|row| &row.sources) {
                let Some(said) = memory.messages().get(read_scope, source).unwrap() else { continue };
                read!(self, memory.memories().comparable(read_scope, &person, &said, MANY), |found| json(&found));
            }
            for row in &salient {
                read!(self, memory.memories().replaced(read_scope, row), |found| json(&found));
                read!(self, memory.memories().validity(read_scope, row, &calendar), |found| format!("{found:?}"));
            }
            read!(self, memory.memories().kept_by(read_scope, &person, MANY), |found| json(&found));
            read!(self, memory.memories().kept_within(read_scope, &person, None, None, (MANY, MANY)), |found| json(
                &found.facts
            ));
        }
    }

    pub(super) fn read_known(&mut self, read_scope: &ReadScope) {
        let memory: &Memory = &self.engine.memory;
        read!(self, memory.memories().known(read_scope, 0, MANY), |found| {
            found.0.iter().map(|known| format!("{} {:?}", json(&known.newest), known.again)).collect()
        });
    }
}
