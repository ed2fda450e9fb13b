//! Reads what was learnt in coding sessions.

use azera_adapter::{Reading, SearchRequest, SessionReader};
use azera_memory::ReadScope;
use azera_types::{ChatId, PlatformId, Text};

use super::{Looking, MANY, json};
use crate::test_engine::{chat, person};
use crate::world::PEOPLE;

/// A project that some people have.
const PROJECT: &str = "gate";

impl Looking<'_> {
    /// Reads the newest imported chats of each place, and what is searched next of a chat.
    pub(super) fn read_imports(&mut self, read_scope: &ReadScope, chat: &ChatId) {
        let memory = &self.engine.memory;
        for grant in read_scope.grants() {
            let found = memory.imports().latest_chats(read_scope, &grant.scope, MANY).unwrap();
            self.saw("Memory::imports().latest_chats", json(&found));
        }
        let found = memory.imports().to_search(read_scope, chat, MANY).unwrap();
        self.saw("Memory::imports().to_search", json(&found.map(|part| part.rows)));
        let found = memory.imports().to_read(read_scope, chat, MANY, MANY).unwrap();
        self.saw("Memory::imports().to_read", json(&found.map(|part| part.rows)));
        for person in (0..PEOPLE.len()).map(person) {
            read!(self, memory.imports().marked(read_scope, chat, &person), |found| format!("{found:?}"));
        }
    }

    /// Asks the reader of sessions for all projects, and for one by its name.
    pub(super) async fn read_coding_sessions(&mut self, platform: &PlatformId, at: &Reading) {
        let azera = &self.engine.azera;
        let (mut steps, mut sessions) = (Vec::new(), Vec::new());
        for project in [None, Some(PROJECT.to_owned())] {
            for one in azera.procedures(platform, at.clone(), project.clone()).await.unwrap() {
                steps.push(format!("{} {:?}", one.steps.join("\n"), one.memories));
            }
            for one in azera.coding_sessions(platform, at.clone(), project).await.unwrap() {
                let evidence = one.problem.iter().chain(&one.solved).map(|it| it.text.clone());
                sessions.push(format!("{} {} {}", one.title, one.ending, evidence.collect::<Vec<_>>().join("\n")));
            }
        }
        let query = Text::new("what is the lighthouse password?");
        let line =
            SearchRequest { chat: at.chat.clone(), person: at.person.clone(), query, limit: Some(50), as_of: None };
        let texts = |found: azera_adapter::Searched| {
            found.hits.iter().map(|hit| format!("{}\n", hit.text.as_str())).collect::<String>()
        };
        // A chat may have a persona that is gone.
        let found = azera.search_projects(platform, line, None).await.map_or_else(|error| error.to_string(), texts);
        self.saw("SessionReader::search_projects", found);
        let context = azera.project_context(platform, at.clone(), PROJECT.to_owned(), 8_000).await.unwrap();
        self.saw("SessionReader::procedures", steps.join("\n"));
        self.saw("SessionReader::coding_sessions", sessions.join("\n"));
        self.saw("SessionReader::project_context", context.unwrap_or_default());
    }

    /// Reads what the memory itself makes of the sessions.
    pub(super) fn read_learnt(&mut self, read_scope: &ReadScope) {
        let memory = &self.engine.memory;
        read!(self, memory.sessions().learnt(read_scope), |found| {
            let endings = found.episodes.iter().map(|one| format!("{} {:?}", one.title.as_str(), one.ending.problem()));
            endings.collect::<Vec<_>>().join("\n")
        });
        for message in memory.messages().history(read_scope, &chat(self.chat), 3).unwrap() {
            read!(self, memory.messages().memory_of(read_scope, &message.id), |found| format!("{found:?}"));
        }
    }
}
