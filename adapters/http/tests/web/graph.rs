//! The knowledge graph. This engine reads a relation from each message such as "ONE knows OTHER" or "ONE knew OTHER".

use async_trait::async_trait;
use azera_adapter::{
    FactPage, Holding, HostError, MemoryCounts, MemoryPage, MemoryReader, OwnFacts, Reading, ShownEntity, ShownMemory,
    ShownNames, ShownRelation, ShownThemes, Steps,
};
use azera_types::{MemoryId, PlatformId, Scope};
use serde_json::json;

use crate::World;
use crate::engine::{Engine, Line};

impl Engine {
    /// Returns what the person said, numbered in that order; nothing if they cannot read the chat.
    async fn remembered(&self, at: &Reading) -> Vec<ShownMemory> {
        if !self.may_read(&at.chat, &at.person).await {
            return Vec::new();
        }
        let memory = |(number, line): (usize, Line)| ShownMemory {
            id: MemoryId(number as u64),
            kind: "message",
            evidence: "told",
            scope: Scope::Dm(at.person.clone()),
            author: line.message.author,
            sources: vec![line.message.id],
            text: line.message.text,
            at: line.message.at,
            holding: Holding::default(),
        };
        let heard = self.heard(&at.person).await.into_iter();
        heard.filter(|line| line.message.author.person().is_some()).enumerate().map(memory).collect()
    }
}

fn relation(memory: &ShownMemory, name: &str) -> Option<ShownRelation> {
    let words: Vec<&str> = memory.text.as_str().split(' ').collect();
    let &[one, verb @ ("knows" | "knew"), other] = words.as_slice() else { return None };
    let other = if name == one {
        other
    } else if name == other {
        one
    } else {
        return None;
    };
    Some(ShownRelation {
        said: memory.text.to_string(),
        other: other.to_owned(),
        is_plain: false,
        confidence: 0.9,
        since: memory.at,
        until: (verb == "knew").then(|| "2026-08".to_owned()),
        sources: vec![memory.id],
    })
}

#[async_trait]
impl MemoryReader for Engine {
    async fn memory(&self, _: &PlatformId, at: Reading, id: MemoryId) -> Result<Option<ShownMemory>, HostError> {
        Ok(self.remembered(&at).await.into_iter().find(|memory| memory.id == id))
    }

    async fn memories_by_id(
        &self,
        _: &PlatformId,
        at: Reading,
        ids: Vec<MemoryId>,
    ) -> Result<Vec<ShownMemory>, HostError> {
        Ok(self.remembered(&at).await.into_iter().filter(|memory| ids.contains(&memory.id)).collect())
    }

    async fn memories(&self, _: &PlatformId, at: Reading, page: MemoryPage) -> Result<Vec<ShownMemory>, HostError> {
        Ok(self.remembered(&at).await.into_iter().rev().take(page.limit).collect())
    }

    async fn own_facts(&self, _: &PlatformId, _: Reading, _: FactPage) -> Result<OwnFacts, HostError> {
        Ok(OwnFacts::default())
    }

    async fn graph_names(&self, _: &PlatformId, _: Reading) -> Result<ShownNames, HostError> {
        Ok(ShownNames::default())
    }

    async fn entities(&self, _: &PlatformId, at: Reading, name: String) -> Result<Vec<ShownEntity>, HostError> {
        let memories = self.remembered(&at).await;
        let relations: Vec<ShownRelation> = memories.iter().filter_map(|memory| relation(memory, &name)).collect();
        if relations.is_empty() {
            return Ok(Vec::new());
        }
        let other_names = vec![(format!("{name}ie"), 0.5)];
        let (kind, mentions) = (Some("person"), relations.len());
        Ok(vec![ShownEntity { name, kind, other_names, mentions, is_cut: false, relations }])
    }

    async fn themes(&self, _: &PlatformId, _: Reading, _: usize, _: usize) -> Result<ShownThemes, HostError> {
        Ok(ShownThemes::default())
    }

    async fn group_themes(&self, _: &PlatformId, _: Reading, _: Steps) -> Result<Option<usize>, HostError> {
        Ok(Some(0))
    }

