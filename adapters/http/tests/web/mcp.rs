//! Whom `/mcp` speaks for, and who reaches it.

use async_trait::async_trait;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use azera_adapter_http::{Mcp, McpCaller};
use serde_json::{Value, json};

use crate::client::Client;
use crate::engine::Engine;
use crate::{World, program};

/// It answers with whom it speaks for.
#[async_trait]
impl Mcp for Engine {
    async fn answer(&self, caller: McpCaller, request: Request) -> Response {
        let body = axum::body::to_bytes(request.into_body(), usize::MAX).await.unwrap();
        let told = json!({
            "person": caller.person.as_str(),
            "chat": caller.chat.as_str(),
            "persona": caller.persona.as_ref().map(|persona| persona.as_str()),
            "may": [caller.may_chat, caller.may_read, caller.may_write, caller.may_read_vault],
            "body": String::from_utf8_lossy(&body),
        });
        axum::Json(told).into_response()
    }
}

const CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

async fn call(client: &mut Client, path: &str, headers: &[(&str, &str)]) -> (u16, Value) {
    let answer =
        client.send_with("POST", path, &[headers, &[("Content-Type", "application/json")]].concat(), CALL).await;
    (answer.status, answer.json())
}

#[tokio::test]
async fn a_key_says_which_person_and_what_it_may() {
    let world = World::start().await;
    let mut owner = world.owner().await;
    let mut bob = world.guest(&mut owner, "Bob").await;
    let (mut anns, _) = program(&mut owner, &["mcp", "memory:read"]).await;
    let (mut bobs, _) = program(&mut bob, &["mcp", "chat", "memory:read", "memory:write", "vault"]).await;
    let (status, ann) = call(&mut anns, "/mcp", &[]).await;
    assert_eq!((status, &ann["may"], &ann["body"]), (200, &json!([false, true, false, false]), &json!(CALL)));
    let (_, bob) = call(&mut bobs, "/mcp", &[]).await;
    assert_eq!(bob["may"], json!([true, true, true, true]));
    assert_ne!(ann["person"], bob["person"]);
    for told in [&ann, &bob] {
        let person = told["person"].as_str().unwrap();
        assert_eq!(told["chat"], format!("{person}:main"), "each has their own chat");
        assert_eq!(told["persona"], Value::Null);
    }
    let (_, by_query) = call(&mut anns, "/mcp?persona=luna", &[]).await;
    let (_, by_header) = call(&mut anns, "/mcp", &[("Azera-Persona", "luna")]).await;
    assert_eq!(by_query, by_header);
    assert_eq!(by_query["persona"], "luna");
    let (_, other) = call(&mut anns, "/mcp?persona=areza", &[]).await;
    assert!(other["chat"] != by_query["chat"] && by_query["chat"] != ann["chat"], "each persona has a chat of its own");
    world.stop().await;
}

#[tokio::test]
async fn only_keys_with_the_scope_reach_it() {
    let world = World::start().await;
    let mut owner = world.owner().await;
    let (mut without, _) = program(&mut owner, &["chat", "memory:read", "memory:write", "admin"]).await;
    let (status, problem) = call(&mut without, "/mcp", &[]).await;
    assert_eq!((status, &problem["code"]), (403, &json!("scope")));
    assert_eq!(call(&mut world.client(), "/mcp", &[]).await.0, 401);
    let (mut key, made) = program(&mut owner, &["mcp"]).await;
    assert_eq!(call(&mut key, "/mcp", &[]).await.0, 200);
    let (status, problem) = call(&mut key, "/mcp", &[("Origin", "http://evil.example")]).await;
    assert_eq!((status, &problem["code"]), (403, &json!("foreign_origin")));
    assert_eq!(key.send("GET", "/mcp", None).await.status, 405, "there are no sessions to listen to");
    let path = format!("/api/keys/{}", made["id"].as_str().unwrap());
    assert_eq!(owner.send("DELETE", &path, None).await.status, 200);
    assert_eq!(call(&mut key, "/mcp", &[]).await.0, 401, "a revoked key ends at once");
    world.stop().await;
}
