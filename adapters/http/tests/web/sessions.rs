//! Who may: the first link, logging in and out, rotation, invitations and keys.

use azera_types::{Span, Timestamp};
use serde_json::json;

use crate::{World, program};

/// Lets time pass.
fn wait(world: &World, hours: i64) {
    let now = azera_types::Clock::now(&world.clock);
    world.clock.advance_to(now.checked_add(Span::new().hours(hours)).unwrap_or(Timestamp::MAX));
}

#[tokio::test]
async fn the_first_link_makes_one_owner() {
    let world = World::start().await;
    assert_eq!(world.client().send("GET", "/api/session", None).await.json()["awaits_owner"], true);
    assert!(world.local().setup.is_some());
    let wrong = json!({"code": "wrong", "name": "Eve", "password": "correct horse battery"});
    world.client().send("POST", "/api/setup", Some(wrong)).await.is(403, "link_used");
    let short = json!({"code": world.setup.clone().unwrap(), "name": "Ann", "password": "short"});
    world.client().send("POST", "/api/setup", Some(short)).await.is(400, "invalid");
    let mut owner = world.owner().await;
    let again = json!({"code": world.setup.clone().unwrap(), "name": "Eve", "password": "correct horse battery"});
    world.client().send("POST", "/api/setup", Some(again)).await.is(403, "link_used");
    assert!(world.local().setup.is_none(), "commands no longer print the link");
    let session = owner.send("GET", "/api/session", None).await.json();
    assert_eq!(
        (&session["name"], &session["role"], &session["awaits_owner"]),
        (&json!("Ann"), &json!("owner"), &json!(false))
    );
    // The stored account holds neither the password nor the session's token.
    let stored = world.accounts.text();
    assert!(!stored.contains("horse") && !stored.contains(owner.cookie.as_ref().unwrap().split_once('=').unwrap().1));
    let accounts = world.accounts.clone();
    world.stop().await;
    let world = World::with(accounts).await;
    assert!(world.setup.is_none(), "a restart makes no second owner");
    world.stop().await;
}

#[tokio::test]
async fn a_session_is_renewed_and_ends() {
    let world = World::start().await;
    let mut owner = world.owner().await;
    let first = owner.clone();
    assert!(owner.send("GET", "/api/chats", None).await.header("set-cookie").is_none());
    wait(&world, 2);
    let answer = owner.send("GET", "/api/chats", None).await;
    let cookie = answer.header("set-cookie").unwrap();
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict") && cookie.contains("Path=/"), "{cookie}");
    assert_ne!(owner.cookie, first.cookie, "the token is another one");
    let mut late = first.clone();
    assert_eq!(late.send("GET", "/api/chats", None).await.status, 200, "a request that was under way still works");
    wait(&world, 1);
    let mut stolen = first.clone();
    assert_eq!(stolen.send("GET", "/api/chats", None).await.status, 401, "an old token does not");
    let changed = owner.send("POST", "/api/chats", Some(json!({}))).await;
    assert_eq!(changed.status, 200, "the CSRF token outlives the renewal: {}", changed.body);
    wait(&world, 24 * 8);
    assert_eq!(owner.send("GET", "/api/chats", None).await.status, 401, "a week without a request ends it");
    world.stop().await;
}

#[tokio::test]
async fn logging_out_everywhere_ends_every_session() {
    let world = World::start().await;
    let mut here = world.owner().await;
    let login = json!({"name": " ann ", "password": "correct horse battery"});
    let mut there = world.client();
    assert_eq!(there.send("POST", "/api/login", Some(login.clone())).await.status, 200);
    let mut third = world.client();
    assert_eq!(third.send("POST", "/api/login", Some(login)).await.status, 200);
    assert_eq!(there.clone().send("POST", "/api/logout", Some(json!({}))).await.status, 200);
    assert_eq!(there.send("GET", "/api/chats", None).await.status, 401);
    assert_eq!(third.send("GET", "/api/chats", None).await.status, 200);
    let out = here.clone().send("POST", "/api/logout", Some(json!({"everywhere": true}))).await;
    assert!(out.header("set-cookie").unwrap().contains("Max-Age=0"));
    for client in [&mut here, &mut third] {
        assert_eq!(client.send("GET", "/api/chats", None).await.status, 401);
    }
    let login = json!({"name": "ann", "password": "correct horse battery"});
    assert_eq!(here.send("POST", "/api/login", Some(login)).await.status, 200);
    let (mut key, _) = program(&mut here, &["chat"]).await;
    assert_eq!(key.send("GET", "/api/chats", None).await.status, 200);
    assert_eq!(here.clone().send("POST", "/api/logout", Some(json!({"keys": true}))).await.status, 200);
    for client in [&mut here, &mut key] {
        assert_eq!(client.send("GET", "/api/chats", None).await.status, 401);
    }
    world.stop().await;
}

