//! Attacks, each of them refused.

use serde_json::json;

use crate::images::{draw, send_form};
use crate::isolation::later;
use crate::{World, program};

#[tokio::test]
async fn a_request_from_another_site_is_refused() {
    let world = World::start().await;
    let owner = world.owner().await;
    let body = json!({"title": "x"}).to_string();
    let json = ("Content-Type", "application/json");
    // Without the token, with a wrong one, and with the right one from another site.
    owner.send_with("POST", "/api/chats", &[json, ("X-CSRF-Token", "")], &body).await.is(403, "csrf");
    owner.send_with("POST", "/api/chats", &[json, ("X-CSRF-Token", "guess")], &body).await.is(403, "csrf");
    for foreign in [("Origin", "http://evil.example"), ("Origin", "null"), ("Sec-Fetch-Site", "cross-site")] {
        owner.send_with("POST", "/api/chats", &[json, foreign], &body).await.is(403, "foreign_origin");
    }
    // A form needs no permission to send these types, so they are not taken. That also stops a login by another site.
    for media_type in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""] {
        let login = json!({"name": "Ann", "password": "correct horse battery"}).to_string();
        let answer = world.client().send_with("POST", "/api/login", &[("Content-Type", media_type)], &login).await;
        answer.is(415, "media_type");
    }
    let origin = format!("http://{}", world.web.address());
    let own = [json, ("Origin", origin.as_str()), ("Sec-Fetch-Site", "same-origin")];
    assert_eq!(owner.send_with("POST", "/api/chats", &own, &body).await.status, 200);
    world.stop().await;
}

#[tokio::test]
async fn a_name_that_was_bound_to_this_machine_is_refused() {
    let world = World::start().await;
    let owner = world.owner().await;
    let port = world.web.address().port();
    for host in
        ["evil.example", "evil.example:3000", "127.0.0.1.evil.example", "localhost.evil.example", "169.254.169.254"]
    {
        for path in ["/health", "/api/session", "/api/chats", "/metrics", "/"] {
            owner.send_with("GET", path, &[("Host", host)], "").await.is(421, "unknown_host");
        }
    }
    for host in [format!("localhost:{port}"), "LOCALHOST".into(), "[::1]:80".into(), "azera.example.org".into()] {
        assert_eq!(owner.send_with("GET", "/api/chats", &[("Host", &host)], "").await.status, 200, "{host}");
    }
    owner.send_with("GET", "/health", &[("Host", "localhost"), ("Host", "evil.example")], "").await.is(400, "invalid");
    let without = world.client().raw(b"GET /health HTTP/1.0\r\n\r\n").await;
    assert_eq!(without.status, 400);
    world.stop().await;
}

#[tokio::test]
async fn a_path_leads_nowhere_else() {
    let world = World::start().await;
    let (mut chatter, _) = program(&mut world.owner().await, &["chat"]).await;
    for path in [
        "/../etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/api/../metrics",
        "/web.json",
        "/api/chats/..%2f..%2fweb.json",
        "/api/chats/web:other:main",
        "/api/chats/%00",
        "/api/chats/a%0d%0aX-Evil:%201",
        "/api/personas/..%2f..%2fazera.toml",
        "//evil.example/",
    ] {
        let answer = chatter.send("GET", path, None).await;
        assert_eq!(answer.status, 404, "{path}: {}", answer.body);
        assert_eq!(answer.header("x-evil"), None);
    }
    world.stop().await;
}

#[tokio::test]
async fn a_session_that_was_planted_never_becomes_valid() {
    let world = World::start().await;
    world.owner().await;
    let mut victim = world.client();
    victim.cookie = Some("azera_session=planted-by-somebody-else".into());
    let planted = victim.clone();
    let login = json!({"name": "Ann", "password": "correct horse battery"});
    assert_eq!(victim.send("POST", "/api/login", Some(login)).await.status, 200);
    assert_ne!(victim.cookie, planted.cookie, "a login makes a token of its own");
    assert_eq!(planted.clone().send("GET", "/api/chats", None).await.status, 401);
    // A second cookie of the name does not win over the first.
    let own = victim.cookie.clone().unwrap();
    let both = format!("{own}; azera_session=planted-by-somebody-else");
    assert_eq!(victim.send_with("GET", "/api/chats", &[("Cookie", &both)], "").await.status, 401);
    world.stop().await;
}

