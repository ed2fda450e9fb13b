//! The chat models: everybody sees them, and owners download and remove them.

use serde_json::{Value, json};

use crate::{World, program};

#[tokio::test]
async fn the_models_are_listed_with_their_sizes() {
    let world = World::start().await;
    let (mut program, _) = program(&mut world.owner().await, &["chat"]).await;
    let listed = program.send("GET", "/api/models", None).await.json();
    let tiny = json!({"name": "tiny:2", "size": 7, "title": "a tiny:2 one"});
    let large = json!({"name": "large", "size": 0, "title": "a large one"});
    assert_eq!(listed, json!({"models": [tiny], "count": 1, "available": [large]}));
    world.stop().await;
}

#[tokio::test]
async fn a_download_tells_its_progress_until_the_model_is_here() {
    let world = World::start().await;
    let (mut admin, _) = program(&mut world.owner().await, &["admin"]).await;
    let answer = admin.send("POST", "/api/models/pull", Some(json!({"model": "large"}))).await;
    let events: Vec<(String, Value)> =
        answer.events().into_iter().map(|(name, data)| (name, serde_json::from_str(&data).unwrap())).collect();
    let completed: Vec<&Value> =
        events.iter().filter(|(name, _)| name == "progress").map(|(_, data)| &data["completed"]).collect();
    assert_eq!(completed, [&json!(0), &json!(60), &json!(100)], "each step is told once");
    assert_eq!(events.last(), Some(&("complete".to_owned(), json!({}))));
    // What is here already needs no download.
    let again = admin.send("POST", "/api/models/pull", Some(json!({"model": "large"}))).await.events();
    assert_eq!(again, [("complete".to_owned(), "{}".to_owned())]);
    let commands = world.engine.commands.lock().unwrap().clone();
    assert_eq!(commands.iter().map(|(_, line)| line.as_str()).collect::<Vec<_>>(), ["/model pull large"]);
    world.stop().await;
}

#[tokio::test]
async fn a_download_that_fails_ends_with_an_error() {
    let world = World::start().await;
    let (mut admin, _) = program(&mut world.owner().await, &["admin"]).await;
    world.engine.fail();
    let events = admin.send("POST", "/api/models/pull", Some(json!({"model": "large"}))).await.events();
    assert_eq!(events.last().unwrap().0, "error", "{events:?}");
    world.stop().await;
}

#[tokio::test]
async fn only_owners_change_the_models_and_only_known_ones() {
    let world = World::start().await;
    let mut owner = world.owner().await;
    let (mut chatter, _) = program(&mut owner, &["chat"]).await;
    let mut guest = world.guest(&mut owner, "Bob").await;
    for client in [&mut chatter, &mut guest] {
        client.send("POST", "/api/models/pull", Some(json!({"model": "large"}))).await.is(403, "scope");
        client.send("DELETE", "/api/models/large", None).await.is(403, "scope");
    }
    for name in ["nothing", "large\n/forget me", "../large", ""] {
        owner.send("POST", "/api/models/pull", Some(json!({"model": name}))).await.is(404, "not_found");
    }
    owner.send("DELETE", "/api/models/nothing", None).await.is(404, "not_found");
    // Clients write `_` for `:`.
    assert_eq!(owner.send("DELETE", "/api/models/tiny_2", None).await.json()["status"], "deleted");
    let commands = world.engine.commands.lock().unwrap().clone();
    assert_eq!(commands.last().unwrap().1, "/model remove tiny:2");
    world.stop().await;
}
