//! What counts as known in a whole place. In this engine everything that was said counts.

use async_trait::async_trait;
use azera_adapter::{Holding, HostError, KnownReader, Reading, ShownKnown, ShownKnowns, ShownMemory};
use azera_types::{MemoryId, PlatformId, Scope};
use serde_json::json;

use crate::engine::{Engine, Line};
use crate::{World, program};

#[async_trait]
impl KnownReader for Engine {
    async fn known(&self, _: &PlatformId, at: Reading, skip: usize, limit: usize) -> Result<ShownKnowns, HostError> {
        if !self.may_read(&at.chat, &at.person).await {
            return Ok(ShownKnowns::default());
        }
        let heard = self.heard(&at.person).await;
        let total = heard.len();
        let known = |(number, line): (usize, Line)| ShownKnown {
            memory: ShownMemory {
                id: MemoryId(number as u64),
                kind: "message",
                evidence: "told",
                scope: Scope::Dm(at.person.clone()),
                author: line.message.author,
                sources: vec![line.message.id],
                text: line.message.text,
                at: line.message.at,
                holding: Holding::default(),
            },
            also: vec![MemoryId(40)],
            chats: 3,
            people: 2,
            counts: true,
            is_own: true,
            own_counts: false,
        };
        let known = heard.into_iter().enumerate().skip(skip).take(limit).map(known).collect();
        Ok(ShownKnowns { known, total })
    }
}

#[tokio::test]
async fn what_counts_as_known_is_listed_and_taken_back() {
    let world = World::start().await;
    let mut owner = world.owner().await;
    owner.send("POST", "/api/chat", Some(json!({"session_id": "same", "message": "the harbour closes at nine"}))).await;
    let listed = owner.send("GET", "/api/memories/known?limit=1", None).await.json();
    let first = &listed["items"][0];
    assert!(first["content"].as_str().unwrap().contains("harbour"), "{listed}");
    assert_eq!((&first["also"], &first["chats"], &first["counts"]), (&json!(["m40"]), &json!(3), &json!(true)));
    assert_eq!((&first["people"], &first["is_own"], &first["own_counts"]), (&json!(2), &json!(true), &json!(false)));
    assert_eq!((listed["items"].as_array().unwrap().len(), &listed["total"]), (1, &json!(2)), "{listed}");
    for wrong in [0, 101] {
        owner.send("GET", &format!("/api/memories/known?limit={wrong}"), None).await.is(400, "invalid");
    }
    for (counts, line) in [(false, "/memory known m7 off"), (true, "/memory known m7 on")] {
        let done = owner.send("PUT", "/api/memories/known/m7", Some(json!({"counts": counts}))).await;
        assert_eq!(done.status, 200, "{}", done.body);
        assert_eq!(world.engine.commands.lock().unwrap().last().unwrap().1, line);
    }
    owner.send("PUT", "/api/memories/known/m7%20off", Some(json!({"counts": true}))).await.is(404, "not_found");
    world.stop().await;
}

#[tokio::test]
async fn a_key_that_only_reads_takes_nothing_back() {
    let world = World::start().await;
    let mut owner = world.owner().await;
    let (mut reader, _) = program(&mut owner, &["memory:read"]).await;
    assert_eq!(reader.send("GET", "/api/memories/known", None).await.status, 200);
    reader.send("PUT", "/api/memories/known/m7", Some(json!({"counts": false}))).await.is(403, "scope");
    world.stop().await;
}