#[tokio::test]
async fn guessing_a_password_is_slowed_down() {
    let world = World::start().await;
    world.owner().await;
    let guess = |number: usize| json!({"name": "Ann", "password": format!("guess number {number}")});
    for number in 0..10 {
        world.client().send("POST", "/api/login", Some(guess(number))).await.is(401, "wrong_password");
    }
    let answer = world.client().send("POST", "/api/login", Some(guess(10))).await;
    answer.is(429, "too_many");
    assert_eq!(answer.header("retry-after"), Some("60"));
    let right = json!({"name": "Ann", "password": "correct horse battery"});
    world.client().send("POST", "/api/login", Some(right)).await.is(429, "too_many");
    world.stop().await;
}

#[tokio::test]
async fn guesses_at_the_same_time_are_not_allowed_more() {
    let world = World::start().await;
    world.owner().await;
    let guess = |number: usize| {
        let mut client = world.client();
        let body = json!({"name": "Ann", "password": format!("guess number {number}")});
        async move { client.send("POST", "/api/login", Some(body)).await.status }
    };
    let statuses = futures::future::join_all((0..40).map(guess)).await;
    let of = |wanted: u16| statuses.iter().filter(|status| **status == wanted).count();
    assert_eq!((of(401), of(429)), (10, 30), "{statuses:?}");
    // A right password costs nothing, however often it is used.
    world.clock.advance_to(later(&world, 3_600));
    for _ in 0..12 {
        let right = json!({"name": "Ann", "password": "correct horse battery"});
        assert_eq!(world.client().send("POST", "/api/login", Some(right)).await.status, 200);
    }
    world.stop().await;
}

#[tokio::test]
async fn one_address_locks_nobody_out() {
    let world = World::listening("127.0.0.1:0", &["127.0.0.1"], std::sync::Arc::default()).await;
    world.owner().await;
    let guess = async |address: &str, password: &str| {
        let headers = [("Content-Type", "application/json"), ("X-Forwarded-For", address)];
        let body = json!({"name": "Ann", "password": password}).to_string();
        world.client().send_with("POST", "/api/login", &headers, &body).await.status
    };
    for minute in 0..30 {
        guess("203.0.113.9", &format!("guess number {minute}")).await;
        world.clock.advance_to(later(&world, 60));
    }
    assert_eq!(guess("198.51.100.1", "correct horse battery").await, 200);
    // Many addresses together are slowed down, too.
    let mut refused = 0;
    for number in 0..60 {
        refused += usize::from(guess(&format!("192.0.2.{number}"), "a wrong password").await == 429);
    }
    assert_eq!(refused, 10);
    world.stop().await;
}

/// A program with a revoked key may ask for hours. The other programs behind the same address go on.
#[tokio::test]
async fn wrong_keys_are_slowed_down_and_right_ones_are_not() {
    let world = World::start().await;
    let mut owner = world.owner().await;
    let (mut right, _) = program(&mut owner, &["chat"]).await;
    let mut wrong = world.client().with_key("azk_0123_guess");
    for _ in 0..10 {
        wrong.send("GET", "/api/chats", None).await.is(401, "unauthorized");
    }
    wrong.send("GET", "/api/chats", None).await.is(429, "too_many");
    assert_eq!(right.send("GET", "/api/chats", None).await.status, 200);
    let login = json!({"name": "Ann", "password": "correct horse battery"});
    assert_eq!(world.client().send("POST", "/api/login", Some(login)).await.status, 200);
    world.stop().await;
}

/// Strangers who guess an owner's password do not keep the owner from changing it.
#[tokio::test]
async fn a_login_still_confirms_while_strangers_guess() {
    let world = World::start().await;
    let mut owner = world.owner().await;
    for number in 0..10 {
        let guess = json!({"name": "Ann", "password": format!("guess number {number}")});
        world.client().send("POST", "/api/login", Some(guess)).await.is(401, "wrong_password");
    }
    let change = json!({"old": "correct horse battery", "new": "a completely new one"});
    assert_eq!(owner.send("PUT", "/api/password", Some(change)).await.status, 200);
    world.stop().await;
}

