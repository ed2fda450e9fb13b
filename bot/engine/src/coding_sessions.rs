//! The [`SessionReader`] interface: what was learnt in coding sessions, for platforms that show it.

use async_trait::async_trait;
use azera_adapter::{
    HostError, Reading, SearchRequest, Searched, SessionReader, ShownConversation, ShownEvidence, ShownProcedure,
    ShownSession,
};
use azera_memory::{Ending, Episode, Memory, Problem, Procedure, ReadScope, Resolution, project_name, project_owner};
use azera_types::{ChatId, MemoryId, MessageId, PlatformId, RealmId, Scope, folded_project_name};

use crate::engine::Engine;
use crate::error::Error;
use crate::learning_stages::{LearningStage, StageClock};
use crate::other_projects::Elsewhere;
use crate::project_context::project_context;

/// Memories that are named of one procedure.
const NAMED: usize = 5;

/// Returns the part of a read scope that is about projects, or about those with one name. It is empty for a name that no
/// project has that may be read.
pub(crate) fn about_projects(read_scope: &ReadScope, name: Option<&str>) -> Option<ReadScope> {
    let wanted = name.map(folded_project_name);
    read_scope.narrowed_to(|scope| {
        project_of(scope).is_some_and(|project| wanted.as_deref().is_none_or(|wanted| wanted == project))
    })
}

fn realm_of(scope: &Scope) -> Option<&RealmId> {
    match scope {
        Scope::Realm(realm) => Some(realm),
        _ => None,
    }
}

fn project_of(scope: &Scope) -> Option<&str> {
    realm_of(scope).and_then(project_name)
}

fn name_of(scope: &Scope) -> String {
    project_of(scope).unwrap_or_default().to_owned()
}

/// What a read scope may show.
struct Shown<'a> {
    memory: &'a Memory,
    read_scope: &'a ReadScope,
}

impl Shown<'_> {
    fn memory_of(&self, message: &MessageId) -> Result<Option<MemoryId>, azera_memory::Error> {
        self.memory.messages().memory_of(self.read_scope, message)
    }

    fn procedure(&self, procedure: Procedure) -> Result<ShownProcedure, azera_memory::Error> {
        let mut memories = Vec::new();
        for message in procedure.sources.iter().take(NAMED) {
            memories.extend(self.memory_of(message)?);
        }
        Ok(ShownProcedure {
            project: name_of(&procedure.scope),
            steps: procedure.steps.iter().map(|step| step.as_str().to_owned()).collect(),
            tries: procedure.tries,
            worked: procedure.worked,
            sure: procedure.sure,
            span: procedure.span,
            memories,
        })
    }

    fn problem(&self, chat: &ChatId, problem: &Problem) -> Result<ShownEvidence, azera_memory::Error> {
        Ok(ShownEvidence {
            kind: problem.kind.as_str(),
            text: problem.text.to_string(),
            at: problem.at,
            session: chat.clone(),
            memory: self.memory_of(&problem.message)?,
        })
    }

    fn resolution(&self, resolution: &Resolution) -> Result<ShownEvidence, azera_memory::Error> {
        Ok(ShownEvidence {
            kind: "solved",
            text: resolution.text.to_string(),
            at: resolution.at,
            session: resolution.chat.clone(),
            memory: self.memory_of(&resolution.message)?,
        })
    }

    fn session(&self, episode: Episode) -> Result<ShownSession, azera_memory::Error> {
        let problem = episode.ending.problem().map(|problem| self.problem(&episode.chat, problem)).transpose()?;
        let solved = match &episode.ending {
            Ending::Resolved(_, resolution) => Some(self.resolution(resolution)?),
            _ => None,
        };
        Ok(ShownSession {
            memory: self.memory_of(&episode.asked)?,
            project: name_of(&episode.scope),
            title: episode.title.to_string(),
            span: episode.span,
            requests: episode.requests,
            commands: episode.commands,
            ending: episode.ending.as_str(),
            id: episode.chat,
            problem,
            solved,
            linked: episode.linked,
        })
    }
}

