//! Programs that ask for access by OAuth, and what they may do then.

use std::sync::Arc;

use azera_adapter_http::LocalError;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::World;
use crate::client::{Answer, Client};

pub const VERIFIER: &str = "a-verifier-of-at-least-forty-three-characters-in-all";
pub const RETURN: &str = "http://127.0.0.1:4711/callback";
const FORM: &[(&str, &str)] = &[("Content-Type", "application/x-www-form-urlencoded")];

/// A program that a person may give access to.
pub struct Program {
    pub world_client: Client,
    pub id: String,
}

fn challenge(verifier: &str) -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(verifier))
}

pub fn encoded(pairs: &[(&str, &str)]) -> String {
    url::form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish()
}

/// Returns the parameters of an address.
fn query(address: &str) -> Vec<(String, String)> {
    url::Url::parse(address).unwrap().query_pairs().into_owned().collect()
}

pub fn parameter(address: &str, name: &str) -> Option<String> {
    query(address).into_iter().find(|(found, _)| found == name).map(|(_, value)| value)
}

/// Gives a program access in the name of a browser's account.
pub async fn give_access(person: &mut Client, name: &str) {
    let mut client = person.clone();
    (client.cookie, client.csrf) = (None, None);
    Program::of(client, name).await.tokens(person, &["mcp"]).await;
}

impl Program {
    pub async fn registered(world: &World, name: &str) -> Self {
        Self::of(world.client(), name).await
    }

    async fn of(mut client: Client, name: &str) -> Self {
        let body =
            json!({"client_name": name, "redirect_uris": [RETURN], "token_endpoint_auth_method": "none", "x": 1});
        let answer = client.send("POST", "/oauth/register", Some(body)).await;
        assert_eq!(answer.status, 201, "{}", answer.body);
        let made = answer.json();
        assert_eq!((&made["token_endpoint_auth_method"], made.get("client_secret")), (&json!("none"), None));
        Self { id: made["client_id"].as_str().unwrap().to_owned(), world_client: client }
    }

    pub fn asks(&self, scope: Option<&str>) -> Value {
        let mut asked = json!({
            "response_type": "code", "client_id": self.id, "redirect_uri": RETURN, "code_challenge": challenge(VERIFIER),
            "code_challenge_method": "S256", "state": "a state & more",
        });
        if let Some(scope) = scope {
            asked["scope"] = scope.into();
        }
        asked
    }

    /// Lets a person allow scopes, and returns the address with the code.
    pub async fn allowed(&self, person: &mut Client, asked: Value, scopes: &[&str]) -> String {
        let decision = json!({"request": asked, "scopes": scopes});
        let answer = person.send("POST", "/api/oauth/decision", Some(decision)).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        answer.json()["location"].as_str().unwrap().to_owned()
    }

    pub async fn code(&self, person: &mut Client, scopes: &[&str]) -> String {
        let asked = self.asks(Some(&scopes.join(" ")));
        parameter(&self.allowed(person, asked, scopes).await, "code").unwrap()
    }

    pub async fn post(&self, path: &str, pairs: &[(&str, &str)]) -> Answer {
        self.world_client.send_with("POST", path, FORM, &encoded(pairs)).await
    }

    pub async fn redeem(&self, code: &str) -> Answer {
        self.post("/oauth/token", &self.redeeming(code)).await
    }

    pub fn redeeming<'a>(&'a self, code: &'a str) -> [(&'a str, &'a str); 5] {
        [
            ("grant_type", "authorization_code"),
            ("client_id", &self.id),
            ("redirect_uri", RETURN),
            ("code_verifier", VERIFIER),
            ("code", code),
        ]
    }

    pub async fn refresh(&self, token: &str, more: &[(&str, &str)]) -> Answer {
        let pairs = [("grant_type", "refresh_token"), ("client_id", &self.id), ("refresh_token", token)];
        self.post("/oauth/token", &[&pairs[..], more].concat()).await
    }

    /// Gets tokens of a person.
    pub async fn tokens(&self, person: &mut Client, scopes: &[&str]) -> (String, String) {
        let code = self.code(person, scopes).await;
        pair(&self.redeem(&code).await)
    }

    /// Calls `/mcp` with a token.
    pub async fn call(&self, token: &str) -> Answer {
        let mut client = self.world_client.with_key(token);
        client.send("POST", "/mcp", Some(json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}))).await
    }
}