#[tokio::test]
async fn a_change_is_completed_after_the_client_went_away() {
    let world = World::start().await;
    let mut owner = world.owner().await;
    let (mut thief, made) = program(&mut owner, &["chat"]).await;
    assert_eq!(thief.send("GET", "/api/chats", None).await.status, 200);
    world.accounts.hold();
    let path = format!("/api/keys/{}", made["id"].as_str().unwrap());
    {
        let mut leaving = owner.clone();
        let sent = leaving.send("DELETE", &path, None);
        tokio::select! {
            answer = sent => panic!("the store is held: {answer:?}"),
            () = world.accounts.held() => {}
        }
    }
    // The server notices that the client is gone.
    world.client().send("GET", "/health", None).await;
    world.accounts.release();
    // Changes happen one after the other, so the first one is done after this one.
    assert_eq!(owner.send("POST", "/api/invitations", Some(json!({}))).await.status, 200);
    thief.send("GET", "/api/chats", None).await.is(401, "unauthorized");
    world.stop().await;
}

#[tokio::test]
async fn too_many_requests_wait() {
    let world = World::start().await;
    let mut client = world.client();
    let mut statuses = Vec::new();
    for _ in 0..130 {
        statuses.push(client.send("GET", "/health", None).await.status);
    }
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 120);
    assert_eq!(statuses.last(), Some(&429));
    world.stop().await;
}

/// The engine writes an entry with the model, which costs as much as a reply.
#[tokio::test]
async fn costly_requests_count_as_messages() {
    let world = World::start().await;
    let mut owner = world.owner().await;
    for _ in 0..30 {
        assert_eq!(owner.send("POST", "/api/journal/trigger", None).await.status, 200);
    }
    owner.send("POST", "/api/journal/trigger", None).await.is(429, "too_many");
    owner.send("POST", "/api/chat", Some(json!({"session_id": "s", "message": "x"}))).await.is(429, "too_many");
    world.stop().await;
}

#[tokio::test]
async fn an_import_has_a_bounded_number_of_files() {
    let world = World::start().await;
    let owner = world.owner().await;
    let part = "--x\r\nContent-Disposition: form-data; name=\"f\"; filename=\"d.md\"\r\n\r\nA dream.\r\n";
    let body = format!("{}--x--\r\n", part.repeat(600));
    let headers = [("Content-Type", "multipart/form-data; boundary=x")];
    let imported = owner.send_with("POST", "/api/dreams/import", &headers, &body).await.json();
    assert_eq!((&imported["imported"], &imported["skipped"]), (&json!(500), &json!(100)), "{imported}");
    assert_eq!(imported["errors"].as_array().unwrap().len(), 1, "{imported}");
    assert!(imported["errors"][0].as_str().unwrap().contains("500"), "{imported}");
    world.stop().await;
}