impl Engine {
    /// Returns what `read` makes of the projects that the person may read; nothing if there are none.
    async fn of_projects<T: Default + Send + 'static>(
        &self,
        platform: &PlatformId,
        at: &Reading,
        project: Option<String>,
        read: impl FnOnce(&Memory, &ReadScope) -> Result<T, azera_memory::Error> + Send + 'static,
    ) -> Result<T, Error> {
        let Some(here) = self.here(platform, at).await? else { return Ok(T::default()) };
        let Some(read_scope) = about_projects(&here.read_scope, project.as_deref()) else { return Ok(T::default()) };
        let clock = StageClock::start(&self.0.services.measurements.learning, LearningStage::Mine);
        let found = self.0.services.blocking(move |memory| read(memory, &read_scope)).await?;
        clock.done();
        Ok(found)
    }

    async fn list_procedures(
        &self,
        platform: &PlatformId,
        at: Reading,
        project: Option<String>,
    ) -> Result<Vec<ShownProcedure>, Error> {
        let read = |memory: &Memory, read_scope: &ReadScope| {
            let shown = Shown { memory, read_scope };
            let procedures = memory.sessions().learnt(read_scope)?.procedures.into_iter();
            procedures.map(|procedure| shown.procedure(procedure)).collect()
        };
        self.of_projects(platform, &at, project, read).await
    }

    async fn list_coding_sessions(
        &self,
        platform: &PlatformId,
        at: Reading,
        project: Option<String>,
    ) -> Result<Vec<ShownSession>, Error> {
        let read = |memory: &Memory, read_scope: &ReadScope| {
            let shown = Shown { memory, read_scope };
            let episodes = memory.sessions().learnt(read_scope)?.episodes.into_iter();
            episodes.map(|episode| shown.session(episode)).collect()
        };
        self.of_projects(platform, &at, project, read).await
    }

    async fn write_project_context(
        &self,
        platform: &PlatformId,
        at: Reading,
        project: String,
        tokens: usize,
    ) -> Result<Option<String>, Error> {
        let projects = self.0.services.config.projects.clone();
        let person = at.person.clone();
        // A project is shown only in its person's direct messages, which belong to no realm with a zone of its own.
        let zone = self.0.minds.configured_zone();
        let read = move |memory: &Memory, read_scope: &ReadScope| {
            let named = about_projects(read_scope, Some(project.as_str()));
            let grants = named.as_ref().map(ReadScope::grants).unwrap_or_default();
            let realms = || grants.iter().filter_map(|grant| realm_of(&grant.scope));
            // The project of the person's own account, or of the first linked one that has a project of this name.
            let own = realms().find(|realm| project_owner(realm).as_ref() == Some(&person));
            let Some(realm) = own.or_else(|| realms().next()) else { return Ok(None) };
            let elsewhere = Elsewhere::new(&projects, read_scope, realm);
            project_context(memory, read_scope, realm, &elsewhere, tokens, &zone).map(Some)
        };
        self.of_projects(platform, &at, None, read).await
    }
}

#[async_trait]
impl SessionReader for Engine {
    async fn procedures(
        &self,
        platform: &PlatformId,
        at: Reading,
        project: Option<String>,
    ) -> Result<Vec<ShownProcedure>, HostError> {
        self.for_adapter(self.list_procedures(platform, at, project).await)
    }

    async fn coding_sessions(
        &self,
        platform: &PlatformId,
        at: Reading,
        project: Option<String>,
    ) -> Result<Vec<ShownSession>, HostError> {
        self.for_adapter(self.list_coding_sessions(platform, at, project).await)
    }

    async fn conversations(&self, platform: &PlatformId, at: Reading) -> Result<Vec<ShownConversation>, HostError> {
        self.for_adapter(self.list_conversations(platform, at).await)
    }

    async fn search_projects(
        &self,
        platform: &PlatformId,
        line: SearchRequest,
        project: Option<String>,
    ) -> Result<Searched, HostError> {
        let part = |read_scope: ReadScope| about_projects(&read_scope, project.as_deref());
        self.for_adapter(self.search_within(platform, line, part).await)
    }

    async fn project_context(
        &self,
        platform: &PlatformId,
        at: Reading,
        project: String,
        tokens: usize,
    ) -> Result<Option<String>, HostError> {
        self.for_adapter(self.write_project_context(platform, at, project, tokens).await)
    }
}
