//! What counts as known in a whole place. In this engine each memory was said in three chats.

use std::sync::Arc;

use async_trait::async_trait;
use azera_adapter::{HostError, KnownReader, Reading, ShownKnown, ShownKnowns};
use azera_adapter_mcp::Rights;
use azera_types::{MemoryId, PlatformId};
use serde_json::json;

use crate::engine::Engine;
use crate::{ALL, Client};

#[async_trait]
impl KnownReader for Engine {
    async fn known(&self, _: &PlatformId, at: Reading, skip: usize, limit: usize) -> Result<ShownKnowns, HostError> {
        let shown = self.shown(&at);
        let total = shown.len();
        let known = shown.into_iter().skip(skip).take(limit).map(|memory| ShownKnown {
            memory,
            also: vec![MemoryId(40), MemoryId(41)],
            chats: 3,
            people: 2,
            counts: true,
            is_own: true,
            own_counts: false,
        });
        Ok(ShownKnowns { known: known.collect(), total })
    }
}

#[tokio::test]
async fn what_counts_as_known_is_listed_page_by_page_and_its_speaker_takes_it_back() {
    let engine = Arc::new(Engine::default());
    let client = Client::connect(&engine, "ann", None, ALL).await;
    for text in ["the gate is red", "the harbour closes at nine", "trains are late"] {
        client.remember(text).await;
    }
    let first = Client::good(client.call("known", json!({"limit": 2})).await);
    assert_eq!((&first["total"], &first["known"][0]["memory"]["text"]), (&json!(3), &json!("trains are late")));
    assert_eq!((&first["known"][0]["also"], &first["known"][0]["chats"]), (&json!(["m40", "m41"]), &json!(3)));
    let (counts, own) = (&first["known"][0]["counts"], &first["known"][0]["own_counts"]);
    assert_eq!((counts, own, &first["known"][0]["people"]), (&json!(true), &json!(false), &json!(2)));
    let rest = Client::good(client.call("known", json!({"cursor": first["next_cursor"]})).await);
    assert_eq!(rest["known"][0]["memory"]["text"], "the gate is red");
    assert!(rest.get("next_cursor").is_none(), "{rest}");
    for (counts, word) in [(false, "off"), (true, "on")] {
        let done = Client::good(client.call("set_known", json!({"id": "m1", "counts": counts})).await);
        assert_eq!(done["answer"], format!("ran /memory known m1 {word}"));
    }
    let refused = Client::refusal(client.call("set_known", json!({"id": "m9", "counts": false})).await);
    assert!(refused.contains("no such memory"), "{refused}");
    client.end().await;
}

#[tokio::test]
async fn a_session_that_only_reads_takes_nothing_back() {
    let engine = Arc::new(Engine::default());
    let rights = Rights { read: true, ..Rights::default() };
    let client = Client::connect(&engine, "ann", None, rights).await;
    let tools = client.tools().await;
    assert!(tools.iter().any(|tool| tool == "known") && !tools.iter().any(|tool| tool == "set_known"), "{tools:?}");
    client.end().await;
}