    async fn counts(&self, _: &PlatformId, at: Reading) -> Result<MemoryCounts, HostError> {
        Ok(MemoryCounts { by_kind: vec![("message", self.remembered(&at).await.len())], queued: 0 })
    }
}

/// Starts a web whose owner said some relations.
async fn told() -> (World, crate::Client) {
    let world = World::start().await;
    let mut owner = world.owner().await;
    for said in ["Ann knows Miranda", "Ben knew Ann", "Miranda knows Karl", "Karl knows Zoe"] {
        let answer = owner.send("POST", "/api/chat", Some(json!({"session_id": "same", "message": said}))).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
    }
    (world, owner)
}

#[tokio::test]
async fn the_graph_shows_relations_with_their_memories() {
    let (world, mut owner) = told().await;
    let graph = owner.send("GET", "/api/memories/graph?name=%20Ann%20", None).await.json();
    let entity = &graph["entities"][0];
    assert_eq!((&entity["name"], &entity["total"]), (&json!("Ann"), &json!(2)), "{graph}");
    assert_eq!(entity["other_names"], json!([{"name": "Annie", "confidence": 0.5}]));
    let (first, second) = (&entity["relations"][0], &entity["relations"][1]);
    assert_eq!((&first["said"], &first["other"]), (&json!("Ann knows Miranda"), &json!("Miranda")), "{graph}");
    assert_eq!((first.get("held_until"), &second["held_until"]), (None, &json!("2026-08")), "{graph}");
    // Karl is behind Miranda, and Zoe is too far away.
    let further = graph["further"].as_array().unwrap();
    assert_eq!(further.len(), 1, "{graph}");
    assert_eq!((&further[0]["name"], &further[0]["by"]), (&json!("Karl"), &json!("Miranda")), "{graph}");
    let source = first["memories"][0].as_str().unwrap();
    let memory = owner.send("GET", &format!("/api/memories/{source}"), None).await.json();
    assert_eq!((&memory["id"], &memory["content"]), (&json!(source), &json!("Ann knows Miranda")), "{memory}");
    let part = owner.send("GET", "/api/memories/graph?name=Ann&limit=1", None).await.json();
    let entity = &part["entities"][0];
    assert_eq!((entity["relations"].as_array().unwrap().len(), &entity["total"]), (1, &json!(2)), "{part}");
    world.stop().await;
}

#[tokio::test]
async fn the_graph_shows_nothing_that_another_person_said() {
    let (world, mut owner) = told().await;
    let mut bob = world.guest(&mut owner, "Bob").await;
    bob.send("GET", "/api/memories/graph?name=Ann", None).await.is(404, "not_found");
    bob.send("GET", "/api/memories/m0", None).await.is(404, "not_found");
    bob.send("POST", "/api/chat", Some(json!({"session_id": "same", "message": "Ann knows Cid"}))).await;
    let shown = bob.send("GET", "/api/memories/graph?name=Ann", None).await;
    assert!(shown.status == 200 && shown.body.contains("Cid"), "{}", shown.body);
    for secret in ["Miranda", "Ben", "Karl"] {
        assert!(!shown.body.contains(secret), "{}", shown.body);
    }
    world.stop().await;
}

#[tokio::test]
async fn the_graph_refuses_unknown_names_and_wrong_parameters() {
    let (world, mut owner) = told().await;
    let unknown = owner.send("GET", "/api/memories/graph?name=Nobody", None).await;
    assert!(unknown.body.contains("Nobody"), "{}", unknown.body);
    unknown.is(404, "not_found");
    let long = format!("?name={}", "x".repeat(201));
    for query in ["", "?name=", "?name=%20", "?name=Ann&limit=0", "?name=Ann&limit=101", "?name=Ann&limit=x", &long] {
        owner.send("GET", &format!("/api/memories/graph{query}"), None).await.is(400, "invalid");
    }
    for id in ["m99", "99", "m", "m1%20m2"] {
        owner.send("GET", &format!("/api/memories/{id}"), None).await.is(404, "not_found");
    }
    world.stop().await;
}
