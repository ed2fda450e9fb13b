//! Tokens for scripts: what they may do, and when they end.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use crate::client::Client;
use crate::isolation::later;
use crate::{World, program};

async fn token(client: &mut Client, wish: Value) -> (Client, Value) {
    let made = client.send("POST", "/api/token", Some(wish)).await;
    assert_eq!(made.status, 200, "{}", made.body);
    let made = made.json();
    (client.with_key(made["token"].as_str().unwrap()), made)
}

#[tokio::test]
async fn a_key_is_exchanged_for_a_token_with_a_part_of_its_scopes() {
    let world = World::start().await;
    let mut owner = world.owner().await;
    let (mut key, _) = program(&mut owner, &["chat", "memory:read"]).await;
    let (mut script, made) = token(&mut key, json!({"scopes": ["chat"]})).await;
    assert_eq!(
        (&made["token_type"], &made["expires_in"], &made["scopes"]),
        (&json!("Bearer"), &json!(900), &json!(["chat"]))
    );
    assert_eq!(made["expires_at"], "2027-01-15T08:15:00Z");
    assert_eq!(script.send("GET", "/api/chats", None).await.status, 200);
    script.send("POST", "/api/search", Some(json!({"query": "x"}))).await.is(403, "scope");
    script.send("GET", "/api/accounts", None).await.is(403, "scope");
    script.send("GET", "/api/keys", None).await.is(403, "session");
    script.send("POST", "/api/token", Some(json!({}))).await.is(403, "token");
    // Nothing is wider than the key.
    for scopes in [json!(["chat", "admin"]), json!(["memory:write"]), json!(["mcp"])] {
        key.send("POST", "/api/token", Some(json!({"scopes": scopes}))).await.is(403, "scope");
    }
    for wrong in [json!({"scopes": []}), json!({"minutes": 0}), json!({"minutes": 61}), json!({"aud": "x"})] {
        key.send("POST", "/api/token", Some(wrong)).await.is(400, "invalid");
    }
    let (mut whole, made) = token(&mut key, json!({"minutes": 1})).await;
    assert_eq!((&made["expires_in"], &made["scopes"]), (&json!(60), &json!(["chat", "memory:read"])));
    assert_eq!(whole.send("POST", "/api/search", Some(json!({"query": "x"}))).await.status, 200);
    world.client().send("POST", "/api/token", Some(json!({}))).await.is(401, "unauthorized");
    world.stop().await;
}

#[tokio::test]
async fn a_token_ends_with_its_time_with_its_key_and_with_its_session() {
    let world = World::start().await;
    let mut owner = world.owner().await;
    let (mut key, made) = program(&mut owner, &["chat"]).await;
    let (mut brief, _) = token(&mut key, json!({"minutes": 1})).await;
    let (mut script, _) = token(&mut key, json!({})).await;
    let (mut of_session, _) = token(&mut owner, json!({"scopes": ["chat", "admin"]})).await;
    for client in [&mut brief, &mut script, &mut of_session] {
        assert_eq!(client.send("GET", "/api/chats", None).await.status, 200);
    }
    assert_eq!(of_session.send("GET", "/api/accounts", None).await.status, 200, "it may what its session may");
    world.clock.advance_to(later(&world, 60));
    brief.send("GET", "/api/chats", None).await.is(401, "unauthorized");
    assert_eq!(script.send("GET", "/api/chats", None).await.status, 200);
    let id = made["id"].as_str().unwrap();
    assert_eq!(owner.send("DELETE", &format!("/api/keys/{id}"), None).await.status, 200);
    script.send("GET", "/api/chats", None).await.is(401, "unauthorized");
    assert_eq!(of_session.send("GET", "/api/chats", None).await.status, 200, "another key is no matter of it");
    let (mut before, _) = token(&mut owner, json!({})).await;
    let change = json!({"old": "correct horse battery", "new": "another horse battery"});
    assert_eq!(owner.send("PUT", "/api/password", Some(change)).await.status, 200);
    before.send("GET", "/api/chats", None).await.is(401, "unauthorized");
    let (mut of_session, _) = token(&mut owner, json!({})).await;
    assert_eq!(owner.send("POST", "/api/logout", Some(json!({}))).await.status, 200);
    of_session.send("GET", "/api/chats", None).await.is(401, "unauthorized");
    world.stop().await;
}

#[tokio::test]
async fn a_token_of_a_guest_never_administers() {
    let world = World::start().await;
    let mut owner = world.owner().await;
    let mut guest = world.guest(&mut owner, "Bob").await;
    guest.send("POST", "/api/token", Some(json!({"scopes": ["admin"]}))).await.is(403, "scope");
    let (mut script, made) = token(&mut guest, json!({})).await;
    assert!(!made["scopes"].to_string().contains("admin"), "{made}");
    for (method, path) in [("GET", "/api/places"), ("POST", "/api/token/rotate"), ("GET", "/api/logs")] {
        script.send(method, path, Some(json!({}))).await.is(403, "scope");
    }
    world.stop().await;
}

#[tokio::test]
async fn a_changed_token_is_refused_and_counts_as_a_guess() {
    let world = World::start().await;
    let mut owner = world.owner().await;
    let (mut key, _) = program(&mut owner, &["chat"]).await;
    let (_, made) = token(&mut key, json!({})).await;
    let whole = made["token"].as_str().unwrap();
    let parts: Vec<&str> = whole.split('.').collect();
    let mut claims: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(parts[1]).unwrap()).unwrap();
    claims["scope"] = json!("admin");
    let widened = URL_SAFE_NO_PAD.encode(claims.to_string());
    let none = URL_SAFE_NO_PAD.encode(json!({"alg": "none", "typ": "JWT"}).to_string());
    for changed in [format!("{}.{widened}.{}", parts[0], parts[2]), format!("{none}.{widened}."), "a.b.c".to_owned()] {
        owner.with_key(&changed).send("GET", "/api/chats", None).await.is(401, "unauthorized");
    }
    let mut statuses = Vec::new();
    for _ in 0..20 {
        statuses.push(owner.with_key("a.b.c").send("GET", "/api/chats", None).await.status);
    }
    assert_eq!(statuses.last(), Some(&429), "{statuses:?}");
    assert_eq!(owner.with_key(whole).send("GET", "/api/chats", None).await.status, 200, "the true one still works");
    world.stop().await;
}

#[tokio::test]
async fn all_tokens_end_when_the_owner_says_so() {
    let world = World::start().await;
    let mut owner = world.owner().await;
    let (mut script, _) = token(&mut owner, json!({})).await;
    let (mut other, _) = program(&mut owner, &["chat"]).await;
    assert_eq!(script.send("GET", "/api/chats", None).await.status, 200);
    other.send("POST", "/api/token/rotate", Some(json!({}))).await.is(403, "scope");
    assert_eq!(owner.send("POST", "/api/token/rotate", Some(json!({}))).await.json()["status"], "rotated");
    script.send("GET", "/api/chats", None).await.is(401, "unauthorized");
    let (mut fresh, _) = token(&mut owner, json!({})).await;
    assert_eq!(fresh.send("GET", "/api/chats", None).await.status, 200);
    world.stop().await;
}
