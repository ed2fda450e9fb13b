//! What people say aloud: it is heard, answered and shown like what they write, for themselves alone.

use std::sync::atomic::Ordering;

use serde_json::json;

use crate::client::{Answer, Client};
use crate::{World, program};

/// Says something aloud, in a form with these other parts.
pub async fn say_aloud(client: &Client, chat: &str, media_type: &str, words: &[u8], others: &[(&str, &str)]) -> Answer {
    let mut body = Vec::new();
    for (name, value) in others {
        let part = format!("--x\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n");
        body.extend_from_slice(part.as_bytes());
    }
    let head = format!(
        "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"said.wav\"\r\nContent-Type: {media_type}\r\n\r\n"
    );
    body.extend([head.as_bytes(), words, b"\r\n--x--\r\n"].concat());
    let form = [("Content-Type", "multipart/form-data; boundary=x")];
    client.send_bytes("POST", &format!("/api/chats/{chat}/voice"), &form, &body).await
}

const CHAT: &str = "7d4f2d58-3a53-4f0e-9d2f-3c2b5a1e0001";

#[tokio::test]
async fn what_is_said_aloud_is_heard_and_answered_and_shown_as_said() {
    let world = World::start().await;
    let mut owner = world.owner().await;
    let said = say_aloud(&owner, CHAT, "audio/wav", b"the tide is high", &[]).await;
    assert_eq!((said.status, said.header("content-type")), (200, Some("text/event-stream")), "{}", said.body);
    let events = said.events();
    let names: Vec<&str> = events.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names.first().copied(), Some("heard"), "{names:?}");
    assert_eq!(names.iter().filter(|name| **name == "heard").count(), 1);
    assert_eq!(names.last().copied(), Some("done"), "{names:?}");
    let heard: serde_json::Value = serde_json::from_str(&events[0].1).unwrap();
    assert_eq!(heard["text"], "the tide is high");
    let chat = owner.send("GET", &format!("/api/chats/{CHAT}"), None).await.json();
    let messages = &chat["messages"];
    assert_eq!((&messages[0]["content"], &messages[0]["spoken"]), (&json!("the tide is high"), &json!(true)));
    assert_eq!(messages[0]["id"], heard["message_id"]);
    assert_eq!((&messages[1]["role"], &messages[1]["spoken"]), (&json!("assistant"), &json!(false)));
    world.stop().await;
}

#[tokio::test]
async fn what_cannot_be_heard_is_refused_before_anything_is_kept() {
    let world = World::start().await;
    let mut owner = world.owner().await;
    let (no_chat, _) = program(&mut owner, &["memory:read"]).await;
    say_aloud(&no_chat, CHAT, "audio/wav", b"x", &[]).await.is(403, "scope");
    say_aloud(&owner, CHAT, "image/svg+xml", b"<svg onload=alert(1)>", &[]).await.is(422, "refused");
    say_aloud(&owner, "nowhere", "audio/wav", b"x", &[]).await.is(400, "invalid");
    say_aloud(&owner, CHAT, "audio/wav", b"x", &[("ai_persona_id", "nobody")]).await.is(404, "not_found");
    say_aloud(&owner, CHAT, "audio/wav", &vec![0; (10 << 20) + 1], &[]).await.is(413, "too_large");
    owner.send("POST", &format!("/api/chats/{CHAT}/voice"), Some(json!({}))).await.is(415, "media_type");
    world.engine.studio.is_closed.store(true, Ordering::SeqCst);
    let deaf = say_aloud(&owner, CHAT, "audio/wav", b"x", &[]).await;
    deaf.is(409, "hearing_unavailable");
    assert_eq!(deaf.json()["error"], "No speech model is on this machine.");
    owner.send("GET", &format!("/api/chats/{CHAT}"), None).await.is(404, "not_found");
    world.stop().await;
}

#[tokio::test]
async fn a_voice_message_counts_as_a_message() {
    let world = World::start().await;
    let owner = world.owner().await;
    let mut statuses = Vec::new();
    for _ in 0..31 {
        statuses.push(say_aloud(&owner, CHAT, "audio/wav", b"again", &[]).await.status);
    }
    assert_eq!(statuses.iter().filter(|status| **status == 429).count(), 1, "{statuses:?}");
    world.stop().await;
}