/// One account that cannot be read would keep the web from starting.
#[tokio::test]
async fn what_a_guest_stores_can_be_read_at_the_next_start() {
    let world = World::start().await;
    let mut owner = world.owner().await;
    let guest = world.guest(&mut owner, "Bob").await;
    for levels in [31, 32, 100, 120, 124, 125, 126, 127] {
        let body = format!("{}1{}", r#"{"x":"#.repeat(levels), "}".repeat(levels));
        for path in ["/api/settings/ui", "/api/settings/editor"] {
            let headers = [("Content-Type", "application/json")];
            let answer = guest.send_with("PUT", path, &headers, &body).await;
            assert_eq!(answer.status, if levels <= 32 { 200 } else { 400 }, "{levels}: {}", answer.body);
        }
    }
    let accounts = world.accounts.clone();
    world.stop().await;
    let world = World::with(accounts).await;
    let login = json!({"name": "Bob", "password": "another long password"});
    assert_eq!(world.client().send("POST", "/api/login", Some(login)).await.status, 200);
    world.stop().await;
}

#[tokio::test]
async fn odd_input_is_no_fault_of_the_server() {
    let world = World::start().await;
    let mut owner = world.owner().await;
    let document = owner.send("GET", "/api/openapi.json", None).await.json();
    let (deep, json) = ("[".repeat(100_000), ("Content-Type", "application/json"));
    let huge = r#"{"limit": 1e999, "order": 99999999999999999999, "n": -1, "scopes": [1e400]}"#;
    let bodies: [&[u8]; 9] =
        [b"", b"null", b"[]", b"{", b"\xff\xfe{}", b"\"\\ud800\"", b"{\"a\":\"\0\"}", deep.as_bytes(), huge.as_bytes()];
    for (path, methods) in document["paths"].as_object().unwrap() {
        for method in ["post", "put", "delete"].into_iter().filter(|method| methods.get(method).is_some()) {
            // These end the session, or take no body.
            if ["/api/logout", "/api/journal/trigger", "/api/invitations"].contains(&path.as_str()) {
                continue;
            }
            let concrete = path.replace("{id}", "x").replace("{name}", "x").replace("{filename}", "x");
            for body in bodies {
                world.clock.advance_to(later(&world, 1));
                let answer = owner.send_bytes(&method.to_uppercase(), &concrete, &[json], body).await;
                assert!((200..500).contains(&answer.status), "{method} {path}: {} {}", answer.status, answer.body);
            }
        }
    }
    for path in ["/api/chats/%ff", "/api/history/%ff%fe", "/api/chats/search?q", "/%ff"] {
        let answer = owner.send("GET", path, None).await;
        assert!((400..500).contains(&answer.status), "{path}: {} {}", answer.status, answer.body);
    }
    assert_eq!(owner.send("GET", "/api/session", None).await.json()["name"], "Ann");
    world.stop().await;
}

#[tokio::test]
async fn a_large_body_or_head_is_refused() {
    let world = World::start().await;
    let mut owner = world.owner().await;
    let large = json!({"title": "x".repeat(2 << 20)});
    owner.send("POST", "/api/chats", Some(large)).await.is(413, "too_large");
    let login = json!({"name": "Ann", "password": "x".repeat(32 << 10)});
    world.client().send("POST", "/api/login", Some(login)).await.is(413, "too_large");
    let settings = json!({"x": "x".repeat(100 << 10)});
    owner.send("PUT", "/api/settings/ui", Some(settings)).await.is(400, "invalid");
    let long = json!({"session_id": "s", "message": "x".repeat(200 << 10)});
    owner.send("POST", "/api/chat", Some(long)).await.is(413, "too_large");
    let head = format!("GET /health HTTP/1.1\r\nHost: localhost\r\nX-Long: {}\r\n\r\n", "x".repeat(64 << 10));
    assert_eq!(world.client().raw(head.as_bytes()).await.status, 431);
    let many = format!("GET /health HTTP/1.1\r\nHost: localhost\r\n{}\r\n", "X-Many: 1\r\n".repeat(100));
    assert_eq!(world.client().raw(many.as_bytes()).await.status, 431);
    world.stop().await;
}

#[tokio::test]
async fn headers_cannot_be_smuggled_in() {
    let world = World::start().await;
    let mut owner = world.owner().await;
    for raw in [
        "GET /health HTTP/1.1\r\nHost: localhost\r\nX-A: b\0c\r\n\r\n",
        "POST /api/login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        "GET /health\r\nHost: localhost\r\n\r\n",
        "GET /a b HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ] {
        assert_eq!(world.client().raw(raw.as_bytes()).await.status, 400, "{raw:?}");
    }
    // What people write comes back in bodies alone.
    let name = "x\r\nSet-Cookie: azera_session=evil";
    let made = owner.send("POST", "/api/keys", Some(json!({"name": name, "scopes": ["chat"]}))).await;
    made.is(400, "invalid");
    let chat = json!({"title": "a\r\nX-Evil: 1"});
    owner.send("POST", "/api/chats", Some(chat)).await.is(400, "invalid");
    world.stop().await;
}

/// The pages work under their own policy: nothing inline, nothing from elsewhere, and no way to make markup of text.
#[tokio::test]
async fn the_pages_hold_nothing_inline() {
    let world = World::start().await;
    for path in ["/", "/api/docs"] {
        let page = world.client().send("GET", path, None).await;
        assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
        for part in page.body.split('<').filter(|part| part.starts_with("script")) {
            let (tag, inline) = part.split_once('>').unwrap();
            assert!(tag.contains(" src=\"/") && inline.is_empty(), "{path}: {part}");
        }
        for inline in ["<style", " style=", " onclick=", " onload=", "javascript:", "//cdn", "https://"] {
            assert!(!page.body.contains(inline), "{path} has {inline}");
        }
    }
    for path in ["/page.js", "/markdown.js", "/docs.js"] {
        let script = world.client().send("GET", path, None).await;
        assert_eq!(script.header("content-type"), Some("text/javascript; charset=utf-8"));
        for way in
            ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "localStorage"]
        {
            assert!(!script.body.contains(way), "{path} uses {way}");
        }
    }
    world.stop().await;
}

