//! Personas: everybody sees them, and owners change those that everybody may use.

use serde_json::json;

use crate::{World, program};

#[tokio::test]
async fn an_owner_adds_changes_and_removes_a_persona() {
    let world = World::start().await;
    let (mut admin, _) = program(&mut world.owner().await, &["chat", "admin"]).await;
    let new = json!({
        "name": "Bran", "type": "ai", "description": "Tells of ships.", "system_prompt": "You are a sailor.",
        "avatar": null, "bubble_color": "#aabbcc", "global_memory_enabled": true, "metadata": {}, "tags": ["sea"],
    });
    let added = admin.send("POST", "/api/personas", Some(new)).await;
    assert_eq!(added.status, 200, "{}", added.body);
    let added = added.json();
    assert_eq!((&added["id"], &added["type"], &added["is_user"]), (&json!("bran"), &json!("ai"), &json!(false)));
    // What a client was shown and sends back unchanged makes no version.
    let same = admin.send("PUT", "/api/personas/bran", Some(added.clone())).await.json();
    assert_eq!(same, added);
    let changed =
        admin.send("PUT", "/api/personas/bran", Some(json!({"description": "Tells of storms."}))).await.json();
    assert_eq!((&changed["version"], &changed["description"]), (&json!(2), &json!("Tells of storms.")));
    assert_eq!(changed["system_prompt"], "You are a sailor.", "what is left out stays");
    assert_eq!(admin.send("DELETE", "/api/personas/bran", None).await.json()["status"], "deleted");
    admin.send("GET", "/api/personas/bran", None).await.is(404, "not_found");
    admin.send("PUT", "/api/personas/bran", Some(json!({"name": "x"}))).await.is(404, "not_found");
    admin.send("DELETE", "/api/personas/azera", None).await.is(422, "refused");
    admin.send("POST", "/api/personas", Some(json!({"type": "ai"}))).await.is(422, "refused");
    admin.send("POST", "/api/personas", Some(json!({"name": "x", "type": "ghost"}))).await.is(400, "invalid");
    world.stop().await;
}

#[tokio::test]
async fn an_owner_imports_a_card_and_sees_versions() {
    let world = World::start().await;
    let mut owner = world.owner().await;
    let form = |content: &[u8]| {
        let head = b"--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"card.png\"\r\n\r\n";
        [&head[..], content, b"\r\n--x--\r\n"].concat()
    };
    let headers = [("Content-Type", "multipart/form-data; boundary=x")];
    let imported = owner.send_bytes("POST", "/api/personas/import", &headers, &form(b"Luna")).await;
    assert_eq!(imported.status, 200, "{}", imported.body);
    let imported = imported.json();
    assert_eq!(
        (&imported["persona"]["id"], &imported["notes"][0]),
        (&json!("luna"), &json!("The picture is not kept."))
    );
    owner.send_bytes("POST", "/api/personas/import", &headers, &form(b"\xff")).await.is(422, "refused");
    owner.send_bytes("POST", "/api/personas/import", &headers, b"--x--\r\n").await.is(400, "invalid");
    owner.send("PUT", "/api/personas/luna", Some(json!({"system_prompt": "You are the moon."}))).await;
    let versions = owner.send("GET", "/api/personas/luna/versions", None).await.json();
    let numbers: Vec<_> = versions["items"].as_array().unwrap().iter().map(|version| &version["version"]).collect();
    assert_eq!(numbers, [2, 1], "the newest comes first");
    owner.send("GET", "/api/personas/nobody/versions", None).await.is(404, "not_found");
    world.stop().await;
}

#[tokio::test]
async fn only_owners_change_personas() {
    let world = World::start().await;
    let mut owner = world.owner().await;
    let (mut chatter, _) = program(&mut owner, &["chat", "memory:write"]).await;
    let mut guest = world.guest(&mut owner, "Bob").await;
    for client in [&mut chatter, &mut guest] {
        client.send("POST", "/api/personas", Some(json!({"name": "x"}))).await.is(403, "scope");
        client.send("PUT", "/api/personas/azera", Some(json!({"name": "x"}))).await.is(403, "scope");
        client.send("DELETE", "/api/personas/azera", None).await.is(403, "scope");
        client.send("POST", "/api/personas/import", Some(json!({}))).await.is(403, "scope");
        client.send("GET", "/api/personas/azera/versions", None).await.is(403, "scope");
        assert_eq!(client.send("GET", "/api/personas/azera", None).await.status, 200);
    }
    world.stop().await;
}