#[tokio::test]
async fn an_invitation_makes_one_guest_who_administers_nothing() {
    let world = World::start().await;
    let mut owner = world.owner().await;
    let invited = owner.send("POST", "/api/invitations", Some(json!({}))).await.json();
    let join = |name: &str| json!({"code": invited["code"], "name": name, "password": "another long password"});
    world.client().send("POST", "/api/join", Some(join("ANN"))).await.is(409, "name_taken");
    let mut guest = world.client();
    assert_eq!(guest.send("POST", "/api/join", Some(join("Bob"))).await.json()["role"], "guest");
    world.client().send("POST", "/api/join", Some(join("Cid"))).await.is(403, "link_used");
    guest.send("POST", "/api/invitations", Some(json!({}))).await.is(403, "scope");
    guest.send("GET", "/api/accounts", None).await.is(403, "scope");
    guest.send("POST", "/api/keys", Some(json!({"name": "x", "scopes": ["admin"]}))).await.is(403, "scope");
    let accounts = owner.send("GET", "/api/accounts", None).await.json();
    assert_eq!(accounts["total"], 2);
    let old = owner.send("POST", "/api/invitations", Some(json!({}))).await.json();
    wait(&world, 24 * 7 + 1);
    let late = json!({"code": old["code"], "name": "Dot", "password": "another long password"});
    world.client().send("POST", "/api/join", Some(late)).await.is(403, "link_used");
    world.stop().await;
}

#[tokio::test]
async fn a_key_does_what_its_scopes_say_until_it_is_revoked() {
    let world = World::start().await;
    let mut owner = world.owner().await;
    let (mut reader, made) = program(&mut owner, &["memory:read"]).await;
    assert_eq!(reader.send("GET", "/api/dreams", None).await.status, 200);
    reader.send("GET", "/api/chats", None).await.is(403, "scope");
    reader.send("POST", "/api/memories", Some(json!({"content": "x"}))).await.is(403, "scope");
    reader.send("GET", "/api/keys", None).await.is(403, "session");
    let listed = owner.send("GET", "/api/keys", None).await;
    assert_eq!(listed.json()["items"][0]["name"], "program");
    assert!(listed.json()["items"][0]["used_at"].is_string(), "the last use is shown");
    assert!(!listed.body.contains(made["key"].as_str().unwrap()), "the key is shown once");
    let secret = made["key"].as_str().unwrap().splitn(3, '_').nth(2).unwrap();
    assert!(secret.len() > 30 && !world.accounts.text().contains(secret), "only its digest is stored");
    let path = format!("/api/keys/{}", made["id"].as_str().unwrap());
    assert_eq!(owner.send("DELETE", &path, None).await.status, 200);
    assert_eq!(reader.send("GET", "/api/dreams", None).await.status, 401);
    world.stop().await;
}

/// A key for a chat program is in the program's hands. What it types must do no more than its scopes say.
#[tokio::test]
async fn a_typed_command_needs_the_scope_of_what_it_does() {
    let world = World::start().await;
    let mut owner = world.owner().await;
    let (mut chatter, _) = program(&mut owner, &["chat"]).await;
    let typed = |line: &str| json!({"session_id": "s", "message": line});
    for (line, code) in [
        ("/memory search word", "scope"),
        ("/remember this", "scope"),
        ("/forget me", "scope"),
        ("/memory forget me", "scope"),
        ("/model use other", "scope"),
        ("/Model USE other", "scope"),
        ("/link", "session"),
    ] {
        chatter.send("POST", "/api/chat", Some(typed(line))).await.is(403, code);
        let completion = json!({"model": "azera", "messages": [{"role": "user", "content": line}]});
        let answer = chatter.send("POST", "/v1/chat/completions", Some(completion)).await;
        assert_eq!((answer.status, &answer.json()["error"]["code"]), (403, &json!(code)), "{line}: {}", answer.body);
    }
    assert!(world.engine.commands.lock().unwrap().is_empty(), "none of them ran");
    for line in ["/why", "/forget last", "/model"] {
        assert_eq!(chatter.send("POST", "/api/chat", Some(typed(line))).await.status, 200, "{line}");
    }
    let (mut rememberer, _) = program(&mut owner, &["chat", "memory:read", "memory:write"]).await;
    for (line, status) in [("/memory search word", 200), ("/forget me", 200), ("/model use other", 403)] {
        assert_eq!(rememberer.send("POST", "/api/chat", Some(typed(line))).await.status, status, "{line}");
    }
    for line in ["/model use other", "/link"] {
        assert_eq!(owner.send("POST", "/api/chat", Some(typed(line))).await.status, 200, "the owner's browser: {line}");
    }
    let mut guest = world.guest(&mut owner, "Bob").await;
    guest.send("POST", "/api/chat", Some(typed("/model use other"))).await.is(403, "scope");
    world.stop().await;
}

