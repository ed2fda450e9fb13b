//! Coding sessions and conversations that the engine of the tests tells its owner of.

use async_trait::async_trait;
use azera_adapter::{
    Host, HostError, Reading, SearchRequest, Searched, SessionReader, ShownConversation, ShownEvidence, ShownMatter,
    ShownProcedure, ShownSession,
};
use azera_types::{ChatId, MemoryId, MessageId, PlatformId, Scope};

use crate::engine::{Engine, at, is_owner};

#[async_trait]
impl SessionReader for Engine {
    async fn procedures(
        &self,
        _: &PlatformId,
        at_: Reading,
        project: Option<String>,
    ) -> Result<Vec<ShownProcedure>, HostError> {
        if !is_owner(&at_.chat, &at_.person) || project.is_some_and(|project| project != "gate") {
            return Ok(Vec::new());
        }
        let procedure = |(tries, step): (usize, &str)| ShownProcedure {
            project: "gate".into(),
            steps: vec!["make lint".into(), step.into()],
            tries,
            worked: tries - 1,
            sure: 0.5,
            span: (at(1), at(2)),
            memories: vec![MemoryId(7)],
        };
        Ok([(9, "make test"), (4, "make install"), (2, "git push")].map(procedure).into())
    }

    async fn coding_sessions(
        &self,
        _: &PlatformId,
        at_: Reading,
        project: Option<String>,
    ) -> Result<Vec<ShownSession>, HostError> {
        if !is_owner(&at_.chat, &at_.person) || project.is_some_and(|project| project != "gate") {
            return Ok(Vec::new());
        }
        let id = |number: u64| ChatId::new(format!("import:{number}")).unwrap();
        let evidence = |number, kind| ShownEvidence {
            kind,
            text: "make test".into(),
            at: at(number),
            session: id(number),
            memory: Some(MemoryId(number)),
        };
        let session = |(number, ending, linked): (u64, &'static str, Option<u64>)| ShownSession {
            id: id(number),
            project: "gate".into(),
            title: format!("Mend the gate, part {number}"),
            span: (at(number), at(number)),
            requests: 1,
            commands: 1,
            ending,
            problem: (ending != "ended").then(|| evidence(number, "failing command")),
            solved: (ending == "resolved").then(|| evidence(number, "solved")),
            linked: linked.map(id).into_iter().collect(),
            memory: None,
        };
        Ok([(4, "open", None), (3, "ended", None), (2, "resolved", Some(1)), (1, "continued", Some(2))]
            .map(session)
            .into())
    }

    async fn conversations(&self, _: &PlatformId, at_: Reading) -> Result<Vec<ShownConversation>, HostError> {
        if !is_owner(&at_.chat, &at_.person) {
            return Ok(Vec::new());
        }
        let evidence = |number, kind, text: &str| ShownEvidence {
            kind,
            text: text.into(),
            at: at(number),
            session: ChatId::new("ann:main").unwrap(),
            memory: Some(MemoryId(number)),
        };
        let id = |number: u64| MessageId::new(format!("talk:{number}")).unwrap();
        let matter = ShownMatter {
            evidence: evidence(5, "plan", "I'm going to paint the fence on Saturday."),
            by: "Ann".into(),
            state: "resolved",
            solved: Some(evidence(6, "solved", "I painted the fence.")),
        };
        let talk = |number: u64, title: &str| ShownConversation {
            id: id(number),
            chat: ChatId::new("ann:main").unwrap(),
            place: (number == 5).then(|| "The garden".to_owned()),
            scope: Scope::Dm(at_.person.clone()),
            title: title.into(),
            memory: Some(MemoryId(number)),
            why: None,
            cause: None,
            people: vec!["Ann".into()],
            names: Vec::new(),
            span: (at(number), at(number)),
            messages: 2,
            ending: "ended",
            matters: Vec::new(),
            continues: None,
        };
        let cause = Some((id(5), evidence(5, "cause", "The fence is grey.")));
        let later = ShownConversation { continues: Some(id(5)), cause, ..talk(6, "I painted the fence.") };
        let why = Some(evidence(5, "reason", "because it is grey"));
        let first = talk(5, "The fence is grey.");
        let further = self.talks.lock().unwrap().clone().into_iter().rev().map(|(number, continues, cause)| {
            let cause = cause.map(|cause| (id(cause), evidence(cause, "cause", "It is old.")));
            ShownConversation { continues: continues.map(id), cause, ..talk(number, "It goes on.") }
        });
        let first = ShownConversation { ending: "resolved", matters: vec![matter], why, ..first };
        Ok(further.chain([later, first]).collect())
    }

    async fn search_projects(
        &self,
        platform: &PlatformId,
        line: SearchRequest,
        project: Option<String>,
    ) -> Result<Searched, HostError> {
        if project.is_some_and(|project| project != "gate") {
            return Ok(Searched::default());
        }
        self.search(platform, line).await
    }

    async fn project_context(
        &self,
        _: &PlatformId,
        at_: Reading,
        project: String,
        tokens: usize,
    ) -> Result<Option<String>, HostError> {
        let may = is_owner(&at_.chat, &at_.person) && project == "gate";
        Ok(may.then(|| format!("Of the gate, in {tokens} tokens.")))
    }
}
