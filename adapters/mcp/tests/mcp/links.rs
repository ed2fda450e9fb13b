//! Links between episodes that the person states, and themes that are grouped at once.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::engine::Engine;
use crate::{ALL, Client};

fn ids(chain: &Value) -> Vec<&str> {
    chain["sessions"].as_array().unwrap().iter().map(|one| one["session"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_stated_cause_joins_two_chains_until_it_is_forgotten() {
    let engine = Arc::new(Engine::default());
    let client = Client::connect(&engine, "ann", None, ALL).await;
    let chain = async |of: &str| Client::good(client.call("episode_chain", json!({"session": of})).await);
    assert_eq!(ids(&chain("import:2").await), ["import:1", "import:2"]);
    assert_eq!(ids(&chain("talk:5").await), ["talk:5", "talk:6"]);
    // A conversation that came from a coding session.
    let two = json!({"session": "talk:5", "caused_by": "import:2"});
    let stated = Client::good(client.call("episode_link", two.clone()).await);
    assert_eq!(Client::good(client.call("episode_link", two).await), stated, "it is stated once");
    let all = ["import:1", "import:2", "talk:5", "talk:6"];
    for of in all {
        assert_eq!(ids(&chain(of).await), all, "{of}");
    }
    let found = chain("talk:5").await["sessions"][2].clone();
    assert_eq!(found["stated_causes"], json!([{"session": "import:2", "memory": stated["id"]}]), "{found}");
    assert_eq!(found["linked"], json!(["import:1", "import:2", "talk:6"]));
    assert_eq!(ids(&chain("import:4").await), ["import:4"], "others are as they were");
    for cues in
        [json!({"kind": "conversation"}), json!({"what": "fence", "kind": "conversation", "ending": "resolved"})]
    {
        let found = Client::good(client.call("cue_search", cues).await);
        assert!(ids(&found).iter().all(|id| id.starts_with("talk:")), "{found}");
        assert!(found.to_string().contains("stated_causes"), "the cause is of another kind: {found}");
    }
    let coding = Client::good(client.call("cue_search", json!({"project": "Gate"})).await);
    assert_eq!(ids(&coding), ["import:4", "import:3", "import:2", "import:1"]);
    assert!(coding.to_string().contains("talk:5"), "links to episodes outside are named: {coding}");
    for (session, caused_by) in [("import:2", "talk:5"), ("import:1", "import:3"), ("talk:6", "talk:6")] {
        let two = json!({"session": session, "caused_by": caused_by});
        Client::refusal(client.call("episode_link", two).await);
    }
    // Bob has episodes with the same ids, and nobody stated anything to him.
    let bob = Client::connect(&engine, "bob", None, ALL).await;
    let his = Client::good(bob.call("episode_chain", json!({"session": "talk:5"})).await);
    assert_eq!(ids(&his), ["talk:5", "talk:6"]);
    assert!(!his.to_string().contains("stated_causes"), "{his}");
    bob.end().await;
    Client::good(client.call("forget", json!({"id": stated["id"]})).await);
    assert_eq!(ids(&chain("import:2").await), ["import:1", "import:2"]);
    client.end().await;
}

/// A conversation may go on with one, and have its reason in another.
#[tokio::test]
async fn a_conversation_joins_what_it_goes_on_with_and_what_it_came_from() {
    let engine = Arc::new(Engine::default());
    // Number 8 goes on with one that is not listed; number 10 joins two chains.
    *engine.talks.lock().unwrap() =
        vec![(7, None, None), (8, Some(1), Some(7)), (9, None, None), (10, Some(9), Some(8))];
    let client = Client::connect(&engine, "ann", None, ALL).await;
    let chain = async |of: &str| Client::good(client.call("episode_chain", json!({"session": of})).await);
    let all = ["talk:7", "talk:8", "talk:9", "talk:10"];
    for of in all {
        assert_eq!(ids(&chain(of).await), all, "{of}");
    }
    assert_eq!(chain("talk:9").await["sessions"][2]["linked"], json!(["talk:7", "talk:8", "talk:10"]));
    assert_eq!(ids(&chain("talk:5").await), ["talk:5", "talk:6"], "others are as they were");
    client.end().await;
}

#[tokio::test]
async fn themes_are_grouped_at_once_unless_memories_wait_to_be_indexed() {
    let engine = Arc::new(Engine::default());
    let client = Client::connect(&engine, "ann", None, ALL).await;
    client.remember("the gate is red").await;
    let rebuilt = Client::good(client.call("raptor_rebuild", json!({})).await);
    assert_eq!((&rebuilt["places"], &rebuilt["must_wait"]), (&json!(1), &json!(false)));
    assert_eq!((&rebuilt["themes_before"], &rebuilt["status"]["themes"]), (&json!(1), &json!(1)));
    client.remember("the boat is unindexed").await;
    let waits = Client::good(client.call("raptor_rebuild", json!({})).await);
    assert_eq!((&waits["places"], &waits["must_wait"]), (&json!(0), &json!(true)));
    client.end().await;
}
