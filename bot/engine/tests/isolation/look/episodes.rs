//! Reads conversations and what people left open in them.

use azera_adapter::{Reading, SessionReader, ShownConversation};
use azera_memory::{Calendar, ChatEpisode, EpisodeQuery, Memory, ReadScope};
use azera_types::{Clock, PlatformId, TimeZone};

use super::{Looking, MANY};

fn describe_shown(one: &ShownConversation) -> String {
    let evidence = one.matters.iter().flat_map(|matter| std::iter::once(&matter.evidence).chain(&matter.solved));
    let said: Vec<&str> = evidence.chain(&one.why).map(|it| it.text.as_str()).collect();
    let people = [one.people.join(","), one.names.join(",")].join(" ");
    let (place, said) = (&one.place, said.join(" | "));
    format!("{} {} {place:?} {} [{people}] {said}\n", one.title, one.scope, one.ending)
}

fn describe(one: &ChatEpisode) -> String {
    let quotes = one.title.iter().chain(&one.why).map(|quote| quote.text.as_str().to_owned());
    let matters = one.matters.iter().map(|matter| format!("{} {:?}", matter.problem.text.as_str(), matter.state));
    let said: Vec<String> = quotes.chain(matters).chain(one.names.clone()).collect();
    format!("{} {} {}\n", one.occasion.scope, one.ending(), said.join(" | "))
}

impl Looking<'_> {
    pub(super) async fn read_shown_conversations(&mut self, platform: &PlatformId, at: &Reading) {
        let found = self.engine.azera.conversations(platform, at.clone()).await.unwrap();
        self.saw("SessionReader::conversations", found.iter().map(describe_shown).collect());
    }

    pub(super) fn read_episodes(&mut self, read_scope: &ReadScope) {
        let memory: &Memory = &self.engine.memory;
        let calendar = Calendar::new(self.engine.clock.now(), TimeZone::UTC);
        let query = EpisodeQuery { limit: MANY, ..EpisodeQuery::default() };
        read!(self, memory.episodes().list(read_scope, &calendar, &query), |found| found
            .episodes
            .iter()
            .map(describe)
            .collect());
    }
}
