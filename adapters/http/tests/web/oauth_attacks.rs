//! Every way to get more by OAuth than a person allowed.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::World;
use crate::isolation::later;
use crate::oauth::{Program, RETURN, SOME, VERIFIER, as_pairs, encoded, pair, parameter, refused};

#[tokio::test]
async fn nobody_is_sent_to_an_address_that_is_not_the_programs_own() {
    let world = World::start().await;
    let mut owner = world.owner().await;
    let tool = Program::registered(&world, "Tool").await;
    for other in [
        "https://evil.example/",
        "http://127.0.0.1:4711/other",
        "http://127.0.0.1:4711/callback?x=1",
        "http://127.0.0.1:4711/callback#x",
        "http://localhost:4711/callback",
        "javascript:alert(1)",
        "//evil.example/callback",
        "",
    ] {
        let mut asked = tool.asks(None);
        asked["redirect_uri"] = other.into();
        let shown = owner.send("GET", &format!("/api/oauth/request?{}", encoded(&as_pairs(&asked))), None).await;
        assert!(shown.status == 400 && shown.json().get("back").is_none(), "{other}: {}", shown.body);
        let decision = json!({"request": asked, "scopes": ["mcp"]});
        let decided = owner.send("POST", "/api/oauth/decision", Some(decision)).await;
        assert!(decided.status == 400 && decided.json().get("location").is_none(), "{other}: {}", decided.body);
    }
    // Another port of the own machine is the same program.
    let mut asked = tool.asks(None);
    asked["redirect_uri"] = "http://127.0.0.1:9999/callback".into();
    assert!(tool.allowed(&mut owner, asked, &["mcp"]).await.starts_with("http://127.0.0.1:9999/callback?"));
    // The page itself redirects nobody, whatever stands in its address.
    let path = format!("/oauth/authorize?{}", encoded(&[("redirect_uri", "https://evil.example/")]));
    let page = world.client().send("GET", &path, None).await;
    assert_eq!((page.status, page.header("location"), page.header("x-frame-options")), (200, None, Some("DENY")));
    assert!(!page.body.contains("evil.example"), "the page holds nothing of its address");
    // A double click that began on another page meets a button that does nothing yet.
    assert!(page.body.contains(r#"<button id="allow" type="submit" disabled>"#), "{}", page.body);
    for forged in ["", "azc_", "azc_e30", "someone"] {
        let mut asked = tool.asks(None);
        asked["client_id"] = forged.into();
        let shown = owner.send("GET", &format!("/api/oauth/request?{}", encoded(&as_pairs(&asked))), None).await;
        assert_eq!(shown.status, 400, "{forged}");
    }
    world.stop().await;
}

#[tokio::test]
async fn a_wrong_request_is_refused_in_words_and_by_a_click() {
    let world = World::start().await;
    let mut owner = world.owner().await;
    let tool = Program::registered(&world, "Tool").await;
    for (field, value, error) in [
        ("response_type", "token", "unsupported_response_type"),
        ("code_challenge_method", "plain", "invalid_request"),
        ("code_challenge", "", "invalid_request"),
        ("code_challenge", "short", "invalid_request"),
        ("scope", "mcp admin", "invalid_scope"),
        ("scope", "everything", "invalid_scope"),
        ("resource", "https://evil.example/mcp", "invalid_target"),
        ("resource", "http://127.0.0.1/mcp", "invalid_target"),
    ] {
        let mut asked = tool.asks(None);
        asked[field] = value.into();
        let shown = owner.send("GET", &format!("/api/oauth/request?{}", encoded(&as_pairs(&asked))), None).await;
        let shown = shown.json();
        let back = shown["back"].as_str().unwrap_or_else(|| panic!("{field}: {shown}"));
        assert!(back.starts_with(&format!("{RETURN}?")) && shown["scopes"] == json!([]), "{shown}");
        assert_eq!(parameter(back, "error").as_deref(), Some(error), "{field}");
        let decided =
            owner.send("POST", "/api/oauth/decision", Some(json!({"request": asked, "scopes": ["mcp"]}))).await;
        assert_eq!(decided.status, 400, "{field}: {}", decided.body);
    }
    let mut asked = tool.asks(None);
    asked["resource"] = format!("http://{}/mcp", world.web.address()).into();
    assert!(parameter(&tool.allowed(&mut owner, asked, &["mcp"]).await, "code").is_some());
    world.stop().await;
}

#[tokio::test]
async fn a_code_works_once_with_everything_that_belongs_to_it() {
    let world = World::start().await;
    let mut owner = world.owner().await;
    let (tool, other) = (Program::registered(&world, "Tool").await, Program::registered(&world, "Other").await);
    let wrong: [(&str, String); 6] = [
        ("code_verifier", VERIFIER.replace('a', "b")),
        ("code_verifier", "short".into()),
        ("code_verifier", VERIFIER.repeat(3)),
        ("client_id", other.id.clone()),
        ("redirect_uri", "http://127.0.0.1:4712/callback".into()),
        ("code", "another".into()),
    ];
    for (field, value) in &wrong {
        let code = tool.code(&mut owner, &SOME).await;
        let mut pairs = tool.redeeming(&code);
        for pair in pairs.iter_mut().filter(|(name, _)| name == field) {
            pair.1 = value;
        }
        refused(&tool.post("/oauth/token", &pairs).await, "invalid_grant");
        if *field != "code" {
            refused(&tool.redeem(&code).await, "invalid_grant");
        }
        world.clock.advance_to(later(&world, 600));
    }
    let code = tool.code(&mut owner, &SOME).await;
    let elsewhere = [&tool.redeeming(&code)[..], &[("resource", "https://evil.example/mcp")]].concat();
    refused(&tool.post("/oauth/token", &elsewhere).await, "invalid_target");
    // A code gets old.
    let code = tool.code(&mut owner, &SOME).await;
    world.clock.advance_to(later(&world, 61));
    refused(&tool.redeem(&code).await, "invalid_grant");
    world.clock.advance_to(later(&world, 600));
    // Whoever uses a code a second time ends what the first use got.
    let code = tool.code(&mut owner, &SOME).await;
    let (access, refresh) = pair(&tool.redeem(&code).await);
    assert_eq!(tool.call(&access).await.status, 200);
    refused(&tool.redeem(&code).await, "invalid_grant");
    assert_eq!(tool.call(&access).await.status, 401);
    refused(&tool.refresh(&refresh, &[]).await, "invalid_grant");
    world.clock.advance_to(later(&world, 600));
    // Fields that are missing or stand twice, and other bodies.
    let code = tool.code(&mut owner, &SOME).await;
    let twice = [&tool.redeeming(&code)[..], &[("code", code.as_str())]].concat();
    refused(&tool.post("/oauth/token", &twice).await, "invalid_request");
    refused(&tool.post("/oauth/token", &[("grant_type", "authorization_code")]).await, "invalid_request");
    refused(&tool.post("/oauth/token", &[("grant_type", "password")]).await, "unsupported_grant_type");
    let json =
        tool.world_client.clone().send("POST", "/oauth/token", Some(json!({"grant_type": "refresh_token"}))).await;
    refused(&json, "invalid_request");
    world.stop().await;
}

#[tokio::test]
async fn a_refresh_token_works_once_and_gives_no_more_than_before() {
    let world = World::start().await;
    let mut owner = world.owner().await;
    let (tool, other) = (Program::registered(&world, "Tool").await, Program::registered(&world, "Other").await);
    let (first, refresh) = tool.tokens(&mut owner, &SOME).await;
    for (more, error) in [
        (("scope", "mcp chat memory:read vault"), "invalid_scope"),
        (("scope", "admin"), "invalid_scope"),
        (("resource", "https://evil.example/mcp"), "invalid_target"),
    ] {
        refused(&tool.refresh(&refresh, &[more]).await, error);
    }
    world.clock.advance_to(later(&world, 600));
    refused(&other.refresh(&refresh, &[]).await, "invalid_grant");
    // A guess without the part that all tokens of the grant share is no used token.
    let mut guess: Vec<&str> = refresh.splitn(5, '_').collect();
    guess[3] = "0123456789abcdef0123456789abcdef";
    refused(&tool.refresh(&guess.join("_"), &[]).await, "invalid_grant");
    refused(&tool.refresh(&first, &[]).await, "invalid_grant");
    let narrow = tool.refresh(&refresh, &[("scope", "mcp memory:read")]).await;
    assert_eq!(narrow.json()["scope"], "mcp memory:read");
    let (second, next) = pair(&narrow);
    assert_eq!(tool.call(&second).await.json()["may"], json!([false, true, false, false]));
    assert_eq!(tool.call(&first).await.status, 200, "requests that are under way still carry the one before");
    // The person allowed more than the program took last, so it may take that again.
    let (third, next) = pair(&tool.refresh(&next, &[]).await);
    assert_eq!(tool.call(&third).await.json()["may"], json!([true, true, false, false]));
    // An access token ends after an hour, a refresh token after thirty quiet days.
    world.clock.advance_to(later(&world, 3_601));
    assert_eq!(tool.call(&third).await.status, 401);
    let (fourth, next) = pair(&tool.refresh(&next, &[]).await);
    assert_eq!(tool.call(&fourth).await.status, 200);
    // Somebody else has the old one: everything ends.
    refused(&tool.refresh(&refresh, &[]).await, "invalid_grant");
    assert_eq!(tool.call(&fourth).await.status, 401);
    refused(&tool.refresh(&next, &[]).await, "invalid_grant");
    let (_, idle) = tool.tokens(&mut owner, &SOME).await;
    world.clock.advance_to(later(&world, 31 * 24 * 3_600));
    refused(&tool.refresh(&idle, &[]).await, "invalid_grant");
    world.stop().await;
}

#[tokio::test]
async fn a_thief_cannot_outrun_the_program_whose_refresh_token_they_took() {
    let world = World::start().await;
    let mut owner = world.owner().await;
    let tool = Program::registered(&world, "Tool").await;
    let (_, stolen) = tool.tokens(&mut owner, &SOME).await;
    let (mut access, mut next) = pair(&tool.refresh(&stolen, &[]).await);
    for _ in 0..70 {
        world.clock.advance_to(later(&world, 60));
        (access, next) = pair(&tool.refresh(&next, &[]).await);
    }
    assert_eq!(tool.call(&access).await.status, 200);
    refused(&tool.refresh(&stolen, &[]).await, "invalid_grant");
    assert_eq!(tool.call(&access).await.status, 401);
    refused(&tool.refresh(&next, &[]).await, "invalid_grant");
    assert_eq!(owner.send("GET", "/api/grants", None).await.json()["total"], 0);
    // A program that lost an answer gives back what it has.
    let (access, first) = tool.tokens(&mut owner, &SOME).await;
    pair(&tool.refresh(&first, &[]).await);
    assert_eq!(tool.post("/oauth/revoke", &[("token", &first), ("client_id", &tool.id)]).await.status, 200);
    assert_eq!(tool.call(&access).await.status, 401);
    world.stop().await;
}

#[tokio::test]
async fn a_refused_refresh_stores_nothing() {
    let world = World::start().await;
    let mut owner = world.owner().await;
    let (tool, other) = (Program::registered(&world, "Tool").await, Program::registered(&world, "Other").await);
    let (access, refresh) = tool.tokens(&mut owner, &SOME).await;
    let before = world.accounts.saves();
    let mut parts: Vec<&str> = refresh.splitn(5, '_').collect();
    refused(&other.refresh(&refresh, &[]).await, "invalid_grant");
    refused(&tool.refresh(&refresh, &[("scope", "vault")]).await, "invalid_scope");
    refused(&tool.refresh(&refresh, &[("resource", "https://evil.example/mcp")]).await, "invalid_target");
    for place in [3, 2] {
        parts[place] = "guess";
        refused(&tool.refresh(&parts.join("_"), &[]).await, "invalid_grant");
    }
    assert_eq!(world.accounts.saves(), before);
    assert_eq!(tool.call(&access).await.status, 200);
    pair(&tool.refresh(&refresh, &[]).await);
    world.stop().await;
}

#[tokio::test]
async fn no_code_outlives_the_sessions_of_its_account() {
    let world = World::start().await;
    let mut owner = world.owner().await;
    let tool = Program::registered(&world, "Tool").await;
    let login = json!({"name": "Ann", "password": "correct horse battery"});
    for body in [json!({"everywhere": true}), json!({"keys": true})] {
        let code = tool.code(&mut owner, &SOME).await;
        assert_eq!(owner.send("POST", "/api/logout", Some(body)).await.status, 200);
        refused(&tool.redeem(&code).await, "invalid_grant");
        assert_eq!(owner.send("POST", "/api/login", Some(login.clone())).await.status, 200);
    }
    let code = tool.code(&mut owner, &SOME).await;
    let change = json!({"old": "correct horse battery", "new": "incorrect horse battery"});
    assert_eq!(owner.send("PUT", "/api/password", Some(change)).await.status, 200);
    refused(&tool.redeem(&code).await, "invalid_grant");
    assert_eq!(owner.send("GET", "/api/grants", None).await.json()["total"], 0);
    // A decision that was under way when the session ended gives no code.
    let body = json!({"request": tool.asks(None), "scopes": SOME}).to_string();
    let address = world.web.address();
    let mut decision = tokio::net::TcpStream::connect(address).await.unwrap();
    let head = format!(
        "POST /api/oauth/decision HTTP/1.1\r\nHost: {address}\r\nCookie: {}\r\nX-CSRF-Token: {}\r\nExpect: 100-continue\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        owner.cookie.as_ref().unwrap(),
        owner.csrf.as_ref().unwrap(),
        body.len(),
    );
    decision.write_all(head.as_bytes()).await.unwrap();
    // The server asks for the body once it knows who sends it.
    let mut first = [0; 25];
    decision.read_exact(&mut first).await.unwrap();
    assert_eq!(&first, b"HTTP/1.1 100 Continue\r\n\r\n");
    assert_eq!(owner.send("POST", "/api/logout", Some(json!({"everywhere": true}))).await.status, 200);
    decision.write_all(body.as_bytes()).await.unwrap();
    let mut answer = String::new();
    decision.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 401 "), "{answer}");
    world.stop().await;
}

#[tokio::test]
async fn a_form_with_many_fields_is_refused() {
    let world = World::start().await;
    let tool = Program::registered(&world, "Tool").await;
    let names: Vec<String> = (0..33).map(|number| format!("field{number}")).collect();
    let mut pairs: Vec<(&str, &str)> = names[..31].iter().map(|name| (name.as_str(), "")).collect();
    pairs.push(("grant_type", "password"));
    refused(&tool.post("/oauth/token", &pairs).await, "unsupported_grant_type");
    pairs.push((&names[32], ""));
    refused(&tool.post("/oauth/token", &pairs).await, "invalid_request");
    world.stop().await;
}

#[tokio::test]
async fn a_token_for_the_protocol_stands_for_nobody_elsewhere() {
    let world = World::start().await;
    let mut owner = world.owner().await;
    let tool = Program::registered(&world, "Tool").await;
    let (access, _) = tool.tokens(&mut owner, &SOME).await;
    let session = tool.world_client.with_key(&access).send("GET", "/api/session", None).await;
    assert_eq!((session.status, &session.json()["name"], &session.json()["role"]), (200, &Value::Null, &Value::Null));
    assert_eq!(tool.call(&access).await.status, 200);
    world.stop().await;
}

#[tokio::test]
async fn a_flood_of_programs_fills_nothing() {
    let world = World::start().await;
    let mut owner = world.owner().await;
    let before = world.accounts.text();
    let mut client = world.client();
    let mut limited = 0;
    for number in 0..600 {
        let body = json!({"client_name": format!("Tool {number}"), "redirect_uris": [RETURN]});
        match client.send("POST", "/oauth/register", Some(body)).await.status {
            201 => {}
            429 => limited += 1,
            other => panic!("{other}"),
        }
    }
    assert!(limited > 0, "one address may not register without end");
    assert_eq!(world.accounts.text(), before, "nothing of it is stored");
    world.clock.advance_to(later(&world, 3_600));
    let registered = |body: Value| {
        let mut client = client.clone();
        async move { client.send("POST", "/oauth/register", Some(body)).await }
    };
    refused(&registered(json!({"redirect_uris": []})).await, "invalid_redirect_uri");
    refused(&registered(json!({"redirect_uris": ["javascript:alert(1)"]})).await, "invalid_redirect_uri");
    let long = json!({"client_name": "x".repeat(65), "redirect_uris": [RETURN]});
    refused(&registered(long).await, "invalid_client_metadata");
    assert_eq!(registered(json!({"redirect_uris": "x"})).await.status, 400);
    // An account with many grants loses the idle ones, and one that asks for many codes keeps the last ones.
    let tool = Program::registered(&world, "Tool").await;
    let mut first = None;
    for number in 0..55 {
        world.clock.advance_to(later(&world, 30));
        let (access, _) = tool.tokens(&mut owner, &["mcp"]).await;
        assert_eq!(tool.call(&access).await.status, 200, "{number}");
        first.get_or_insert(access);
    }
    assert_eq!(owner.send("GET", "/api/grants", None).await.json()["total"], 50);
    assert_eq!(tool.call(&first.unwrap()).await.status, 401);
    let oldest = tool.code(&mut owner, &["mcp"]).await;
    for _ in 0..20 {
        tool.code(&mut owner, &["mcp"]).await;
    }
    refused(&tool.redeem(&oldest).await, "invalid_grant");
    // Guesses of codes and tokens run out.
    world.clock.advance_to(later(&world, 3_600));
    let mut statuses = Vec::new();
    for _ in 0..40 {
        statuses.push(tool.redeem("a guess").await.status);
    }
    assert!(statuses.starts_with(&[400, 400]) && statuses.ends_with(&[429]), "{statuses:?}");
    world.stop().await;
}
