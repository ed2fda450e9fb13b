//! Everyday conversations, for platforms that show what people talked about.

use azera_adapter::{Reading, ShownConversation, ShownEvidence, ShownMatter};
use azera_memory::{
    Cause, ChatEpisode, EpisodeQuery, MAX_EPISODES, Matter, MatterState, Memory, Quote, ReadScope, Resolution,
};
use azera_types::{ChatId, MemoryId, MessageId, PlatformId, Timestamp};

use crate::engine::Engine;
use crate::error::Error;

/// What a read scope may show.
struct Shown<'a> {
    memory: &'a Memory,
    read_scope: &'a ReadScope,
}

impl Engine {
    /// Returns the conversations that a person may read in a chat.
    pub(crate) async fn list_conversations(
        &self,
        platform: &PlatformId,
        at: Reading,
    ) -> Result<Vec<ShownConversation>, Error> {
        let Some(here) = self.here(platform, &at).await? else { return Ok(Vec::new()) };
        let calendar = self.0.minds.calendar(&self.0.access, platform, &here.place.scope()).await?;
        let read_scope = here.read_scope;
        let query = EpisodeQuery { limit: MAX_EPISODES, ..EpisodeQuery::default() };
        let read = move |memory: &Memory| {
            let shown = Shown { memory, read_scope: &read_scope };
            let episodes = memory.episodes().list(&read_scope, &calendar, &query)?.episodes;
            episodes.into_iter().map(|episode| shown.conversation(episode)).collect()
        };
        let mut found: Vec<ShownConversation> = self.0.services.blocking(read).await?;
        let chats = found.iter().map(|one| (one.chat.clone(), one.scope.clone()));
        let chats = chats.collect();
        let names = self.0.services.chat_names(here.adapter.as_ref(), &at.person, chats).await?;
        found.iter_mut().for_each(|one| {
            let name = names.get(&(one.chat.clone(), one.scope.clone()));
            one.place = name.map(|name| name.as_str().to_owned());
        });
        Ok(found)
    }
}

impl Shown<'_> {
    fn conversation(&self, episode: ChatEpisode) -> Result<ShownConversation, azera_memory::Error> {
        let ending = episode.ending();
        let chat = episode.occasion.chat;
        let mut matters = Vec::with_capacity(episode.matters.len());
        for matter in &episode.matters {
            matters.push(self.matter(&chat, matter)?);
        }
        let why = episode.why.map(|why| reason(&chat, "reason", why));
        let cause = episode.cause.map(|cause| self.cause(&chat, cause)).transpose()?;
        let (title, memory) = match episode.title {
            Some(Quote { text, memory, .. }) => (text.to_string(), memory),
            None => (String::new(), None),
        };
        Ok(ShownConversation {
            id: episode.id,
            place: None,
            scope: episode.occasion.scope,
            title,
            memory,
            why,
            cause,
            people: episode.people.iter().map(|author| author.name().to_owned()).collect(),
            names: episode.names,
            span: episode.occasion.span,
            messages: episode.messages,
            ending,
            matters,
            continues: episode.continues,
            chat,
        })
    }

    fn cause(&self, chat: &ChatId, cause: Cause) -> Result<(MessageId, ShownEvidence), azera_memory::Error> {
        let said_in = self.memory.messages().get(self.read_scope, &cause.said.message)?.map(|row| row.chat);
        let evidence = reason(said_in.as_ref().unwrap_or(chat), "cause", cause.said);
        Ok((cause.episode, evidence))
    }

    fn matter(&self, chat: &ChatId, matter: &Matter) -> Result<ShownMatter, azera_memory::Error> {
        let problem = &matter.problem;
        let (state, solved) = match &matter.state {
            MatterState::Open => ("open", None),
            MatterState::Continued(_) => ("continued", None),
            MatterState::Resolved(report) => ("resolved", Some(self.solved(report)?)),
        };
        let evidence =
            self.evidence(problem.kind.as_str(), problem.text.as_str(), problem.at, chat, &problem.message)?;
        Ok(ShownMatter { evidence, by: matter.author.name().to_owned(), state, solved })
    }

    fn solved(&self, report: &Resolution) -> Result<ShownEvidence, azera_memory::Error> {
        self.evidence("solved", report.text.as_str(), report.at, &report.chat, &report.message)
    }

    fn evidence(
        &self,
        kind: &'static str,
        text: &str,
        at: Timestamp,
        chat: &ChatId,
        message: &MessageId,
    ) -> Result<ShownEvidence, azera_memory::Error> {
        let memory: Option<MemoryId> = self.memory.messages().memory_of(self.read_scope, message)?;
        Ok(ShownEvidence { kind, text: text.to_owned(), at, session: chat.clone(), memory })
    }
}

fn reason(chat: &ChatId, kind: &'static str, why: Quote) -> ShownEvidence {
    ShownEvidence { kind, text: why.text.to_string(), at: why.at, session: chat.clone(), memory: why.memory }
}