#[track_caller]
pub fn pair(answer: &Answer) -> (String, String) {
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    let text = |name: &str| answer.json()[name].as_str().unwrap().to_owned();
    (text("access_token"), text("refresh_token"))
}

#[track_caller]
pub fn refused(answer: &Answer, error: &str) {
    assert_eq!((answer.status, answer.json()["error"].as_str()), (400, Some(error)), "{}", answer.body);
}

pub const ALL: [&str; 5] = ["mcp", "chat", "memory:read", "memory:write", "vault"];
pub const SOME: [&str; 3] = ["mcp", "chat", "memory:read"];

#[tokio::test]
async fn a_program_learns_where_to_ask() {
    let world = World::start().await;
    let mut client = world.client();
    let refusal = client.send("POST", "/mcp", Some(json!({}))).await;
    assert_eq!(refusal.status, 401);
    let challenge = refusal.header("www-authenticate").unwrap().to_owned();
    let address = challenge.split('"').nth(1).unwrap();
    let own = format!("http://{}", world.web.address());
    assert_eq!(address, format!("{own}/.well-known/oauth-protected-resource/mcp"));
    assert!(challenge.contains("scope=\"mcp chat memory:read memory:write\"") && !challenge.contains("error"));
    for path in ["/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"] {
        let resource = client.send("GET", path, None).await.json();
        assert_eq!(resource["resource"], format!("{own}/mcp"));
        assert_eq!(resource["authorization_servers"], json!([own]));
        assert!(!resource["scopes_supported"].to_string().contains("vault"), "secrets are asked for on purpose alone");
    }
    let server = client.send("GET", "/.well-known/oauth-authorization-server", None).await.json();
    assert_eq!((&server["issuer"], &server["code_challenge_methods_supported"]), (&json!(own), &json!(["S256"])));
    assert_eq!(server["token_endpoint"], format!("{own}/oauth/token"));
    assert!(!server["scopes_supported"].to_string().contains("admin"));
    // Behind a trusted proxy with TLS, it is the address that people know.
    world.stop().await;
    let world = World::listening("127.0.0.1:0", &["127.0.0.1"], Arc::default()).await;
    let headers = [("Host", "azera.example.org"), ("X-Forwarded-Proto", "https"), ("X-Forwarded-For", "192.0.2.1")];
    let server = world.client().send_with("GET", "/.well-known/oauth-authorization-server", &headers, "").await.json();
    assert_eq!(server["issuer"], "https://azera.example.org");
    let foreign = [("Host", "evil.example")];
    let refused = world.client().send_with("GET", "/.well-known/oauth-authorization-server", &foreign, "").await;
    assert_eq!(refused.status, 421);
    // A request may name the address in its first line alone.
    let path = "/.well-known/oauth-authorization-server";
    let absolute =
        format!("GET http://localhost:8080{path} HTTP/1.1\r\nConnection: close\r\nX-Forwarded-Proto: https\r\n\r\n");
    let server = world.client().raw(absolute.as_bytes()).await.json();
    assert_eq!(server["issuer"], "https://localhost:8080");
    // Other refusals say nothing of it.
    assert_eq!(world.client().send("GET", "/api/chats", None).await.header("www-authenticate"), Some("Bearer"));
    world.stop().await;
}