#[tokio::test]
async fn commands_on_this_machine_make_keys_and_nothing_else() {
    let world = World::start().await;
    world.owner().await;
    let local = world.local();
    let call = |method: &'static str, path: &'static str, body: Option<serde_json::Value>| {
        let local = local.clone();
        tokio::task::spawn_blocking(move || local.call(method, path, body.as_ref()))
    };
    let made =
        call("POST", "/api/local/keys", Some(json!({"name": "phone", "scopes": ["chat"]}))).await.unwrap().unwrap();
    let mut phone = world.client().with_key(made["key"].as_str().unwrap());
    assert_eq!(phone.send("GET", "/v1/models", None).await.status, 200);
    assert!(call("GET", "/api/accounts", None).await.unwrap().is_err());
    assert!(call("GET", "/api/chats", None).await.unwrap().is_err());
    let headers = [("Authorization", format!("Bearer {}", local.key)), ("X-Forwarded-For", "203.0.113.9".to_owned())];
    let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let through = world.client().send_with("GET", "/api/local/keys", &headers, "").await;
    assert_eq!(through.status, 401, "not through a proxy");
    #[cfg(unix)]
    {
        let file = std::fs::metadata(world.folder.path().join("web.json")).unwrap();
        assert_eq!(std::os::unix::fs::PermissionsExt::mode(&file.permissions()) & 0o777, 0o600);
    }
    let folder = world.folder.path().to_owned();
    world.stop.cancel();
    world.served.await.unwrap();
    assert!(!folder.join("web.json").exists(), "a web that stopped is not found");
}

/// In a container the web listens on every address. Its links and commands use one that works.
#[tokio::test]
async fn commands_reach_a_web_that_listens_on_every_address() {
    let world = World::listening("0.0.0.0:0", &[], std::sync::Arc::default()).await;
    world.owner().await;
    let local = world.local();
    assert_eq!(local.address, format!("http://127.0.0.1:{}", world.web.address().port()));
    let listed = tokio::task::spawn_blocking(move || local.call("GET", "/api/local/keys", None)).await.unwrap();
    assert_eq!(listed.unwrap()["total"], 0);
    world.stop().await;
}

#[tokio::test]
async fn another_password_ends_other_sessions() {
    let world = World::start().await;
    let mut here = world.owner().await;
    let login = |password: &str| json!({"name": "Ann", "password": password});
    let mut there = world.client();
    there.send("POST", "/api/login", Some(login("correct horse battery"))).await;
    let change = |old: &str| json!({"old": old, "new": "a completely new one"});
    here.send("PUT", "/api/password", Some(change("wrong password!"))).await.is(403, "wrong_password");
    let mut thief = here.clone();
    assert_eq!(thief.send("GET", "/api/chats", None).await.status, 200);
    assert_eq!(here.send("PUT", "/api/password", Some(change("correct horse battery"))).await.status, 200);
    assert_eq!(here.send("GET", "/api/chats", None).await.status, 200);
    assert_eq!(there.send("GET", "/api/chats", None).await.status, 401);
    thief.send("GET", "/api/chats", None).await.is(401, "unauthorized");
    world.client().send("POST", "/api/login", Some(login("correct horse battery"))).await.is(401, "wrong_password");
    assert_eq!(world.client().send("POST", "/api/login", Some(login("a completely new one"))).await.status, 200);
    world.stop().await;
}
