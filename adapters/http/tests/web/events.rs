//! The stream of what happens in one's chats.

use azera_adapter::{Outbound, State};
use azera_types::{ChatId, MessageId, PersonaId, Timestamp};
use serde_json::{Value, json};

use crate::client::Client;
use crate::{World, program};

/// Begins a chat, and returns its id on the platform.
async fn chat_of(world: &World, browser: &mut Client, name: &str) -> ChatId {
    let chat = browser.send("POST", "/api/chats", Some(json!({"title": "talk"}))).await.json();
    let person = world.accounts.person(name);
    ChatId::new(format!("{person}:{}", chat["id"].as_str().unwrap())).unwrap()
}

/// Delivers a message of the persona, as the engine does.
async fn deliver(world: &World, chat: &ChatId, id: &str) {
    let outbound = Outbound {
        id: MessageId::new(id).unwrap(),
        chat: chat.clone(),
        persona: PersonaId::new("azera").unwrap(),
        persona_name: "Azera".into(),
        text: "a heliotrope".into(),
        reply_to: None,
        asker: None,
        state: State { mood: Some("calm".into()), mood_value: Some(0.5), energy: Some(0.75) },
        help: String::new(),
        files: Vec::new(),
        can_upscale: false,
    };
    world.web.as_platform().deliver(&outbound).await.unwrap();
}

/// Returns id, name and data of each event but the first.
fn events(read: &str) -> Vec<(String, String, Value)> {
    let field = |block: &str, name: &str| {
        let line = block.lines().find_map(|line| line.trim().strip_prefix(name).map(str::trim));
        line.map(str::to_owned)
    };
    let parse = |block: &str| {
        let data = serde_json::from_str(&field(block, "data:")?).ok()?;
        Some((field(block, "id:")?, field(block, "event:")?, data))
    };
    read.split("\n\n").filter_map(parse).filter(|(_, name, _)| name != "ready" && name != "reset").collect()
}

#[tokio::test]
async fn each_client_of_a_person_hears_what_happens_in_their_chats_alone() {
    let world = World::start().await;
    let mut ann = world.owner().await;
    let mut bob = world.guest(&mut ann, "Bob").await;
    let (of_ann, of_bob) = (chat_of(&world, &mut ann, "Ann").await, chat_of(&world, &mut bob, "Bob").await);
    let phone = program(&mut ann, &["chat"]).await.0;
    let mut followers = [ann.follow(None).await, phone.follow(None).await];
    deliver(&world, &of_bob, "m1~r0").await;
    deliver(&world, &of_ann, "m2~r0").await;
    let platform = world.web.as_platform();
    platform.retract(&of_ann, &MessageId::new("m2~r0").unwrap(), Timestamp::UNIX_EPOCH).await.unwrap();
    for follower in &mut followers {
        let read = follower.until("event: removed").await;
        assert!(!read.contains("heliotrope") && !read.contains("m1"), "{read}");
        let heard = events(&read);
        let names: Vec<&str> = heard.iter().map(|(_, name, _)| name.as_str()).collect();
        assert_eq!(names.first(), Some(&"message"), "{read}");
        let chat = of_ann.as_str().rsplit(':').next().unwrap();
        let told = json!({"chat_id": chat, "message_id": "m2~r0", "mood": "calm", "mood_value": 0.5, "energy": 0.75});
        assert_eq!(heard[0].2, told);
    }
    world.stop().await;
}

#[tokio::test]
async fn a_client_that_comes_back_gets_what_it_missed() {
    let world = World::start().await;
    let mut ann = world.owner().await;
    let chat = chat_of(&world, &mut ann, "Ann").await;
    let mut follower = ann.follow(None).await;
    deliver(&world, &chat, "m1~r0").await;
    let read = follower.until("m1~r0").await;
    let id = read.lines().filter_map(|line| line.trim().strip_prefix("id: ")).next_back().unwrap().to_owned();
    drop(follower);
    deliver(&world, &chat, "m2~r0").await;
    deliver(&world, &chat, "m3~r0").await;
    let read = ann.follow(Some(&id)).await.until("m3~r0").await;
    assert!(read.contains("event: ready") && read.contains("m2~r0") && !read.contains("m1~r0"), "{read}");
    // Too much was missed, or the program was started anew: the client loads everything again, and goes on from now.
    for number in 4..100 {
        deliver(&world, &chat, &format!("m{number}~r0")).await;
    }
    for id in [id.as_str(), "0190.7", "nonsense"] {
        let mut follower = ann.follow(Some(id)).await;
        deliver(&world, &chat, "m200~r0").await;
        let read = follower.until("m200~r0").await;
        assert!(read.contains("event: reset") && !read.contains("m99~r0"), "{read}");
    }
    world.stop().await;
}

#[tokio::test]
async fn a_client_hears_nothing_after_all_tokens_were_ended() {
    let world = World::start().await;
    let mut ann = world.owner().await;
    let chat = chat_of(&world, &mut ann, "Ann").await;
    let (mut phone, _) = program(&mut ann, &["chat"]).await;
    let mut followers = Vec::new();
    for of in [&mut ann, &mut phone] {
        let made = of.send("POST", "/api/token", Some(json!({"scopes": ["chat"]}))).await.json();
        followers.push(of.with_key(made["token"].as_str().unwrap()).follow(None).await);
    }
    let mut by_session = ann.follow(None).await;
    deliver(&world, &chat, "m1~r0").await;
    for follower in &mut followers {
        follower.until("m1~r0").await;
    }
    assert_eq!(ann.send("POST", "/api/token/rotate", None).await.status, 200);
    deliver(&world, &chat, "m2~r0").await;
    for follower in &mut followers {
        let read = follower.until("m2~r0").await;
        assert!(!read.contains("m2~r0"), "{read}");
    }
    assert!(by_session.until("m2~r0").await.contains("m2~r0"), "the session goes on");
    world.stop().await;
}

#[tokio::test]
async fn a_client_hears_nothing_after_its_session_or_key_has_ended() {
    let world = World::start().await;
    let mut ann = world.owner().await;
    let chat = chat_of(&world, &mut ann, "Ann").await;
    let (phone, made) = program(&mut ann, &["chat"]).await;
    let mut by_key = phone.follow(None).await;
    let mut by_session = ann.follow(None).await;
    assert_eq!(phone.follow(None).await.until("event: ready").await.matches("event:").count(), 1);
    let key = format!("/api/keys/{}", made["id"].as_str().unwrap());
    assert_eq!(ann.send("DELETE", &key, None).await.status, 200);
    ann.send("POST", "/api/logout", Some(json!({}))).await;
    deliver(&world, &chat, "m1~r0").await;
    for follower in [&mut by_key, &mut by_session] {
        let read = follower.until("m1~r0").await;
        assert!(!read.contains("m1~r0"), "{read}");
    }
    world.stop().await;
}
