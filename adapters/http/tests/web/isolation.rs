//! Two people and the owner: nobody is shown anything that another said, on any route.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::client::Client;
use crate::images::{draw, send_form};
use crate::oauth::give_access;
use crate::{World, program};

/// Says something in a chat of a browser's account. Returns the chat's id.
async fn tell(browser: &mut Client, secret: &str) -> String {
    let chat = browser.send("POST", "/api/chats", Some(json!({"title": format!("about {secret}")}))).await.json();
    let id = chat["id"].as_str().unwrap().to_owned();
    let said = json!({"chat_id": id, "message": format!("the word is {secret}")});
    let reply = browser.send("POST", "/api/chat/stream", Some(said)).await;
    assert!(reply.body.contains(secret), "{}", reply.body);
    browser.send("POST", "/api/chat", Some(json!({"session_id": "same", "message": secret}))).await;
    let related = format!("word knows {secret}");
    browser.send("POST", "/api/chat", Some(json!({"session_id": "same", "message": related}))).await;
    let picture = STANDARD.encode(format!("GIF89a a sign that says {secret}"));
    let shown = json!({"chat_id": id, "message": "", "pictures": [format!("data:image/gif;base64,{picture}")]});
    let reply = browser.send("POST", "/api/chat/stream", Some(shown)).await;
    assert!(reply.body.contains("a sign that says"), "{}", reply.body);
    browser.send("POST", "/api/groups", Some(json!({"name": format!("group {secret}")}))).await;
    browser.send("POST", "/api/tags", Some(json!({"name": format!("tag {secret}")}))).await;
    browser.send("PUT", "/api/settings/ui", Some(json!({"note": secret}))).await;
    draw(browser, json!({"prompt": format!("a picture of {secret}")})).await;
    let aloud = crate::voice::say_aloud(browser, &id, "audio/wav", secret.as_bytes(), &[]).await;
    assert!(aloud.body.contains(secret), "{}", aloud.body);
    // The name of a program that the person gave access is their own matter, too.
    give_access(browser, &format!("Tool {secret}")).await;
    let upload = [b"\x89PNG ".as_slice(), secret.as_bytes()].concat();
    let kept = send_form(browser, "/api/images/upload-reference", "file", "a.png", &upload).await;
    assert_eq!(kept.status, 200, "{}", kept.body);
    id
}

/// Returns every described route that reads, and those that search.
async fn reads(world: &World, chat: &str) -> Vec<(String, String, Option<Value>)> {
    let document = world.client().send("GET", "/api/openapi.json", None).await.json();
    let mut reads = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        if methods.get("get").is_some() {
            let concrete = path.replace("{session_id}", "same").replace("{id}", chat);
            let query = match path.as_str() {
                "/api/memories/graph" => "?name=word",
                path if path.ends_with("/search") => "?q=word",
                _ => "",
            };
            // The pictures are numbered, and so are uploads.
            for number in 1..=3 {
                let file = match path.contains("references") {
                    true => format!("{number:032x}.png"),
                    false => format!("picture-{number}.png"),
                };
                let one = concrete.replace("{filename}", &file).replace("{number}", &number.to_string());
                reads.push(("GET".into(), format!("{one}{query}"), None));
                if one == concrete {
                    break;
                }
            }
        }
    }
    reads.push(("POST".into(), "/api/search".into(), Some(json!({"query": "the word", "limit": 100}))));
    reads.push(("PUT".into(), format!("/api/chats/{chat}"), Some(json!({"title": "mine now"}))));
    reads.push(("DELETE".into(), format!("/api/chats/{chat}"), None));
    reads
}

#[tokio::test]
async fn nobody_is_shown_what_another_said() {
    let world = World::start().await;
    let mut owner = world.owner().await;
    let mut bob = world.guest(&mut owner, "Bob").await;
    let mut cid = world.guest(&mut owner, "Cid").await;
    let secrets = ["heliotrope", "quagmire", "zeppelin"];
    let chats =
        [tell(&mut owner, secrets[0]).await, tell(&mut bob, secrets[1]).await, tell(&mut cid, secrets[2]).await];
    let everything = ["chat", "memory:read", "memory:write", "mcp", "vault"];
    let keys = [
        program(&mut owner, &[&everything[..], &["admin"]].concat()).await.0,
        program(&mut bob, &everything).await.0,
        program(&mut cid, &everything).await.0,
    ];
    let mut clients = [[owner, bob, cid], keys];
    let mut shown = 0;
    for clients in &mut clients {
        for (who, client) in clients.iter_mut().enumerate() {
            for (whose, chat) in chats.iter().enumerate() {
                shown += look(&world, client, who, (whose, chat), &secrets).await;
            }
        }
    }
    assert!(shown > 20, "everybody is shown their own words: {shown}");
    // Their chats are still there.
    for (browser, (chat, secret)) in clients[0].iter_mut().zip(chats.iter().zip(secrets)) {
        let whole = browser.send("GET", &format!("/api/chats/{chat}"), None).await;
        assert!(whole.status == 200 && whole.body.contains(secret), "{}", whole.body);
    }
    world.stop().await;
}