#[tokio::test]
async fn markup_in_names_and_messages_stays_text() {
    let world = World::start().await;
    let mut owner = world.owner().await;
    let script = "<script>alert(1)</script>";
    let chat = owner.send("POST", "/api/chats", Some(json!({"title": script}))).await.json();
    assert_eq!(chat["title"], script, "it is stored as it was written");
    let said = json!({"chat_id": chat["id"], "message": script});
    owner.send("POST", "/api/chat/stream", Some(said)).await;
    let path = format!("/api/chats/{}", chat["id"].as_str().unwrap());
    for path in [path.as_str(), "/api/personas", "/v1/models", "/nowhere"] {
        let answer = owner.send("GET", path, None).await;
        let media_type = answer.header("content-type").unwrap();
        assert!(matches!(media_type, "application/json" | "application/problem+json"), "{path}: {media_type}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
    }
    world.stop().await;
}

#[tokio::test]
async fn a_body_or_a_head_that_does_not_end_is_given_up() {
    let world = World::start().await;
    world.owner().await;
    let head =
        "POST /api/login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n";
    let begun = world.client().begin(head).await;
    // From here on the clock of the timeouts goes on by itself whenever everybody waits.
    tokio::time::pause();
    begun.send(b"{\"name\": \"Ann\"").await.is(408, "slow");
    let half = world.client().raw(b"GET /health HTTP/1.1\r\nHost: loc").await;
    assert!(matches!(half.status, 0 | 408), "{half:?}");
    world.stop().await;
}

#[tokio::test]
async fn markup_in_names_of_files_and_personas_stays_text() {
    let world = World::start().await;
    let mut owner = world.owner().await;
    let name = "\"; filename=\"<svg onload=alert(1)>";
    let kept = send_form(&owner, "/api/voice-samples/upload", "file", "<svg onload=alert(1)>.wav", b"RIFF x").await;
    let file = kept.json()["filename"].as_str().unwrap().to_owned();
    assert_eq!(file, "svg-onload-alert-1.wav");
    let sound = owner.send("GET", &format!("/api/voice-samples/{file}"), None).await;
    assert_eq!(
        (sound.header("content-type"), sound.header("x-content-type-options")),
        (Some("audio/wav"), Some("nosniff"))
    );
    let broken = json!({"prompt": "a boat", "custom_filename": "x\r\nX-Evil: 1"});
    owner.send("POST", "/api/images/generate", Some(broken)).await.is(400, "invalid");
    draw(&mut owner, json!({"prompt": name, "custom_filename": name})).await;
    for picture in owner.send("GET", "/api/images", None).await.json()["items"].as_array().unwrap() {
        let url = picture["url"].as_str().unwrap();
        assert!(!url.contains(['<', '>', '"', '\r', '\n']), "{url}");
        let shown = owner.send("GET", url, None).await;
        assert_eq!(
            (shown.status, shown.header("content-type"), shown.header("x-evil")),
            (200, Some("image/png"), None)
        );
    }
    let persona = json!({"name": "<script>alert(1)</script>", "system_prompt": "a persona"});
    assert_eq!(owner.send("POST", "/api/personas", Some(persona)).await.status, 200);
    let listed = owner.send("GET", "/api/personas", None).await;
    assert_eq!(listed.header("content-type"), Some("application/json"));
    assert!(listed.body.contains("<script>alert(1)</script>"), "it is text in JSON: {}", listed.body);
    world.stop().await;
}