#[tokio::test]
async fn what_a_person_allows_is_what_a_program_may_do() {
    let world = World::start().await;
    let mut owner = world.owner().await;
    let tool = Program::registered(&world, "Tool").await;
    let asked = tool.asks(Some("chat memory:read memory:write vault"));
    let shown = owner.send("GET", &format!("/api/oauth/request?{}", encoded(&as_pairs(&asked))), None).await.json();
    assert_eq!((&shown["name"], &shown["refusal"]), (&json!("Tool"), &Value::Null));
    assert!(shown["returns_to"].as_str().unwrap().contains("your computer (127.0.0.1)"), "{shown}");
    let offers: Vec<(&str, bool, bool)> = shown["scopes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|offer| (offer["scope"].as_str().unwrap(), offer["usual"] == json!(true), offer["fixed"] == json!(true)))
        .collect();
    let want = [
        ("mcp", true, true),
        ("chat", true, false),
        ("memory:read", true, false),
        ("memory:write", true, false),
        ("vault", false, false),
    ];
    assert_eq!(offers, want);
    let location = tool.allowed(&mut owner, asked, &SOME).await;
    assert!(location.starts_with(&format!("{RETURN}?")), "{location}");
    assert_eq!(parameter(&location, "state").as_deref(), Some("a state & more"));
    assert_eq!(parameter(&location, "iss"), Some(format!("http://{}", world.web.address())));
    let answer = tool.redeem(&parameter(&location, "code").unwrap()).await;
    assert_eq!(
        (&answer.json()["scope"], &answer.json()["token_type"]),
        (&json!("mcp chat memory:read"), &json!("Bearer"))
    );
    let (access, refresh) = pair(&answer);
    assert_eq!(tool.call(&access).await.json()["may"], json!([true, true, false, false]));
    // The token is for /mcp, and for nothing else.
    for (method, path) in [("GET", "/api/chats"), ("POST", "/api/search"), ("GET", "/api/keys"), ("GET", "/v1/models")]
    {
        let answer = tool.world_client.with_key(&access).send(method, path, Some(json!({}))).await;
        assert!(answer.status == 403 || answer.status == 401, "{path}: {}", answer.status);
    }
    // A program without the scope mcp in its key is told what is missing.
    let (mut key, _) = crate::program(&mut owner, &["chat"]).await;
    let lacking = key.send("POST", "/mcp", Some(json!({}))).await;
    assert_eq!(lacking.status, 403);
    assert!(lacking.header("www-authenticate").unwrap().contains("insufficient_scope"));
    // It is listed with the keys, and ends at once.
    let listed = owner.send("GET", "/api/grants", None).await.json();
    assert_eq!((&listed["items"][0]["name"], &listed["total"]), (&json!("Tool"), &json!(1)));
    assert!(!listed.to_string().contains(&access) && !world.accounts.text().contains(&access));
    let path = format!("/api/grants/{}", listed["items"][0]["id"].as_str().unwrap());
    let mut bob = world.guest(&mut owner, "Bob").await;
    assert_eq!(bob.send("DELETE", &path, None).await.status, 404, "nobody ends what is not theirs");
    assert_eq!(owner.send("DELETE", &path, None).await.status, 200);
    let refusal = tool.call(&access).await;
    assert_eq!(refusal.status, 401);
    assert!(refusal.header("www-authenticate").unwrap().contains("error=\"invalid_token\""));
    refused(&tool.refresh(&refresh, &[]).await, "invalid_grant");
    world.stop().await;
}

pub fn as_pairs(asked: &Value) -> Vec<(&str, &str)> {
    asked.as_object().unwrap().iter().map(|(name, value)| (name.as_str(), value.as_str().unwrap())).collect()
}

#[tokio::test]
async fn a_person_may_deny() {
    let world = World::start().await;
    let mut owner = world.owner().await;
    let tool = Program::registered(&world, "Tool").await;
    for scopes in [&[][..], &["chat"], &["memory:read", "vault"]] {
        let location = tool.allowed(&mut owner, tool.asks(None), scopes).await;
        assert_eq!(parameter(&location, "error").as_deref(), Some("access_denied"));
        assert_eq!(parameter(&location, "code"), None);
    }
    assert_eq!(owner.send("GET", "/api/grants", None).await.json()["total"], 0);
    // Nobody allows anything with a key, without the token against foreign forms, or without a login.
    let decision = json!({"request": tool.asks(None), "scopes": ["mcp"]});
    let (mut key, _) = crate::program(&mut owner, &ALL).await;
    key.send("POST", "/api/oauth/decision", Some(decision.clone())).await.is(403, "session");
    assert_eq!(world.client().send("POST", "/api/oauth/decision", Some(decision.clone())).await.status, 401);
    let mut forged = owner.clone();
    forged.csrf = Some("another".into());
    forged.send("POST", "/api/oauth/decision", Some(decision)).await.is(403, "csrf");
    world.stop().await;
}

#[tokio::test]
async fn a_token_is_given_back_by_its_program_alone() {
    let world = World::start().await;
    let mut owner = world.owner().await;
    let (tool, other) = (Program::registered(&world, "Tool").await, Program::registered(&world, "Other").await);
    let (access, refresh) = tool.tokens(&mut owner, &SOME).await;
    for (client, token) in
        [(&other.id, &access), (&other.id, &refresh), (&tool.id, &"azo_a_b_c".to_owned()), (&tool.id, &"x".to_owned())]
    {
        let answer = tool.post("/oauth/revoke", &[("token", token), ("client_id", client)]).await;
        assert_eq!(answer.status, 200, "an unknown token is no error: {}", answer.body);
        assert_eq!(tool.call(&access).await.status, 200);
    }
    let answer =
        tool.post("/oauth/revoke", &[("token", &refresh), ("client_id", &tool.id), ("token_type_hint", "x")]).await;
    assert_eq!(answer.status, 200);
    assert_eq!(tool.call(&access).await.status, 401);
    world.stop().await;
}

#[tokio::test]
async fn a_token_stands_for_one_person() {
    let world = World::start().await;
    let mut owner = world.owner().await;
    let mut bob = world.guest(&mut owner, "Bob").await;
    let tool = Program::registered(&world, "Tool").await;
    let (anns, _) = tool.tokens(&mut owner, &ALL).await;
    let (bobs, _) = tool.tokens(&mut bob, &ALL).await;
    let (ann, bobs_person) = (tool.call(&anns).await.json(), tool.call(&bobs).await.json());
    assert_ne!(ann["person"], bobs_person["person"]);
    assert_ne!(ann["chat"], bobs_person["chat"]);
    // A token with the account or the grant of somebody else is none.
    let [mine, theirs] = [&anns, &bobs].map(|token| token.split('_').map(str::to_owned).collect::<Vec<_>>());
    for (account, grant) in [(1, 2), (2, 1)] {
        let mut mixed = mine.clone();
        mixed[account].clone_from(&theirs[account]);
        assert_eq!(tool.call(&mixed.join("_")).await.status, 401, "{account} and not {grant}");
    }
    // It ends with the account, and with everything else when the person logs out everywhere.
    let gone = bob.send("POST", "/api/logout", Some(json!({"keys": true}))).await;
    assert_eq!(gone.status, 200);
    assert_eq!(tool.call(&bobs).await.status, 401);
    assert_eq!(tool.call(&anns).await.status, 200);
    let gone = owner.send("DELETE", "/api/account", Some(json!({"password": "correct horse battery"}))).await;
    assert_eq!(gone.status, 200, "{}", gone.body);
    assert_eq!(tool.call(&anns).await.status, 401);
    world.stop().await;
}

#[tokio::test]
async fn both_addresses_for_tokens_are_described_alike() {
    let world = World::start().await;
    let document = world.client().send("GET", "/api/openapi.json", None).await.json();
    let responses = |path: &str| document["paths"][path]["post"]["responses"].clone();
    assert!(responses("/token")["default"]["content"]["application/json"].is_object(), "{}", responses("/token"));
    assert_eq!(responses("/token"), responses("/oauth/token"));
    world.stop().await;
}

#[tokio::test]
async fn the_owners_commands_list_and_end_access() {
    let world = World::start().await;
    let mut owner = world.owner().await;
    let tool = Program::registered(&world, "Tool").await;
    let (access, _) = tool.tokens(&mut owner, &SOME).await;
    let local = world.local();
    let listed = tokio::task::spawn_blocking(move || {
        let delete = |path: &str| local.call("DELETE", path, None);
        // Keys and programs share their command, so it must know what is missing from what is refused.
        assert!(matches!(delete("/api/local/grants/none"), Err(LocalError::Missing(_))));
        assert!(matches!(delete("/api/local/keys/none"), Err(LocalError::Missing(_))));
        assert!(matches!(delete("/api/grants/none"), Err(LocalError::Refused(_))));
        let listed = local.call("GET", "/api/local/grants", None).unwrap();
        let id = listed["items"][0]["id"].as_str().unwrap().to_owned();
        local.call("DELETE", &format!("/api/local/grants/{id}"), None).unwrap();
        listed
    });
    assert_eq!(listed.await.unwrap()["items"][0]["scopes"], json!(SOME));
    assert_eq!(tool.call(&access).await.status, 401);
    world.stop().await;
}