/// Lets one person read everything, with a chat in mind. Returns how often they were shown their own words.
async fn look(world: &World, client: &mut Client, who: usize, (whose, chat): (usize, &str), secrets: &[&str]) -> usize {
    let mut shown = 0;
    for (method, path, body) in reads(world, chat).await {
        if whose == who && method != "GET" && !path.ends_with("search") {
            continue;
        }
        world.clock.advance_to(later(world, 60));
        let answer = client.send(&method, &path, body).await;
        for (of, secret) in secrets.iter().enumerate() {
            let tells = answer.body.contains(secret);
            assert!(!tells || of == who, "{method} {path} showed {who} the words of {of}: {}", answer.body);
            shown += usize::from(tells);
        }
        if whose != who && path.starts_with("/api/chats/") && !path.contains("search") {
            assert_eq!(answer.status, 404, "{method} {path}: a chat of another is no chat");
        }
    }
    shown
}

pub fn later(world: &World, seconds: i64) -> azera_types::Timestamp {
    azera_types::Clock::now(&world.clock).checked_add(azera_types::Span::new().seconds(seconds)).unwrap()
}

#[tokio::test]
async fn a_deleted_account_takes_everything_with_it() {
    let world = World::start().await;
    let mut owner = world.owner().await;
    let mut bob = world.guest(&mut owner, "Bartholomew").await;
    tell(&mut bob, "quagmire").await;
    let (mut key, _) = program(&mut bob, &["chat"]).await;
    bob.send("DELETE", "/api/account", Some(json!({"password": "not the password"}))).await.is(403, "wrong_password");
    *world.engine.intruder.lock().unwrap() = Some(key.clone());
    let gone = bob.clone().send("DELETE", "/api/account", Some(json!({"password": "another long password"}))).await;
    assert_eq!(gone.status, 200, "{}", gone.body);
    let intruded = *world.engine.intruded.lock().unwrap();
    assert_eq!(intruded, Some(401), "nothing is said while everything is forgotten");
    for client in [&mut bob, &mut key] {
        assert_eq!(client.send("GET", "/api/chats", None).await.status, 401);
    }
    // A name that no digest holds by chance, as "Bob" was held once.
    assert!(!world.accounts.text().contains("Bartholomew"));
    assert_eq!(owner.send("GET", "/api/accounts", None).await.json()["total"], 1);
    let mut cid = world.guest(&mut owner, "Cid").await;
    let accounts = owner.send("GET", "/api/accounts", None).await.json();
    let id_of = |name: &str| {
        let account = accounts["items"].as_array().unwrap().iter().find(|account| account["name"] == name).unwrap();
        account["id"].as_str().unwrap().to_owned()
    };
    let path = format!("/api/accounts/{}", id_of("Cid"));
    cid.send("DELETE", &path, None).await.is(403, "scope");
    assert_eq!(owner.send("DELETE", &path, None).await.status, 200);
    assert_eq!(cid.send("GET", "/api/chats", None).await.status, 401);
    owner.send("DELETE", &format!("/api/accounts/{}", id_of("Ann")), None).await.is(404, "not_found");
    world.stop().await;
}

#[tokio::test]
async fn a_deleted_chat_is_forgotten() {
    let world = World::start().await;
    let mut owner = world.owner().await;
    let id = tell(&mut owner, "heliotrope").await;
    let path = format!("/api/chats/{id}");
    assert_eq!(owner.send("DELETE", &path, None).await.json()["status"], "deleted");
    owner.send("GET", &path, None).await.is(404, "not_found");
    let cleared = owner.send("POST", "/api/clear", Some(json!({"session_id": "same"}))).await;
    assert_eq!(cleared.json()["status"], "cleared");
    let history = owner.send("GET", "/api/history/same", None).await.json();
    assert_eq!(history["messages"], json!([]));
    assert!(!owner.send("GET", "/api/chats/search?q=heliotrope", None).await.body.contains("heliotrope"));
    world.stop().await;
}
